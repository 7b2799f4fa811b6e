package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

const (
	// callsAtOnce bounds the running tool calls; further calls wait. It is below
	// the broker's limit for one connection, so that a cancellation always gets
	// through.
	callsAtOnce = 48
	// mostDue bounds the unanswered requests; further requests are refused.
	mostDue = 1000
	// answerPatience is how long a session continues after its input has ended, for
	// pending answers: requests and the end may arrive together, through a pipe.
	answerPatience = 3 * time.Second
	codeBusy       = -32000 // the first of JSON-RPC's codes for servers' own errors
)

// ndjsonTransport carries the session's messages, one JSON-RPC message per line. It
// answers an invalid line with an error and continues: a host's mistake must not
// end its session, as it would in the library's own loop. It answers tool calls as
// they finish, and everything else in order. No call delays the next line.
type ndjsonTransport struct {
	input  *bufio.Reader
	output io.Writer // takes one frame in each call
	// answer handles one message. It gets requests with Bridge's own numbers. The
	// library tracks requests by the text of the id, in which 1 and "1" are equal,
	// and parses ids as floating point, which loses long ones.
	answer func(ctx context.Context, message json.RawMessage) mcp.JSONRPCMessage
	// direct answers a plain call of a known tool without the library, which would
	// parse it several times. false passes the call to answer. nil passes every call.
	direct func(ctx context.Context, params callParams) (mcp.JSONRPCMessage, bool)
	log    *slog.Logger

	turns   chan struct{} // a slot for each running call
	running sync.WaitGroup
	broken  context.CancelCauseFunc // ends the session: its output is broken
	ended   chan struct{}           // closed when the input has ended
	batches atomic.Bool             // the agreed protocol version has batches
	turn    chan struct{}           // wakes the spare reader
	spare   chan struct{}           // capacity 1: held by the spare reader

	mu   sync.Mutex // guards below
	over bool       // no more lines are accepted
	last uint64
	due  map[uint64]*request // unanswered requests by Bridge's numbers
}

// request is one request of the host.
type request struct {
	number  uint64
	id      json.RawMessage // as the host wrote it
	message message         // without its arguments, unless it is a plain call
	args    json.RawMessage // a tool call's arguments, which are not in message
	params  *callParams     // of a plain tool call, else nil
	cancel  context.CancelFunc
	leaving bool // its answer is being written: it cannot be cancelled any more

	sent, dropped func() // see afterwards
	write         func(mcp.JSONRPCMessage) bool
	batch         *batch // the batch of the request, or nil
}

type requestKey struct{}

// afterwards sets what happens after the request's answer, from inside its handler.
// sent is called once the answer is written. dropped is called if none is written,
// because the host cancelled the request or has ended.
func afterwards(ctx context.Context, sent, dropped func()) {
	r, _ := ctx.Value(requestKey{}).(*request)
	r.sent, r.dropped = sent, dropped
}

// notify writes a notification that belongs to the request of ctx. It is written
// before the answer or not at all.
func notify(ctx context.Context, method string, params map[string]any) {
	r, _ := ctx.Value(requestKey{}).(*request)
	r.write(mcp.JSONRPCNotification{
		JSONRPC: mcp.JSONRPC_VERSION, Notification: mcp.Notification{Method: method, Params: mcp.NotificationParams{AdditionalFields: params}},
	})
}

// argumentsOf returns the arguments of the tool call of ctx.
func argumentsOf(ctx context.Context) json.RawMessage {
	r, _ := ctx.Value(requestKey{}).(*request)
	return r.args
}

func newNDJSONTransport(input io.Reader, output io.Writer, log *slog.Logger, answer func(context.Context, json.RawMessage) mcp.JSONRPCMessage) *ndjsonTransport {
	return &ndjsonTransport{
		input: bufio.NewReader(input), output: output, answer: answer, log: log,
		turns: make(chan struct{}, callsAtOnce), due: map[uint64]*request{},
		ended: make(chan struct{}), turn: make(chan struct{}), spare: make(chan struct{}, 1),
	}
}

