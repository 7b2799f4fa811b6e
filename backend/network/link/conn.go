package link

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/platform/lifecycle"
	"bridge/backend/platform/wire"
)

const (
	linkProtocol = "bridge-link/1"
	// Protocol is the version of the link that this build speaks.
	Protocol = 1

	maxHelloBytes = 16 << 10
	maxCapability = 64 // capabilities, each of at most as many characters

	// The queue lengths of frames that wait for the writer.
	queuedCommands = 64
	queuedBulk     = 2
)

// Hello is the first frame of each side on a link.
type Hello struct {
	Protocol     int      `json:"protocol"`
	Name         string   `json:"name"`
	Release      string   `json:"release"`
	Capabilities []string `json:"capabilities"`
	// Port is where the sender listens for links; 0 if it does not.
	Port int `json:"port,omitempty"`
}

const (
	typeHello = "hello"
	typePing  = "ping"
	typePong  = "pong"
)

// conn is one established link.
type conn struct {
	tls   *tls.Conn
	in    *bufio.Reader
	peer  Pair
	hello Hello // the other side's
	// dialed is set if this side opened the link.
	dialed bool
	since  time.Time

	commands chan outgoing
	bulk     chan outgoing
	received lifecycle.Signal // a frame arrived
	pong     lifecycle.Signal // a ping must be answered
	doubt    lifecycle.Signal // the other side may not know this link
	doubted  lifecycle.Signal // a ping was sent to check that

	once    sync.Once
	done    chan struct{}
	written chan struct{} // closed after the last write
	why     error
}

// outgoing is a frame ready to be written; without a head it is empty.
type outgoing struct {
	wire.Whole

	sent chan<- error
	// doubted is set if the frame requests a sign of life.
	doubted bool
}

// greet exchanges hellos on a verified connection.
func greet(raw *tls.Conn, peer Pair, dialed bool, ours Hello, now time.Time) (*conn, error) {
	c := &conn{
		tls: raw, in: bufio.NewReaderSize(raw, 64<<10), peer: peer, dialed: dialed, since: now,
		commands: make(chan outgoing, queuedCommands), bulk: make(chan outgoing, queuedBulk),
		received: lifecycle.NewSignal(), pong: lifecycle.NewSignal(), doubt: lifecycle.NewSignal(), doubted: lifecycle.NewSignal(), done: make(chan struct{}), written: make(chan struct{}),
	}
	if err := raw.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil { //nolint:forbidigo // the socket goes by the machine's clock
		return nil, err
	}
	payload, err := json.Marshal(ours)
	if err != nil {
		return nil, err
	}
	out, err := wire.EncodeWhole(remote.Frame{Type: typeHello, Payload: payload})
	if err == nil {
		err = c.write(outgoing{Whole: out})
	}
	if err != nil {
		return nil, err
	}
	frame, err := c.read(maxHelloBytes)
	if err != nil {
		return nil, err
	}
	if c.hello, err = parseHello(frame); err != nil {
		return nil, err
	}
	return c, raw.SetDeadline(time.Time{})
}

func parseHello(frame remote.Frame) (hello Hello, err error) {
	if frame.Type != typeHello {
		return hello, bridge.Errorf(bridge.Invalid, "the link began with %q instead of a hello", frame.Type)
	}
	if err := bridge.DecodeAdditive(frame.Payload, maxHelloBytes, &hello); err != nil {
		return hello, err
	}
	if hello.Protocol != Protocol {
		return hello, bridge.Errorf(bridge.Unsupported, "the other PC (release %q) speaks version %d of the link, this one %d: update the older of the two", hello.Release, hello.Protocol, Protocol)
	}
	if len(hello.Capabilities) > maxCapability {
		return hello, bridge.Errorf(bridge.TooLarge, "the hello has too many capabilities (%d): at most %d fit", len(hello.Capabilities), maxCapability)
	}
	return hello, nil
}

// read returns the next frame with its body.
func (c *conn) read(limitBytes int) (remote.Frame, error) { return wire.ReadWhole(c.in, limitBytes) }

