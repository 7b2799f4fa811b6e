package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/lifecycle"
)

const handshakeTimeout = 10 * time.Second

// Listener accepts other PCs: paired ones for a link, and any PC with the code while an
// invitation is open.
type Listener struct {
	identity Identity
	doors    Doors
	log      *slog.Logger

	listeners []net.Listener
	unproved  unproved
	tasks     *lifecycle.Tasks
}

// Doors decides which PCs may connect, and serves them. It is queried for each connection.
type Doors struct {
	// Known refuses a PC that is not paired, or all while links are off.
	Known func(peerID string) error
	// Linked takes over a verified connection.
	Linked func(conn *tls.Conn, peerID string)
	// Hub is set if PCs connect to enrol in a team, not to pair.
	Hub bool
	// Invitation returns the open invitation; nil for none.
	Invitation func() *Invitation
	// Joining serves a PC that pairs; the connection ends with it.
	Joining func(conn *tls.Conn, invitation *Invitation)
}

// Listen opens the port at all of the addresses, or fails with Unavailable. Port 0 takes
// a free port for the first address, and the same port for the rest.
func Listen(ctx context.Context, identity Identity, addresses []string, port int, doors Doors, log *slog.Logger) (*Listener, error) {
	l := &Listener{identity: identity, doors: doors, log: log}
	l.tasks = lifecycle.NewTasks(ctx)
	var config net.ListenConfig
	for _, address := range addresses {
		listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(address, fmt.Sprint(port)))
		if err != nil {
			l.Close()
			return nil, bridge.WithCause(bridge.Unavailable, err, fmt.Sprintf("port %d of %s cannot be opened: %v", port, address, errors.Unwrap(err)))
		}
		l.listeners = append(l.listeners, listener)
		port = listener.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert,errcheck // it was asked for tcp
	}
	for _, listener := range l.listeners {
		l.tasks.Go(func() { l.accept(listener) })
	}
	return l, nil
}

// Addresses returns host:port of each listening address.
func (l *Listener) Addresses() []string {
	var addresses []string
	for _, listener := range l.listeners {
		addresses = append(addresses, listener.Addr().String())
	}
	return addresses
}

// Port returns the port of all addresses.
func (l *Listener) Port() int {
	return l.listeners[0].Addr().(*net.TCPAddr).Port //nolint:forcetypeassert,errcheck // it was asked for tcp
}

// Close closes the listener. Established links continue.
func (l *Listener) Close() {
	l.tasks.Cancel()
	for _, listener := range l.listeners {
		_ = listener.Close()
	}
	l.tasks.Wait()
}

func (l *Listener) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if l.tasks.HasEnded() {
			if err == nil {
				_ = conn.Close()
			}
			return
		}
		if err != nil { // usually out of descriptors
			l.log.Warn("a connection could not be taken", "err", err)
			select {
			case <-time.After(time.Second):
			case <-l.tasks.Done():
			}
			continue
		}
		l.unproved.add(conn)
		l.tasks.Go(func() { l.prove(conn) })
	}
}

// prove performs the TLS handshake and passes the connection to the matching door.
func (l *Listener) prove(raw net.Conn) {
	invitation, purpose := l.doors.Invitation(), pairing
	if l.doors.Hub {
		purpose = enrolment
	}
	conn := tls.Server(raw, &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			switch {
			case slices.Contains(hello.SupportedProtos, linkProtocol):
				return l.identity.config(linkProtocol, l.doors.Known), nil
			case slices.Contains(hello.SupportedProtos, purpose.protocol) && invitation != nil && invitation.State() == InvitationOpen:
				return l.identity.config(purpose.protocol, func(string) error { return nil }), nil
			}
			return nil, bridge.Errorf(bridge.Denied, "no PC is expected")
		},
	})
	ctx, cancel := context.WithTimeout(l.tasks.Context(), handshakeTimeout)
	err := conn.HandshakeContext(ctx)
	cancel()
	if err != nil {
		l.unproved.remove(raw)
		_ = raw.Close()
		l.log.Debug("a connection was refused", "from", raw.RemoteAddr(), "err", err)
		return
	}
	state := conn.ConnectionState()
	if state.NegotiatedProtocol == linkProtocol {
		l.unproved.remove(raw)
		l.doors.Linked(conn, peerID(state.PeerCertificates[0]))
		return
	}
	defer l.unproved.remove(raw) // a pairing PC has proved nothing yet
	defer raw.Close()
	defer context.AfterFunc(l.tasks.Context(), func() { _ = conn.Close() })()
	l.doors.Joining(conn, invitation)
}
