package mcpserver

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// acks holds the leases of unsent answers, until the answer is written and its
// acknowledgement is durable.
type acks struct {
	mu   sync.Mutex
	open map[string]session.Lease // by lease id
}

func (a *acks) hold(lease session.Lease) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open == nil {
		a.open = map[string]session.Lease{}
	}
	a.open[lease.ID] = lease
}

// held returns the unacknowledged leases. A new broker must not give their mail to
// another session.
func (a *acks) held() []session.Lease {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Values(a.open))
}

func (a *acks) done(lease session.Lease) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, lease.ID)
}

// ackPatience is how long an acknowledgement waits for a broker before the read
// journal keeps it.
const ackPatience = 5 * time.Second

// acknowledge reports that an answer with mail was written and, if the host lived
// on, read (MSG-06). Output to a dying host stays in a pipe without a reader. Only
// the end of the session waits for acknowledge.
func (s *Server) acknowledge(lease session.Lease, tool string) {
	s.running.Go(func() {
		ack := api.Ack{Lease: lease, Stage: bridge.StageHanded, Via: mail.ViaTool, Detail: tool}
		s.ack(ack)
		s.acks.done(lease)
		if s.hostLivedOn() {
			ack.Stage = bridge.StageConsumed
			s.ack(ack)
		}
	})
}

const (
	// livesOn is how long a host must live after an answer to have read it: it
	// reads at once. Its next call says so earlier.
	livesOn = time.Second
	// endsWithin is how soon after its input a host that dies is gone. One that
	// only closes its server's input is still there.
	endsWithin = 200 * time.Millisecond
)

// hostLivedOn waits until it is clear whether the host has read an answer.
func (s *Server) hostLivedOn() bool {
	timer := time.NewTimer(livesOn)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ended:
		timer.Reset(endsWithin)
		<-timer.C
	}
	return s.opts.HostLives == nil || s.opts.HostLives()
}

// ack sends an acknowledgement to the broker, or keeps it for the next one.
func (s *Server) ack(ack api.Ack) {
	ctx, cancel := context.WithTimeout(context.Background(), ackPatience)
	defer cancel()
	if s.reconnector.Do(ctx, func(c *ipc.Client) error { return c.Ack(ctx, ack) }) == nil {
		return
	}
	if err := s.opts.Journal.Keep(ack, s.opts.Now().UnixMilli()); err != nil {
		s.opts.Log.Error("an ack is lost: its mail will be shown again", "err", err)
	}
}

// nack returns the mail of an undelivered answer: the host has cancelled the call,
// or has ended.
func (s *Server) nack(lease session.Lease) {
	defer s.acks.done(lease)
	ctx, cancel := context.WithTimeout(context.Background(), ackPatience)
	defer cancel()
	if err := s.reconnector.Do(ctx, func(c *ipc.Client) error { return c.Nack(ctx, lease.ID) }); err != nil {
		s.opts.Log.Warn("mail of a cancelled call waits for the next connection", "err", err)
	}
}