func (c *conn) write(out outgoing) error {
	_, err := c.tls.Write(out.Head)
	if err == nil && len(out.Body) > 0 { // it may be large, so it is not copied
		_, err = c.tls.Write(out.Body)
	}
	return err
}

// bare returns a frame with a type only.
func bare(kind string) outgoing {
	out, _ := wire.EncodeWhole(remote.Frame{Type: kind}) // it always fits
	return outgoing{Whole: out}
}

// send queues a frame and returns after it was written, which does not prove that it
// arrived. If it fails with Unavailable because there is no link, the frame was not written.
func (c *conn) send(ctx context.Context, frame remote.Frame, queue chan outgoing) error {
	encoded, err := wire.EncodeWhole(frame)
	if err != nil {
		return err
	}
	sent := make(chan error, 1)
	out := outgoing{Whole: encoded, sent: sent}
	select {
	case queue <- out:
	case <-c.done:
		return errDown(c.peer.Name)
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-sent: // also while the link ends: the frame may have been sent
		return err
	case <-c.written:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-sent:
		return err
	default:
		return errDown(c.peer.Name)
	}
}

func errDown(name string) error {
	return bridge.Errorf(bridge.Unavailable, "there is no link to %s now: is it on, and is Bridge running there?", name)
}

// close ends the link; only the first reason is kept.
func (c *conn) close(why error) {
	c.once.Do(func() {
		c.why = why
		close(c.done)
		_ = c.tls.NetConn().Close() // not the TLS connection: its close waits for a writer that may block
	})
}

// serve runs the link until it ends. It passes frames to handle in order, and watches for
// silence.
func (c *conn) serve(pace Timing, handle func(remote.Frame)) error {
	var tasks sync.WaitGroup
	tasks.Go(func() { c.writeAll(pace) })
	tasks.Go(func() { c.watch(pace) })
	for {
		frame, err := c.read(remote.MaxFrameBytes)
		if err != nil {
			c.close(err)
			break
		}
		c.received.Notify()
		switch frame.Type {
		case typePing:
			c.pong.Notify()
		case typePong, typeHello:
		default:
			handle(frame)
		}
	}
	tasks.Wait()
	return c.why
}

// writeAll writes queued frames, commands before bulk.
func (c *conn) writeAll(pace Timing) {
	defer close(c.written)
	ping := time.NewTicker(pace.Ping)
	defer ping.Stop()
	for {
		next := c.next(ping.C)
		if next.Head == nil { // the link has ended
			return
		}
		if next.doubted {
			c.doubted.Notify()
		}
		_ = c.tls.SetWriteDeadline(time.Now().Add(pace.Dead)) //nolint:forbidigo // the socket goes by the machine's clock
		err := c.write(next)
		if next.sent != nil {
			next.sent <- err
		}
		if err != nil {
			c.close(err)
			return
		}
	}
}

// next waits for the next frame to write; it returns an empty one when the link has ended.
func (c *conn) next(ping <-chan time.Time) outgoing {
	select {
	case out := <-c.commands:
		return out
	default:
	}
	select {
	case out := <-c.commands:
		return out
	case out := <-c.bulk:
		return out
	case <-c.pong:
		return bare(typePong)
	case <-ping:
		return bare(typePing)
	case <-c.doubt:
		out := bare(typePing)
		out.doubted = true
		return out
	case <-c.done:
		return outgoing{}
	}
}

// errSilent ends a link on which nothing arrives any more, not even an answer to a ping.
var errSilent = errors.New("nothing was heard for too long")

// watch ends the link when nothing arrives for too long, or sooner if the other side
// seems to be gone.
func (c *conn) watch(pace Timing) {
	silence := time.NewTimer(pace.Dead)
	defer silence.Stop()
	for {
		select {
		case <-c.received:
			silence.Reset(pace.Dead)
		case <-c.doubted:
			silence.Reset(min(pace.Doubt, pace.Dead))
		case <-silence.C:
			c.close(errSilent)
		case <-c.done:
			return
		}
	}
}