// serve runs until input ends, the output is broken, or ctx ends.
func (t *ndjsonTransport) serve(ctx context.Context) error {
	ctx, t.broken = context.WithCancelCause(ctx)
	defer t.awaitRunning()
	defer t.broken(nil)
	go t.read(ctx) // ends with the input, which nothing else can interrupt
	select {
	case <-t.ended:
		t.awaitAnswers(ctx)
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// awaitRunning stops accepting lines and waits for running work.
func (t *ndjsonTransport) awaitRunning() {
	t.mu.Lock()
	t.over = true
	t.mu.Unlock()
	t.running.Wait()
}

// works counts an accepted line; it returns false if no lines are accepted any more.
func (t *ndjsonTransport) works() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		t.running.Add(1)
	}
	return !t.over
}

// read reads lines until the input ends. The goroutine that reads a tool call also
// runs it, and another goroutine continues reading. A handed-over call would wait
// for that goroutine to wake up, and run on a small stack.
func (t *ndjsonTransport) read(ctx context.Context) {
	for {
		line, err := readLine(t.input)
		if !t.works() {
			return
		}
		run := t.take(ctx, bytes.TrimSpace(line))
		switch {
		case err != nil:
			close(t.ended)
		case run != nil:
			t.handOver(ctx)
		}
		if run != nil {
			run()
		}
		t.running.Done()
		if err != nil || run != nil && !t.awaitTurn(ctx) {
			return
		}
	}
}

// handOver lets another goroutine continue reading.
func (t *ndjsonTransport) handOver(ctx context.Context) {
	select {
	case t.turn <- struct{}{}:
	default: // there is no spare reader
		go t.read(ctx)
	}
}

// awaitTurn waits until this goroutine must read again. One such goroutine is kept:
// a host with sequential requests needs two.
func (t *ndjsonTransport) awaitTurn(ctx context.Context) bool {
	select {
	case t.spare <- struct{}{}:
		defer func() { <-t.spare }()
	default:
		return false
	}
	select {
	case <-t.turn:
		return true
	case <-t.ended:
	case <-ctx.Done():
	}
	return false
}

func (t *ndjsonTransport) awaitAnswers(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.running.Wait()
	}()
	late := time.NewTimer(answerPatience)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	case <-ctx.Done():
	}
}

// take handles a line. It returns a tool call to be run in parallel to the next
// lines.
func (t *ndjsonTransport) take(ctx context.Context, line []byte) (run func()) {
	if len(line) == 0 || ctx.Err() != nil {
		return nil
	}
	if line[0] == '[' && t.batches.Load() {
		return t.handleBatch(ctx, line)
	}
	return t.handleMessage(ctx, line, nil)
}

// handleMessage handles one message, possibly of a batch.
func (t *ndjsonTransport) handleMessage(ctx context.Context, line []byte, in *batch) (run func()) {
	m, refused := parseMessage(line)
	switch {
	case refused != nil:
		t.reply(in, *refused, nil)
	case m.method == "": // an answer: Bridge sends the host no requests
	case m.id == nil && m.method == string(mcp.MethodNotificationCancelled):
		t.cancel(m.params)
	case m.id == nil:
		t.shielded(ctx, &request{message: m}) // a notification is never answered
	default:
		return t.begin(ctx, m, in)
	}
	return nil
}

// reply writes an answer, or adds it to the batch of its request. It calls sent, if
// set, once the answer is written.
func (t *ndjsonTransport) reply(in *batch, answer mcp.JSONRPCMessage, sent func()) {
	if in != nil {
		in.add(answer, sent)
		return
	}
	if t.write(answer) && sent != nil {
		sent()
	}
}

