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

// Event is something that the broker pushed.
type Event struct {
	Name string
	Data json.RawMessage
}

// EventLagged tells a client that events were dropped because it read too
// slowly: what it wants to know it must ask for.
const EventLagged = "lagged"

// eventBuffer is how many events wait in a client that does not read them:
// beyond it they are dropped and EventLagged follows.
const eventBuffer = 256

// Client is one connection to the broker: the operations of api, and what is to
// be known of the connection. Its methods may be called from several goroutines.
type Client struct {
	api.Calls

	conn    net.Conn
	reader  *bufio.Reader
	reading sync.Once // starts read, or ends a client that never needed it
	pid     int       // the broker's
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

// helloPatience is how long a broker may take to say who it is: as long as it
// gives its callers. A stopped one still takes connections, and holds the election.
const helloPatience = helloTimeout

// ErrSilent reports that a broker is there and does not answer. Starting another
// does not help.
var ErrSilent = errors.New("the broker does not answer")

// silent is ErrSilent in a sentence that names the broker's process, if known.
func silent(pid int) error {
	who := "the broker"
	if pid > 0 {
		who = fmt.Sprintf("the broker (process %d)", pid)
	}
	return bridge.WithCause(bridge.Unavailable, fmt.Errorf("%w: %w", ErrSilent, context.DeadlineExceeded),
		who+" does not answer: it is stopped, hangs or has too much to do; let it go on, or end it and another takes over")
}

// Dial connects and says hello. The error's code is Unavailable when no broker
// listens, or one that does not answer (ErrSilent), and Unauthorized when it
// refused the token.
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

// DialHook is Dial and Client.Hook in one breath, for the host waits: the call
// leaves together with the hello, and no other goroutine is woken for the
// answers. Without a client the broker let nobody in, as after Dial; a client
// beside an error is one that it let in.
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

// greetAndReport sends both in one go.
func (c *Client) greetAndReport(hello Hello, args session.HookCall) (greeting, report request, err error) {
	if greeting, err = c.request(opHello, hello); err != nil {
		return greeting, report, err
	}
	if report, err = c.request(api.OpHook.Name, args); err != nil {
		return greeting, report, err
	}
	return greeting, report, c.send(greeting, report)
}

// open connects without a word.
func open(ctx context.Context, socket string) (*Client, error) {
	conn, err := dial(ctx, socket)
	if err != nil {
		return nil, bridge.WithCause(bridge.Unavailable, err, "no broker is running for this home")
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
	client.pid = peer.PID // 0 where the system does not tell
	return client, nil
}

// start reads from the connection until its end.
func (c *Client) start() {
	c.reading.Do(func() { go c.read() })
}

// greeted waits for the answer to the hello.
func (c *Client) greeted(ctx context.Context, greeting request) error {
	ctx, cancel := context.WithTimeout(ctx, helloPatience)
	defer cancel()
	return c.receive(ctx, greeting, &c.welcome)
}

// Welcome is what the broker said of itself.
func (c *Client) Welcome() Welcome { return c.welcome }

// Events brings what the broker pushes; it is closed with the connection.
func (c *Client) Events() <-chan Event { return c.events }

// Done is closed when the connection has ended.
func (c *Client) Done() <-chan struct{} { return c.done }

// Close ends the connection. Calls under way fail with code Unavailable.
func (c *Client) Close() error {
	err := c.conn.Close()
	c.reading.Do(func() { c.finish(net.ErrClosed) })
	<-c.done
	if errors.Is(err, net.ErrClosed) {
		return nil // it had ended before
	}
	return err
}

// Call sends one request and waits for its answer (api.Link).
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

// request is one that the broker is to answer.
type request struct {
	op      string
	id      uint64
	frame   []byte
	answers <-chan envelope
}

// request encodes a request and expects its answer.
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

// send writes requests in one go.
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

// receive waits for the answer to a request that was sent and reads it into answer.
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

// await waits for the answer to a request that was sent.
func (c *Client) await(ctx context.Context, r request) (envelope, error) {
	select {
	case answer := <-r.answers: // it is here already: whatever ended meanwhile
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
		case answer := <-r.answers: // it came right before the end, as a refused hello does
			return answer, nil
		default:
			return envelope{}, c.ended()
		}
	case <-ctx.Done():
		go c.abandon(r.id, r.answers)
		return envelope{}, c.givenUp(ctx)
	}
}

// givenUp says why nobody waits for an answer any more.
func (c *Client) givenUp(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return silent(c.pid)
	}
	return bridge.WithCause(bridge.Unavailable, ctx.Err(), "the request was given up before the broker answered")
}

// abandon follows a request that its caller gave up: the broker is told to stop
// working on it, and mail in an answer that comes nevertheless is given back, or
// nobody would see it while this connection lives.
func (c *Client) abandon(id uint64, answers <-chan envelope) {
	defer c.forget(id)
	cancel, err := appendFrame(nil, envelope{ID: id, Op: opCancel})
	if err != nil || c.write(cancel) != nil {
		return // the connection is gone, and the request with it
	}
	select {
	case late := <-answers:
		c.nack(late)
	case <-c.done:
	}
}

func (c *Client) nack(late envelope) {
	var held struct {
		Lease *session.Lease `json:"loan"`
	}
	if json.Unmarshal(late.Result, &held) != nil || held.Lease == nil {
		return // no answer that carries mail
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	_ = c.Nack(ctx, held.Lease.ID) // the broker does it by itself when the connection ends
}

func (c *Client) expect() (uint64, chan envelope, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		<-c.done // at once: whoever sees the error sees Done closed
		return 0, nil, bridge.WithCause(bridge.Unavailable, c.err, "the connection to the broker has ended")
	}
	c.nextID++
	answers := make(chan envelope, 1) // one answer: the reader never waits for us
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

// write sends whole frames. When that fails the connection is at its end, for
// half a frame may be out: Done is closed on return.
func (c *Client) write(frames []byte) error {
	if err := c.writeAll(frames); err != nil {
		_ = c.Close() // the first error is the one to tell
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

// readUntil reads on the caller's own goroutine, before start, until the answer to
// r is here or the connection has ended, which await tells. The error says that
// ctx ended first: nothing more can be read then, for part of a frame may be lost.
func (c *Client) readUntil(ctx context.Context, r request) error {
	inTime := context.AfterFunc(ctx, func() { _ = c.conn.SetReadDeadline(time.Unix(1, 0)) }) // ends the read below
	for len(r.answers) == 0 && c.readOne() == nil {
	}
	if inTime() {
		return nil
	}
	return c.givenUp(ctx)
}

// readOne reads one frame and delivers it.
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

// push queues an event without ever waiting for the receiver. The last place is
// for EventLagged: it follows what was queued before, and stands for everything
// that comes until the receiver has taken it.
func (c *Client) push(e Event) {
	if c.lagged && len(c.events) > 0 {
		return
	}
	c.lagged = len(c.events) == eventBuffer
	if c.lagged {
		e = Event{Name: EventLagged}
	}
	c.events <- e // there is room: only this goroutine puts in
}

func (c *Client) finish(err error) {
	if err == nil {
		err = errors.New("closed")
	}
	c.mu.Lock()
	c.err = err
	c.mu.Unlock()
	_ = c.conn.Close() // the error that ended the connection is kept in c.err
	close(c.events)
	close(c.done)
}
