package ipc

import (
	"bufio"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/wire"
)

const (
	// readBufferBytes is small: most frames are small, and each tool call makes a
	// hook connection. A longer frame is read past the buffer.
	readBufferBytes = 4 << 10
	// writeTimeout ends a connection whose peer does not read. Its mail is kept.
	writeTimeout = 10 * time.Second
	// helloTimeout bounds how long a connection may stay unauthenticated.
	helloTimeout = 5 * time.Second
	// requestsPerConn bounds the running requests of one connection. At the limit,
	// the server stops reading until one finishes.
	requestsPerConn = 64
	// pushQueue bounds the queued events of one connection.
	pushQueue = 256
)

// Handler serves the connections of a [Server].
type Handler interface {
	// Connected is called once per connection after its hello. An error, a
	// bridge.Error, refuses the connection.
	Connected(conn *Conn) (Welcome, error)
	// Handle serves one request. It may run concurrently with others of the same
	// connection. ctx ends with the connection.
	Handle(ctx context.Context, conn *Conn, op string, args json.RawMessage) (any, error)
	// Disconnected is called once, after the connection's last Handle.
	Disconnected(conn *Conn)
}

// Server accepts the connections of one home.
type Server struct {
	token   string
	handler Handler
	log     *slog.Logger

	mu     sync.Mutex // guards below
	conns  map[*Conn]struct{}
	closed bool
	done   sync.WaitGroup
}

// NewServer returns a server that serves handler to connections with token.
func NewServer(token string, handler Handler, log *slog.Logger) *Server {
	return &Server{token: token, handler: handler, log: log, conns: map[*Conn]struct{}{}}
}

// Serve accepts connections until listener is closed, and returns nil then. It does
// not wait for them. It retries after a failed accept.
func (s *Server) Serve(listener net.Listener) error {
	for {
		raw, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			s.log.Warn("a local connection could not be accepted", "err", err)
			time.Sleep(acceptPause)
			continue
		}
		s.start(raw)
	}
}

// acceptPause prevents a busy loop after a failed accept (too many open files).
const acceptPause = 50 * time.Millisecond

// Close ends every connection and waits for their handlers. It does not close the
// listener.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	for conn := range s.conns {
		conn.end()
	}
	s.mu.Unlock()
	s.done.Wait()
}

func (s *Server) start(raw net.Conn) {
	peer, err := samePeer(raw)
	if err != nil {
		s.log.Warn("a local connection of another user was refused", "err", err)
		_ = raw.Close() // no data was read from it
		return
	}
	conn := newConn(raw, peer)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		conn.end() // it came too late
		return
	}
	s.conns[conn] = struct{}{}
	s.done.Go(func() {
		s.serve(conn)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, conn)
	})
}

// serve handles one connection from its hello to its end.
func (s *Server) serve(conn *Conn) {
	defer conn.end()
	reader := bufio.NewReaderSize(conn.raw, readBufferBytes)
	welcome, hello, err := s.greet(conn, reader)
	if err != nil {
		return
	}
	var running sync.WaitGroup
	if conn.answer(hello, welcome, nil) == nil {
		running.Go(conn.pushLoop)
		s.readRequests(conn, reader, &running)
	}
	conn.end()
	running.Wait()
	s.handler.Disconnected(conn)
}

// readRequests reads requests and starts each one at once, until the connection ends.
func (s *Server) readRequests(conn *Conn, reader *bufio.Reader, running *sync.WaitGroup) {
	slots := make(chan struct{}, requestsPerConn)
	for {
		payload, err := wire.ReadFrame(reader, bridge.MaxFrameBytes)
		if err != nil {
			if bridge.CodeOf(err) == bridge.TooLarge {
				_ = conn.answer(envelope{}, nil, err) // best effort before the end
			}
			return
		}
		e, err := wire.Parse[envelope](payload)
		if err != nil {
			_ = conn.answer(e, nil, err) // a failed write ends the connection anyway
			continue
		}
		if e.Op == opCancel {
			conn.cancel(e.ID)
			continue
		}
		if api.IsQuick(e.Op) && reader.Buffered() == 0 {
			s.request(conn.ctx, conn, e) // no other request waits behind it
			continue
		}
		select {
		case slots <- struct{}{}:
		case <-conn.ctx.Done():
			return
		}
		ctx := conn.begin(e.ID)
		running.Go(func() {
			defer func() { <-slots }()
			s.request(ctx, conn, e)
		})
	}
}

