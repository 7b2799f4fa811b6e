package mcpserver

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"bridge/backend/bridge"
	"bridge/backend/ipc"
	"bridge/backend/mail"
	"bridge/backend/session"
)

// acks holds the loans of answers on their way out, until the answer's bytes are
// written and its acknowledgement is durable.
type acks struct {
	mu   sync.Mutex
	open map[string]session.Loan // by loan id
}

func (a *acks) hold(loan session.Loan) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open == nil {
		a.open = map[string]session.Loan{}
	}
	a.open[loan.ID] = loan
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

// ackPatience is how long an acknowledgement waits for a broker before it is
// kept in the read journal.
const ackPatience = 5 * time.Second

// acknowledge tells the broker that an answer with mail was written (MSG-06).
// Nobody waits for it but the session's end.
func (s *Server) acknowledge(loan session.Loan, tool string) {
	s.running.Go(func() {
		defer s.acks.done(loan)
		s.confirm(ipc.Confirm{Loan: loan, Stage: bridge.StageConsumed, Via: mail.ViaTool, Detail: tool})
	})
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

// giveBack returns the mail of an answer that nobody gets: the host has
// cancelled the call, or has gone.
func (s *Server) giveBack(loan session.Loan) {
	defer s.acks.done(loan)
	ctx, cancel := context.WithTimeout(context.Background(), ackPatience)
	defer cancel()
	if err := s.keeper.Do(ctx, func(c *ipc.Client) error { return c.Return(ctx, loan.ID) }); err != nil {
		s.opts.Log.Warn("mail of a cancelled call waits for the next connection", "err", err)
	}
}
