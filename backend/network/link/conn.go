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

	// How many frames wait to be written before their senders do.
	queuedCommands = 64
	queuedBulk     = 2
)

// Hello is each side's first frame on a link.
type Hello struct {
	Protocol     int      `json:"protocol"`
	Name         string   `json:"name"`
	Release      string   `json:"release"`
	Capabilities []string `json:"capabilities"`
	// Port is where it listens for links itself; 0 where it does not.
	Port int `json:"port,omitempty"`
}

const (
	typeHello = "hello"
	typePing  = "ping"
	typePong  = "pong"
)

// conn is one link that is up.
type conn struct {
	tls   *tls.Conn
	in    *bufio.Reader
	peer  Pair
	hello Hello // theirs
	// dialed says that we opened it.
	dialed bool
	since  time.Time

	commands chan outgoing
	bulk     chan outgoing
	heard    lifecycle.Signal // something came
	pong     lifecycle.Signal // one is to be answered
	doubt    lifecycle.Signal // the other side seems to know nothing of this link
	doubted  lifecycle.Signal // it was asked to show that it does

	once    sync.Once
	done    chan struct{}
	written chan struct{} // closed when nothing is written any more
	why     error
}

// outgoing is a frame that is ready to be written; one without a head is none.
type outgoing struct {
	wire.Whole

	sent chan<- error
	// doubted says that the frame asks for a sign of life.
	doubted bool
}

// greet exchanges hellos on a proved connection.
func greet(raw *tls.Conn, peer Pair, dialed bool, ours Hello, now time.Time) (*conn, error) {
	c := &conn{
		tls: raw, in: bufio.NewReaderSize(raw, 64<<10), peer: peer, dialed: dialed, since: now,
		commands: make(chan outgoing, queuedCommands), bulk: make(chan outgoing, queuedBulk),
		heard: lifecycle.NewSignal(), pong: lifecycle.NewSignal(), doubt: lifecycle.NewSignal(), doubted: lifecycle.NewSignal(), done: make(chan struct{}), written: make(chan struct{}),
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
		return hello, bridge.Errorf(bridge.TooLarge, "the hello has %d capabilities: at most %d fit", len(hello.Capabilities), maxCapability)
	}
	return hello, nil
}

// read takes the next frame, with what follows it.
func (c *conn) read(limitBytes int) (remote.Frame, error) { return wire.ReadWhole(c.in, limitBytes) }

func (c *conn) write(out outgoing) error {
	_, err := c.tls.Write(out.Head)
	if err == nil && len(out.Body) > 0 { // it may be large, and is not copied
		_, err = c.tls.Write(out.Body)
	}
	return err
}

// bare is a frame that says nothing but its type.
func bare(kind string) outgoing {
	out, _ := wire.EncodeWhole(remote.Frame{Type: kind}) // it always fits
	return outgoing{Whole: out}
}

// send hands a frame to the connection and returns when it was written. That says
// nothing about its arrival. A frame of which it says that there is no link was not.
func (c *conn) send(ctx context.Context, frame remote.Frame, queue chan outgoing) error {
	whole, err := wire.EncodeWhole(frame)
	if err != nil {
		return err
	}
	sent := make(chan error, 1)
	out := outgoing{Whole: whole, sent: sent}
	select {
	case queue <- out:
	case <-c.done:
		return errDown(c.peer.Name)
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-sent: // also while the link ends: the frame may be on its way
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

// close ends the link; the first reason counts.
func (c *conn) close(why error) {
	c.once.Do(func() {
		c.why = why
		close(c.done)
		_ = c.tls.NetConn().Close() // not the TLS one: its goodbye waits for a writer that may hang
	})
}

// serve runs the link until it ends: it hands on what comes, in its order, and keeps
// watch that something does.
func (c *conn) serve(pace Pace, handle func(remote.Frame)) error {
	var tasks sync.WaitGroup
	tasks.Go(func() { c.writeAll(pace) })
	tasks.Go(func() { c.watch(pace) })
	for {
		frame, err := c.read(remote.MaxFrameBytes)
		if err != nil {
			c.close(err)
			break
		}
		c.heard.Notify()
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

// writeAll writes what waits, commands before bulk.
func (c *conn) writeAll(pace Pace) {
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

// next waits for what is to be written next; nothing when the link has ended.
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

// errSilent ends a link on which nothing comes any more, not even an answer to a ping.
var errSilent = errors.New("nothing was heard for too long")

// watch ends the link when nothing comes for too long, and sooner where there is a
// reason to think that the other side has gone.
func (c *conn) watch(pace Pace) {
	silence := time.NewTimer(pace.Dead)
	defer silence.Stop()
	for {
		select {
		case <-c.heard:
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