// greet reads the hello and checks the token before it parses anything else. It
// answers a refusal itself; the caller sends the welcome.
func (s *Server) greet(conn *Conn, reader *bufio.Reader) (welcome Welcome, hello envelope, err error) {
	if err := conn.raw.SetReadDeadline(time.Now().Add(helloTimeout)); err != nil {
		return welcome, hello, err
	}
	payload, err := wire.ReadFrame(reader, helloLimitBytes)
	if err != nil {
		return welcome, hello, err
	}
	if err := conn.raw.SetReadDeadline(time.Time{}); err != nil {
		return welcome, hello, err
	}
	if hello, err = wire.Parse[envelope](payload); err != nil {
		return welcome, hello, err
	}
	if welcome, err = s.admit(conn, hello); err != nil {
		return welcome, hello, errors.Join(err, conn.answer(hello, nil, err))
	}
	return welcome, hello, nil
}

func (s *Server) admit(conn *Conn, e envelope) (Welcome, error) {
	var hello Hello
	if e.Op != opHello {
		return Welcome{}, bridge.Errorf(bridge.Unauthorized, "the first frame must be a hello")
	}
	if err := json.Unmarshal(e.Args, &hello); err != nil {
		return Welcome{}, bridge.Errorf(bridge.Invalid, "the hello is malformed")
	}
	hasToken := subtle.ConstantTimeCompare([]byte(hello.Token), []byte(s.token)) == 1
	if !hasToken && (hello.Token != "" || !s.vouches(conn)) {
		return Welcome{}, bridge.Errorf(bridge.Unauthorized, "the token is wrong: this home belongs to another Bridge")
	}
	if hello.Protocol != Protocol {
		return Welcome{}, bridge.Errorf(bridge.Unsupported, "the broker speaks protocol %d and the caller %d: restart the older of the two", Protocol, hello.Protocol)
	}
	hello.Token = ""
	conn.hello = hello
	return s.handler.Connected(conn)
}

// voucher is a handler that identifies some callers by other means than the token.
type voucher interface {
	// Vouches reports whether the caller needs no token: its process decides what
	// it may do.
	Vouches(conn *Conn) bool
}

func (s *Server) vouches(conn *Conn) bool {
	v, is := s.handler.(voucher)
	return is && v.Vouches(conn)
}

func (s *Server) request(ctx context.Context, conn *Conn, e envelope) {
	result, err := s.handle(ctx, conn, e)
	conn.cancel(e.ID) // it is finished
	if conn.ctx.Err() != nil {
		return // the connection ends: a partial answer would look complete
	}
	// Even a caller that gave up gets an answer: it returns the lease of a late
	// answer (Client.abandon).
	_ = conn.answer(e, result, err) // a failed write ends the connection anyway
}

// handle turns a panic of one request into Internal.
func (s *Server) handle(ctx context.Context, conn *Conn, e envelope) (result any, err error) {
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("a request panicked", "op", e.Op, "panic", r, "stack", stack())
			err = bridge.Errorf(bridge.Internal, "%s failed inside the broker; its log says why", e.Op)
		}
	}()
	return s.handler.Handle(ctx, conn, e.Op, e.Args)
}

// Conn is one authenticated connection on the broker's side.
type Conn struct {
	raw    net.Conn
	hello  Hello
	peer   job.Process
	pushes chan *envelope  // pointers: a queue has room for 256, and most stay empty
	ctx    context.Context //nolint:containedctx // the connection's own life
	stop   context.CancelFunc

	requestMu sync.Mutex
	requests  map[uint64]context.CancelFunc // running requests by id

	writeMu sync.Mutex

	pushMu sync.Mutex
	lagged bool // events were dropped since the queue was last empty
}

