package ipc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/wire"
)

// Target is the address of a home's broker.
type Target struct {
	Socket string // socket path or pipe name
	Token  string
}

// Event is an event that the broker pushed.
type Event struct {
	Name string
	Data json.RawMessage
}

// EventLagged reports that events were dropped because the client read too slowly.
// The client must then query the current state.
const EventLagged = "lagged"

// eventBuffer is how many unread events a client buffers. Further events are
// dropped, and EventLagged follows.
const eventBuffer = 256

// Client is one connection to the broker: the operations of api and the state of
// the connection. Its methods are safe for concurrent use.
type Client struct {
	api.Calls

	conn    net.Conn
	reader  *bufio.Reader
	reading sync.Once // starts read, or closes a client that never needed it
	pid     int       // of the broker
	welcome Welcome
	events  chan Event
	done    chan struct{}

	writeMu sync.Mutex

	mu      sync.Mutex // guards below
	nextID  uint64
	waiting map[uint64]chan envelope
	err     error // why done is closed
	lagged  bool
}

// helloPatience is the timeout for the broker's answer to the hello, the same as the broker's
// timeout for callers. A stopped broker still accepts connections and holds the election lock.
const helloPatience = helloTimeout

// ErrSilent reports that a broker runs but does not answer. Starting another broker
// does not help.
var ErrSilent = errors.New("the broker does not answer")

// silent returns an Unavailable error with ErrSilent that names the broker's process, if known.
func silent(pid int) error {
	who := "the broker"
	if pid > 0 {
		who = fmt.Sprintf("the broker (process %d)", pid)
	}
	return bridge.WithCause(bridge.Unavailable, fmt.Errorf("%w: %w", ErrSilent, context.DeadlineExceeded),
		who+" does not answer: it is stopped, hangs or has too much to do; let it go on, or end it and another takes over")
}

