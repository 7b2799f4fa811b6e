package run

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"bridge/backend/core/job"
)

// Calls matches what was asked of a CLI with its answers.
type Calls struct {
	mu      sync.Mutex // guards what follows
	next    int
	pending map[string]chan Reply
	over    bool
}

// Reply is a CLI's answer to one request of ours.
type Reply struct {
	Result  json.RawMessage
	Refusal *Refusal
}

// Refusal is the CLI's own error.
type Refusal struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

func (r *Refusal) Error() string { return r.Message }

// Sender takes one line to a CLI.
type Sender interface {
	// Send fails with job.ErrEnded after the agent has stopped reading, and with
	// job.ErrUnconfirmed if the line may have been sent.
	Send(ctx context.Context, line []byte) error
}

// Call sends the request that the function request returns for a new id, and waits for the
// answer. It fails with ErrEnded after the end of the connection, with a Refusal if the CLI
// refuses, and with ErrUnconfirmed if no answer came.
func (c *Calls) Call(ctx context.Context, p Sender, request func(id string) any) (json.RawMessage, error) {
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return nil, job.ErrEnded
	}
	if c.pending == nil {
		c.pending = map[string]chan Reply{}
	}
	c.next++
	id := strconv.Itoa(c.next)
	answered := make(chan Reply, 1) // room for one answer, because its caller may be gone
	c.pending[id] = answered
	c.mu.Unlock()
	defer c.forget(id)
	line, err := json.Marshal(request(id))
	if err != nil {
		return nil, fmt.Errorf("say it in JSON: %w", err)
	}
	if err := p.Send(ctx, line); err != nil {
		return nil, err
	}
	select {
	case r, ok := <-answered:
		switch {
		case !ok:
			return nil, job.ErrUnconfirmed
		case r.Refusal != nil:
			return nil, r.Refusal
		}
		return r.Result, nil
	case <-ctx.Done():
		return nil, job.ErrUnconfirmed
	}
}

func (c *Calls) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, id)
}

// Settle hands an answer to who waits for it.
func (c *Calls) Settle(id string, r Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answered, pending := c.pending[id]; pending {
		answered <- r
		delete(c.pending, id)
	}
}

// End says that no answer comes any more.
func (c *Calls) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	for id, answered := range c.pending {
		close(answered)
		delete(c.pending, id)
	}
}
