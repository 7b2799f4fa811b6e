package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"bridge/backend/bridge"
	"bridge/backend/ipc"
	"bridge/backend/mail"
	"bridge/backend/session"
)

// ack is mail in an answer that is not written yet.
type ack struct {
	loan session.Loan
	tool string
}

// acks holds the loans of answers on their way out, until the answer's bytes are
// written and its acknowledgement is durable. An answer names its loan in its
// own _meta.
type acks struct {
	mu      sync.Mutex
	leaving map[string]ack // by loan id: the answer is not written yet
	open    map[string]session.Loan
	running sync.WaitGroup
}

// loanMeta is the member of an answer's _meta that names the loan in it.
const loanMeta = "bridge/loan"

func newAcks() acks {
	return acks{leaving: map[string]ack{}, open: map[string]session.Loan{}}
}

// hold remembers the loan behind a result and marks the result with it.
func (a *acks) hold(result *mcp.CallToolResult, held ack) {
	a.mu.Lock()
	defer a.mu.Unlock()
	result.Meta = mcp.Meta{loanMeta: held.loan.ID}
	a.leaving[held.loan.ID] = held
	a.open[held.loan.ID] = held.loan
}

// held lists the loans that are not acknowledged yet. A new broker must not
// give their mail to anyone else.
func (a *acks) held() []session.Loan {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Values(a.open))
}

func (a *acks) done(loan session.Loan) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, loan.ID)
}

// take returns the loan of an answer that was just written.
func (a *acks) take(frame []byte) (ack, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.leaving) == 0 {
		return ack{}, false
	}
	var answer struct {
		Result struct {
			Meta map[string]any `json:"_meta"`
		} `json:"result"`
	}
	if json.Unmarshal(frame, &answer) != nil {
		return ack{}, false
	}
	id, _ := answer.Result.Meta[loanMeta].(string)
	held, ok := a.leaving[id]
	delete(a.leaving, id)
	return held, ok
}

func (a *acks) wait() { a.running.Wait() }

// ackWriter tells written about every frame after its bytes are out. The MCP
// library writes each message in one call; the channel's notifications come from
// beside it.
type ackWriter struct {
	mu      sync.Mutex // one frame at a time
	output  io.Writer
	written func(frame []byte)
}

func (w *ackWriter) Write(frame []byte) (int, error) {
	w.mu.Lock()
	n, err := w.output.Write(frame)
	w.mu.Unlock()
	if err == nil {
		w.written(frame)
	}
	return n, err
}

// written acknowledges the mail that an answer carried (MSG-06).
func (s *Server) written(frame []byte) {
	held, ok := s.acks.take(frame)
	if !ok {
		return
	}
	s.acks.running.Go(func() { s.acknowledge(held) })
}

// ackPatience is how long an acknowledgement waits for a broker before it is
// kept in the read journal.
const ackPatience = 5 * time.Second

func (s *Server) acknowledge(held ack) {
	defer s.acks.done(held.loan)
	s.confirm(ipc.Confirm{Loan: held.loan, Stage: bridge.StageConsumed, Via: mail.ViaTool, Detail: held.tool})
}

// confirm tells the broker what became of a loan, or keeps it for the next one.
func (s *Server) confirm(confirm ipc.Confirm) {
	ctx, cancel := context.WithTimeout(context.Background(), ackPatience)
	defer cancel()
	if s.keeper.Do(ctx, func(c *ipc.Client) error { return c.Confirm(ctx, confirm) }) == nil {
		return
	}
	if err := s.opts.Journal.Keep(confirm, s.opts.Now().UnixMilli()); err != nil {
		s.opts.Log.Error("a receipt is lost: its mail will be shown again", "err", err)
	}
}

// success writes a tool's answer as one JSON text block.
func (s *Server) success(name string, value any, loan *session.Loan) (*mcp.CallToolResult, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode the answer of %s: %w", name, err)
	}
	result := said(string(text))
	if loan != nil {
		s.acks.hold(result, ack{loan: *loan, tool: name})
	}
	return result, nil
}