func newConn(raw net.Conn, peer job.Process) *Conn {
	conn := &Conn{raw: raw, peer: peer, pushes: make(chan *envelope, pushQueue), requests: map[uint64]context.CancelFunc{}}
	conn.ctx, conn.stop = context.WithCancel(context.Background())
	return conn
}

// end closes the connection and cancels its work. Its serve loop then calls the
// handler's Disconnected.
func (c *Conn) end() {
	c.stop()
	_ = c.raw.Close() // there is no caller to report to
}

// begin returns the context of one request.
func (c *Conn) begin(id uint64) context.Context {
	ctx, cancel := context.WithCancel(c.ctx)
	c.requestMu.Lock()
	defer c.requestMu.Unlock()
	c.requests[id] = cancel
	return ctx
}

// cancel cancels a request's context if the request is still running.
func (c *Conn) cancel(id uint64) {
	c.requestMu.Lock()
	defer c.requestMu.Unlock()
	if cancel := c.requests[id]; cancel != nil {
		cancel()
		delete(c.requests, id)
	}
}

// Hello returns the connection's hello without its token.
func (c *Conn) Hello() Hello { return c.hello }

// PeerPID returns the id of the process at the other end as the system reports it,
// or 0 if the system does not.
func (c *Conn) PeerPID() int { return c.peer.PID }

// Peer returns the process at the other end, as it was at the connect, with its
// identity: its id may be reused since. It is empty if the system does not report it.
func (c *Conn) Peer() job.Process { return c.peer }

// Push queues an event without blocking. If the queue is full, it drops the event,
// and the peer later gets EventLagged.
func (c *Conn) Push(name string, data any) {
	raw, err := json.Marshal(data)
	if err != nil {
		return // only Bridge's own types are pushed: they always encode
	}
	c.pushMu.Lock()
	defer c.pushMu.Unlock()
	select {
	case c.pushes <- &envelope{Event: name, Data: raw}:
	default:
		c.lagged = true
	}
}

func (c *Conn) pushLoop() {
	for {
		select {
		case e := <-c.pushes:
			if c.send(*e) != nil {
				return
			}
			if c.caughtUp() && c.send(envelope{Event: EventLagged}) != nil {
				return
			}
		case <-c.ctx.Done():
			return
		}
	}
}

// caughtUp reports, once, that the queue is empty after events were dropped.
func (c *Conn) caughtUp() bool {
	c.pushMu.Lock()
	defer c.pushMu.Unlock()
	if !c.lagged || len(c.pushes) > 0 {
		return false
	}
	c.lagged = false
	return true
}

// answer writes the response to request e.
func (c *Conn) answer(e envelope, result any, err error) error {
	response := envelope{ID: e.ID}
	if err != nil {
		response.Error = public(err)
		return c.send(response)
	}
	raw, err := json.Marshal(result)
	if err != nil {
		response.Error = bridge.Errorf(bridge.Internal, "the answer could not be encoded")
		return c.send(response)
	}
	response.Result = raw
	return c.send(response)
}

func (c *Conn) send(e envelope) error {
	frame, err := appendFrame(nil, e)
	if err != nil {
		frame, err = appendFrame(nil, envelope{ID: e.ID, Error: public(err)})
		if err != nil {
			return err
		}
	}
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if err := c.raw.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err = c.raw.Write(frame); err != nil {
		c.end() // a part of a frame may be sent: no frame may follow
	}
	return err
}

// public returns the form of an error that may leave the process: a bridge.Error
// unchanged, any other error as Internal without details.
func public(err error) *bridge.Error {
	var e *bridge.Error
	if errors.As(err, &e) {
		return e
	}
	return bridge.Errorf(bridge.Internal, "the broker could not do it; its log says why")
}