// Dial connects and sends the hello. It fails with Unavailable if no broker listens
// or the broker does not answer (ErrSilent), and with Unauthorized if the broker
// refuses the token.
func Dial(ctx context.Context, target Target, hello Hello) (*Client, error) {
	client, err := open(ctx, target.Socket)
	if err != nil {
		return nil, err
	}
	client.start()
	greeting, err := client.request(opHello, hello.with(target.Token))
	if err == nil {
		err = client.send(greeting)
	}
	if err == nil {
		err = client.greeted(ctx, greeting)
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

// DialHook does [Dial] and Client.Hook in one round trip, because the host waits.
// It sends the call together with the hello, and reads without another goroutine.
// It fails as Dial does, without a client. A client together with an error was
// admitted.
func DialHook(ctx context.Context, target Target, hello Hello, args session.HookCall) (*Client, session.HookReply, error) {
	ctx, cancel := context.WithTimeout(ctx, helloPatience)
	defer cancel()
	var reply session.HookReply
	client, err := open(ctx, target.Socket)
	if err != nil {
		return nil, reply, err
	}
	greeting, report, err := client.greetAndReport(hello.with(target.Token), args)
	if err != nil {
		client.Close()
		return nil, reply, err
	}
	late := client.readUntil(ctx, report)
	if late != nil && len(greeting.answers) == 0 {
		client.Close()
		return nil, reply, late
	}
	if err := client.greeted(ctx, greeting); err != nil {
		client.Close()
		return nil, reply, err
	}
	if late != nil {
		return client, reply, late
	}
	err = client.receive(ctx, report, &reply)
	return client, reply, err
}

// greetAndReport sends the hello and the hook call in one write.
func (c *Client) greetAndReport(hello Hello, args session.HookCall) (greeting, report request, err error) {
	if greeting, err = c.request(opHello, hello); err != nil {
		return greeting, report, err
	}
	if report, err = c.request(api.OpHook.Name, args); err != nil {
		return greeting, report, err
	}
	return greeting, report, c.send(greeting, report)
}

// open connects and sends nothing. It fails with Unavailable without a broker.
func open(ctx context.Context, socket string) (*Client, error) {
	conn, err := dial(ctx, socket)
	if err != nil {
		return nil, bridge.WithCause(bridge.Unavailable, err, "Bridge is not running for this home")
	}
	client := &Client{
		conn:    conn,
		reader:  bufio.NewReaderSize(conn, readBufferBytes),
		events:  make(chan Event, eventBuffer+1), // one more for EventLagged
		done:    make(chan struct{}),
		waiting: map[uint64]chan envelope{},
	}
	client.Calls = api.NewCalls(client)
	peer, _ := samePeer(conn)
	client.pid = peer.PID // 0 if the system does not report it
	return client, nil
}

// start starts the goroutine that reads until the connection ends.
func (c *Client) start() {
	c.reading.Do(func() { go c.read() })
}

// greeted waits for the answer to the hello.
func (c *Client) greeted(ctx context.Context, greeting request) error {
	ctx, cancel := context.WithTimeout(ctx, helloPatience)
	defer cancel()
	return c.receive(ctx, greeting, &c.welcome)
}

// Welcome returns the broker's answer to the hello.
func (c *Client) Welcome() Welcome { return c.welcome }

// Events returns the channel of pushed events; it closes with the connection.
func (c *Client) Events() <-chan Event { return c.events }

// Done is closed when the connection has ended.
func (c *Client) Done() <-chan struct{} { return c.done }

// Close ends the connection. Running calls fail with Unavailable.
func (c *Client) Close() error {
	err := c.conn.Close()
	c.reading.Do(func() { c.finish(net.ErrClosed) })
	<-c.done
	if errors.Is(err, net.ErrClosed) {
		return nil // it had ended before
	}
	return err
}

// Call sends one request and waits for its answer (api.Link). It fails with the
// broker's error, and with Unavailable if the connection or ctx ends before the
// answer.
func (c *Client) Call(ctx context.Context, op string, args, answer any) error {
	c.start()
	r, err := c.request(op, args)
	if err == nil {
		err = c.send(r)
	}
	if err != nil {
		return err
	}
	return c.receive(ctx, r, answer)
}

// request is a request that awaits an answer.
type request struct {
	op      string
	id      uint64
	frame   []byte
	answers <-chan envelope
}

// request encodes a request and registers for its answer.
func (c *Client) request(op string, args any) (request, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return request{}, fmt.Errorf("encode %s: %w", op, err)
	}
	id, answers, err := c.expect()
	if err != nil {
		return request{}, err
	}
	frame, err := appendFrame(nil, envelope{ID: id, Op: op, Args: raw})
	if err != nil {
		c.forget(id)
		return request{}, err
	}
	return request{op: op, id: id, frame: frame, answers: answers}, nil
}

// send writes the requests in one write.
func (c *Client) send(requests ...request) error {
	var frames []byte
	for _, r := range requests {
		frames = append(frames, r.frame...)
	}
	err := c.write(frames)
	for i := 0; i < len(requests) && err != nil; i++ {
		c.forget(requests[i].id)
	}
	return err
}

// receive waits for the answer to a sent request and decodes it into answer.
func (c *Client) receive(ctx context.Context, r request, answer any) error {
	e, err := c.await(ctx, r)
	if err != nil {
		return err
	}
	if e.Error != nil {
		return e.Error
	}
	if err := json.Unmarshal(e.Result, answer); err != nil {
		return fmt.Errorf("decode the answer to %s: %w", r.op, err)
	}
	return nil
}

// await waits for the answer to a sent request.
func (c *Client) await(ctx context.Context, r request) (envelope, error) {
	select {
	case answer := <-r.answers: // the answer is already here, even if the connection or ctx has ended
		c.forget(r.id)
		return answer, nil
	default:
		c.start()
	}
	select {
	case answer := <-r.answers:
		c.forget(r.id)
		return answer, nil
	case <-c.done:
		c.forget(r.id)
		select {
		case answer := <-r.answers: // it came right before the end, as for a refused hello
			return answer, nil
		default:
			return envelope{}, c.ended()
		}
	case <-ctx.Done():
		go c.abandon(r.id, r.answers)
		return envelope{}, c.waitError(ctx)
	}
}

// waitError returns the error for a wait that ctx ended: a timeout or a cancel.
func (c *Client) waitError(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return silent(c.pid)
	}
	return bridge.WithCause(bridge.Unavailable, ctx.Err(), "the request was given up before the broker answered")
}

