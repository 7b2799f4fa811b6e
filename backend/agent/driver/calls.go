package driver

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"bridge/backend/job"
)

// calls matches what was asked of a CLI with its answers.
type calls struct {
	mu      sync.Mutex // guards what follows
	next    int
	pending map[string]chan reply
	over    bool
}

// reply is a CLI's answer to one request of ours.
type reply struct {
	result  json.RawMessage
	refusal *refusal
}

// refusal is the CLI's own error.
type refusal struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (r *refusal) Error() string { return r.Message }

// call sends what request makes of a fresh id and waits for the answer.
// ErrUnconfirmed: it was sent, and nothing came.
func (c *calls) call(ctx context.Context, p *process, request func(id string) any) (json.RawMessage, error) {
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return nil, job.ErrEnded
	}
	if c.pending == nil {
		c.pending = map[string]chan reply{}
	}
	c.next++
	id := strconv.Itoa(c.next)
	answered := make(chan reply, 1) // one answer, which nobody may wait for any more
	c.pending[id] = answered
	c.mu.Unlock()
	defer c.forget(id)
	line, err := json.Marshal(request(id))
	if err != nil {
		return nil, fmt.Errorf("say it in JSON: %w", err)
	}
	if err := p.send(ctx, line); err != nil {
		return nil, err
	}
	select {
	case r, ok := <-answered:
		switch {
		case !ok:
			return nil, job.ErrUnconfirmed
		case r.refusal != nil:
			return nil, r.refusal
		}
		return r.result, nil
	case <-ctx.Done():
		return nil, job.ErrUnconfirmed
	}
}

func (c *calls) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, id)
}

// settle hands an answer to who waits for it.
func (c *calls) settle(id string, r reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answered, pending := c.pending[id]; pending {
		answered <- r
		delete(c.pending, id)
	}
}

// end says that no answer comes any more.
func (c *calls) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	for id, answered := range c.pending {
		close(answered)
		delete(c.pending, id)
	}
}