// begin starts a request. Requests other than tool calls are quick, and are
// answered before the next line is read.
func (t *ndjsonTransport) begin(ctx context.Context, m message, in *batch) (run func()) {
	if in != nil && m.method == string(mcp.MethodInitialize) {
		in.add(refusal(m.id, mcp.INVALID_REQUEST, "initialize comes alone, not in a batch"), nil)
		return nil
	}
	isCall := m.method == string(mcp.MethodToolsCall)
	r := &request{id: m.id, write: t.write, batch: in}
	if isCall {
		if r.params = m.plainCall(); r.params != nil {
			r.args = json.RawMessage(r.params.Arguments)
		} else {
			r.args = m.removeArguments()
		}
	}
	ctx, r.cancel = context.WithCancel(context.WithValue(ctx, requestKey{}, r))
	if !t.enter(r) {
		r.cancel()
		t.reply(in, refusal(m.id, codeBusy, "too many requests wait for their answers"), nil)
		return nil
	}
	r.message = m
	if isCall {
		return func() { t.runInTurn(ctx, r) }
	}
	t.run(ctx, r)
	return nil
}

// enter numbers a request; it returns false if there is no room for it.
func (t *ndjsonTransport) enter(r *request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.due) >= mostDue {
		return false
	}
	t.last++
	r.number = t.last
	t.due[r.number] = r
	return true
}

func (t *ndjsonTransport) runInTurn(ctx context.Context, r *request) {
	select {
	case t.turns <- struct{}{}:
		defer func() { <-t.turns }()
		t.run(ctx, r)
	case <-ctx.Done():
		t.finish(r)
	}
}

func (t *ndjsonTransport) run(ctx context.Context, r *request) {
	defer t.finish(r)
	answer := t.shielded(ctx, r)
	if !t.leaves(ctx, r) {
		if r.dropped != nil {
			r.dropped()
		}
		return
	}
	if agreed, ok := versionIn(answer); ok {
		t.batches.Store(agreed == batchVersion)
	}
	t.reply(r.batch, withID(answer, r.id), r.sent)
}

// shielded keeps a panic of one request from ending the session.
func (t *ndjsonTransport) shielded(ctx context.Context, r *request) (answer mcp.JSONRPCMessage) {
	defer func() {
		if p := recover(); p != nil {
			t.log.Error("a request panicked", "panic", p, "stack", string(debug.Stack()))
			answer = refusal(r.id, mcp.INTERNAL_ERROR, "Bridge could not do it; its log says why.")
			r.sent = r.dropped // this answer carries no mail
		}
	}()
	if r.params != nil && t.direct != nil {
		if answer, done := t.direct(ctx, *r.params); done {
			return answer
		}
	}
	return t.answer(ctx, r.message.forLibrary(r.number))
}

// leaves reports whether the answer may be written. After that a cancellation is
// too late.
func (t *ndjsonTransport) leaves(ctx context.Context, r *request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.leaving = ctx.Err() == nil
	return r.leaving
}

// finish removes an answered or dropped request.
func (t *ndjsonTransport) finish(r *request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.cancel()
	delete(t.due, r.number)
}

// cancel cancels the requests with an id. The library would do that too, but it may
// see a request only after its cancellation.
func (t *ndjsonTransport) cancel(params json.RawMessage) {
	var named struct {
		ID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &named) != nil {
		return // a notification is never answered
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.due {
		if !r.leaving && sameID(r.id, named.ID) {
			r.cancel()
		}
	}
}

// write writes one frame. A failed write ends the session.
func (t *ndjsonTransport) write(answer mcp.JSONRPCMessage) bool {
	frame, err := json.Marshal(answer)
	if err == nil {
		_, err = t.output.Write(append(frame, '\n'))
	}
	if err != nil {
		t.broken(err)
	}
	return err == nil
}

// readLine reads up to the next line break or the end. Of a too long line it keeps
// one byte more than the limit and drops the rest.
func readLine(input *bufio.Reader) (line []byte, err error) {
	for {
		part, err := input.ReadSlice('\n')
		line = append(line, part[:min(len(part), maxLineBytes+1-len(line))]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
