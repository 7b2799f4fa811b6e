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

// Listener is where other PCs come in: paired ones for a link, and anybody who knows
// the code while an invitation is open.
type Listener struct {
	identity Identity
	doors    Doors
	log      *slog.Logger

	listeners []net.Listener
	unproved  unproved
	tasks     *lifecycle.Tasks
}

// Doors say who may come in, and take them. Both are asked anew for each connection.
type Doors struct {
	// Known refuses a PC that is not paired, or all of them while links are off.
	Known func(peerID string) error
	// Linked takes a proved connection and owns it.
	Linked func(conn *tls.Conn, peerID string)
	// Hub says that PCs come to enrol in a team, and none to pair.
	Hub bool
	// Invitation is what is open; nil for none.
	Invitation func() *Invitation
	// Joining serves whoever comes to pair; the connection ends with it.
	Joining func(conn *tls.Conn, invitation *Invitation)
}

// Listen opens the port at each of the addresses, all or none. A port of 0 takes a
// free one for the first address, and the same for the rest.
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

// Addresses are host:port of each place where it listens.
func (l *Listener) Addresses() []string {
	var addresses []string
	for _, listener := range l.listeners {
		addresses = append(addresses, listener.Addr().String())
	}
	return addresses
}

// Port is the port at all of them.
func (l *Listener) Port() int {
	return l.listeners[0].Addr().(*net.TCPAddr).Port //nolint:forcetypeassert,errcheck // it was asked for tcp
}

// Close ends it. Links that were taken go on.
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
		if err != nil { // out of descriptors, as a rule
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

// prove has the other side show who it is, and hands it to its door.
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
			return nil, bridge.Errorf(bridge.Denied, "nobody is expected")
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
	defer l.unproved.remove(raw) // who pairs has proved nothing yet
	defer raw.Close()
	defer context.AfterFunc(l.tasks.Context(), func() { _ = conn.Close() })()
	l.doors.Joining(conn, invitation)
}
