package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// batchVersion is the only protocol version with batches: several messages in one
// line, as a list, and their answers in one line.
const batchVersion = "2025-03-26"

// batch collects the answers to the requests of one line.
type batch struct {
	mu      sync.Mutex
	answers []mcp.JSONRPCMessage
	sent    []func()
}

// add adds an answer, and the function to call once the answers are written.
func (b *batch) add(answer mcp.JSONRPCMessage, sent func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers = append(b.answers, answer)
	if sent != nil {
		b.sent = append(b.sent, sent)
	}
}

// handleBatch handles the messages of a line. It returns a function that runs the
// line's tool calls concurrently and then writes all answers.
func (t *ndjsonTransport) handleBatch(ctx context.Context, line []byte) (run func()) {
	var parts []json.RawMessage
	switch err := json.Unmarshal(line, &parts); {
	case len(line) > maxLineBytes:
		t.write(refusal(nil, mcp.INVALID_REQUEST, "the batch is too long"))
		return nil
	case err != nil:
		t.write(refusal(nil, mcp.PARSE_ERROR, "the line is no JSON"))
		return nil
	case len(parts) == 0:
		t.write(refusal(nil, mcp.INVALID_REQUEST, "the batch is empty"))
		return nil
	}
	b := &batch{}
	var calls []func()
	for _, part := range parts {
		if call := t.handleMessage(ctx, bytes.TrimSpace(part), b); call != nil {
			calls = append(calls, call)
		}
	}
	if len(calls) == 0 {
		t.writeBatch(b)
		return nil
	}
	return func() {
		var running sync.WaitGroup
		for _, call := range calls {
			running.Go(call)
		}
		running.Wait()
		t.writeBatch(b)
	}
}

// writeBatch writes the answers in one line, or nothing without answers.
func (t *ndjsonTransport) writeBatch(b *batch) {
	if len(b.answers) == 0 || !t.write(b.answers) {
		return
	}
	for _, sent := range b.sent {
		sent()
	}
}

// versionIn returns the agreed protocol version of an answer. ok is true only for
// the answer to initialize.
func versionIn(answer mcp.JSONRPCMessage) (version string, ok bool) {
	response, _ := answer.(mcp.JSONRPCResponse)
	switch result := response.Result.(type) {
	case mcp.InitializeResult:
		return result.ProtocolVersion, true
	case *mcp.InitializeResult:
		return result.ProtocolVersion, true
	}
	return "", false
}