// abandon handles a request that its caller gave up. It sends a cancel to the
// broker. If an answer still comes, it returns the answer's lease: otherwise its
// mail would stay hidden while this connection lives.
func (c *Client) abandon(id uint64, answers <-chan envelope) {
	defer c.forget(id)
	cancel, err := appendFrame(nil, envelope{ID: id, Op: opCancel})
	if err != nil || c.write(cancel) != nil {
		return // the connection has ended, and the request with it
	}
	select {
	case envelope := <-answers:
		c.nack(envelope)
	case <-c.done:
	}
}

func (c *Client) nack(late envelope) {
	var held struct {
		Lease *session.Lease `json:"loan"`
	}
	if json.Unmarshal(late.Result, &held) != nil || held.Lease == nil {
		return // the answer carries no mail
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	_ = c.Nack(ctx, held.Lease.ID) // the broker does it automatically when the connection ends
}

func (c *Client) expect() (uint64, chan envelope, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		<-c.done // returns at once: after an error the caller sees Done closed
		return 0, nil, bridge.WithCause(bridge.Unavailable, c.err, "the connection to the broker has ended")
	}
	c.nextID++
	answers := make(chan envelope, 1) // one answer: the reader never blocks on it
	c.waiting[c.nextID] = answers
	return c.nextID, answers, nil
}

func (c *Client) forget(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

func (c *Client) ended() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bridge.WithCause(bridge.Unavailable, c.err, "the connection to the broker ended before it answered")
}

// write sends complete frames. If that fails, it closes the connection, because a
// part of a frame may be sent. Done is closed on return.
func (c *Client) write(frames []byte) error {
	if err := c.writeAll(frames); err != nil {
		_ = c.Close() // the first error is the one to report
		return bridge.WithCause(bridge.Unavailable, err, "the connection to the broker ended before the request was sent")
	}
	return nil
}

func (c *Client) writeAll(frames []byte) error {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if err := c.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	_, err := c.conn.Write(frames)
	return err
}

// read delivers answers and events until the connection ends.
func (c *Client) read() {
	for {
		if err := c.readOne(); err != nil {
			c.finish(err)
			return
		}
	}
}

// readUntil reads on the caller's goroutine, before start, until the answer to r
// arrives or the connection ends; await returns which. It fails if ctx ends first.
// Then the connection is unusable, because a part of a frame may be lost.
func (c *Client) readUntil(ctx context.Context, r request) error {
	inTime := context.AfterFunc(ctx, func() { _ = c.conn.SetReadDeadline(time.Unix(1, 0)) }) // ends the read below
	for len(r.answers) == 0 && c.readOne() == nil {
	}
	if inTime() {
		return nil
	}
	return c.waitError(ctx)
}

// readOne reads and delivers one frame.
func (c *Client) readOne() error {
	payload, err := wire.ReadFrame(c.reader, bridge.MaxFrameBytes)
	if err != nil {
		return err
	}
	e, err := wire.Parse[envelope](payload)
	if err != nil {
		return err
	}
	c.deliver(e)
	return nil
}

func (c *Client) deliver(e envelope) {
	if e.Event != "" {
		c.push(Event{Name: e.Event, Data: e.Data})
		return
	}
	c.mu.Lock()
	answers, ok := c.waiting[e.ID]
	c.mu.Unlock()
	if !ok {
		return // the caller gave up
	}
	select {
	case answers <- e:
	default: // a second answer to one request: ignored
	}
}

// push queues an event and never blocks. The last place is for EventLagged. It
// follows the queued events and replaces all events until the receiver has read it.
func (c *Client) push(e Event) {
	if c.lagged && len(c.events) > 0 {
		return
	}
	c.lagged = len(c.events) == eventBuffer
	if c.lagged {
		e = Event{Name: EventLagged}
	}
	c.events <- e // there is room: only this goroutine sends
}

func (c *Client) finish(err error) {
	if err == nil {
		err = errors.New("closed")
	}
	c.mu.Lock()
	c.err = err
	c.mu.Unlock()
	_ = c.conn.Close() // c.err keeps the error that ended the connection
	close(c.events)
	close(c.done)
}
