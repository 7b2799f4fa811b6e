package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// lines carries the session's messages, one JSON-RPC message a line. A line that
// holds none is answered with an error and passed over: a slip of the host must
// not end its session, as it would with the library's own transport.
type lines struct {
	input  *bufio.Reader
	output io.Writer // takes one frame in each call

	messages chan jsonrpc.Message // closed when the input has ended
	closed   chan struct{}
	closing  sync.Once

	mu       sync.Mutex
	pending  map[jsonrpc.ID]bool // requests without an answer
	answered chan struct{}       // capacity 1: an answer was written
}

func newLines(input io.Reader, output io.Writer) *lines {
	return &lines{
		input: bufio.NewReader(input), output: output, messages: make(chan jsonrpc.Message), closed: make(chan struct{}),
		pending: map[jsonrpc.ID]bool{}, answered: make(chan struct{}, 1),
	}
}

// Connect starts to read. The reading ends with the input, which nothing else
// can interrupt.
func (l *lines) Connect(context.Context) (mcp.Connection, error) {
	go l.readAll()
	return l, nil
}

func (l *lines) SessionID() string { return "" }

func (l *lines) Close() error {
	l.closing.Do(func() { close(l.closed) })
	return nil
}

// Read waits for the next message; io.EOF tells that there will be none.
func (l *lines) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case message, ok := <-l.messages:
		if !ok {
			return nil, io.EOF
		}
		return message, nil
	case <-l.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *lines) Write(_ context.Context, message jsonrpc.Message) error {
	frame, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		return err
	}
	if _, err := l.output.Write(append(frame, '\n')); err != nil {
		return err
	}
	if answer, ok := message.(*jsonrpc.Response); ok {
		l.settle(answer.ID)
	}
	return nil
}

func (l *lines) readAll() {
	defer close(l.messages)
	for {
		line, err := readLine(l.input)
		if line = bytes.TrimSpace(line); len(line) > 0 && !l.take(line) {
			return
		}
		if err != nil {
			l.awaitAnswers()
			return
		}
	}
}

// take passes on the message of a line; false means that nobody listens any more.
func (l *lines) take(line []byte) bool {
	message, err := jsonrpc.DecodeMessage(line)
	if err != nil || len(line) > maxLineBytes {
		return l.refuse(line) == nil
	}
	if request, ok := message.(*jsonrpc.Request); ok && request.ID.IsValid() {
		l.mu.Lock()
		l.pending[request.ID] = true
		l.mu.Unlock()
	}
	select {
	case l.messages <- message:
		return true
	case <-l.closed:
		return false
	}
}

// refusal is the answer to a line that holds no message. Its id is null unless
// the line names one.
type refusal struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

func (l *lines) refuse(line []byte) error {
	answer := refusal{JSONRPC: "2.0", ID: json.RawMessage("null")}
	answer.Error.Code, answer.Error.Message = jsonrpc.CodeInvalidRequest, "this is no JSON-RPC 2.0 request"
	var named struct {
		ID any `json:"id"`
	}
	switch {
	case len(line) > maxLineBytes:
		answer.Error.Message = "the request is too long"
	case !json.Valid(line):
		answer.Error.Code, answer.Error.Message = jsonrpc.CodeParseError, "the line is no JSON"
	case line[0] == '[':
		answer.Error.Message = "requests come one a line: batches are not served"
	case json.Unmarshal(line, &named) == nil:
		if id, err := jsonrpc.MakeID(named.ID); err == nil && id.IsValid() {
			answer.ID, _ = json.Marshal(named.ID) //nolint:errchkjson // it was just read from JSON
		}
	}
	frame, err := json.Marshal(answer)
	if err == nil {
		_, err = l.output.Write(append(frame, '\n'))
	}
	return err
}

func (l *lines) settle(id jsonrpc.ID) {
	l.mu.Lock()
	delete(l.pending, id)
	l.mu.Unlock()
	select {
	case l.answered <- struct{}{}:
	default: // somebody is told already
	}
}

// answerPatience is how long a session whose input has ended goes on for the
// answers that are due: requests and the end may come at once, through a pipe.
const answerPatience = 3 * time.Second

func (l *lines) awaitAnswers() {
	late := time.NewTimer(answerPatience)
	defer late.Stop()
	for {
		l.mu.Lock()
		due := len(l.pending)
		l.mu.Unlock()
		if due == 0 {
			return
		}
		select {
		case <-l.answered:
		case <-l.closed:
			return
		case <-late.C:
			return
		}
	}
}

// readLine reads up to the next line break or the end. Of a line beyond the
// bound it keeps one byte more than the bound and drops the rest.
func readLine(input *bufio.Reader) (line []byte, err error) {
	for {
		part, err := input.ReadSlice('\n')
		line = append(line, part[:min(len(part), maxLineBytes+1-len(line))]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
