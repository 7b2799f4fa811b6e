package sharing

import (
	"reflect"
	"time"

	"bridge/backend/core/remote"
)

// A team can have a thousand PCs, and something changes here many times a second: what
// each change costs must not grow with those that it does not concern. So one look finds
// the PCs for which there is something to do, and only these are woken; for a PC for
// which there never was anything, nothing runs at all.

// seen is what the last look saw.
type seen struct {
	ways    map[string]wayTo // by identity
	policy  remote.Policy
	decided int64
}

// wayTo is how it stood with a PC.
type wayTo struct {
	name  string
	up    bool
	since time.Time
}

// settled is how long changes gather before all of them are looked at: every message sent
// on this PC is one, and a look for each took an eighth of the broker's work. What waits
// for a PC does not wait for that: it is woken by itself (Waiting).
const settled = 50 * time.Millisecond

func (s *Sharing) settle() {
	select {
	case <-time.After(settled):
	case <-s.sooner:
	case <-s.tasks.Done():
	}
}

// follow has the PCs looked at for which something is different, or waits, and ends the
// waiting for those that are known no more.
func (s *Sharing) follow() {
	if s.team != nil {
		s.team.wake()
	}
	now := seen{ways: map[string]wayTo{}}
	pending, forAll := s.look(&now)
	var known []string
	for _, status := range s.opts.Transport.Status() {
		known = append(known, status.ID)
		way := wayTo{status.Name, status.Up, status.Since}
		now.ways[status.ID] = way
		waits := pending[status.ID]
		delete(pending, status.ID)
		if waits || forAll || s.seen.ways[status.ID] != way {
			s.rouse(status, waits || status.Up && now.policy.AllowShare(remote.ShareDecisions, status.Name) == nil)
		}
	}
	s.seen = now
	if len(pending) == 0 {
		return
	}
	refused, err := s.opts.DB.Remote().RefuseStrangers(s.tasks.Context(), known, "it is neither paired with this PC nor in its team any more")
	if refused > 0 {
		s.opts.Broker.Changed()
	}
	s.complain(err)
}

// look finds out for which PCs something waits, and whether something is different that
// concerns all of them.
func (s *Sharing) look(now *seen) (pending map[string]bool, forAll bool) {
	policy, err := s.opts.Policy()
	if err != nil {
		policy = remote.Policy{} // nothing is allowed
	}
	now.policy = policy
	pending, err = s.opts.DB.Remote().Pending(s.tasks.Context())
	if err == nil {
		now.decided, err = s.opts.DB.Remote().LastDecision(s.tasks.Context())
	}
	s.complain(err)
	return pending, err != nil || now.decided != s.seen.decided || !reflect.DeepEqual(now.policy, s.seen.policy)
}

// rouse has a PC looked at; begin says that there is something to do for it, also where
// nothing runs for it yet.
func (s *Sharing) rouse(status remote.Status, begin bool) {
	p := s.begun(status.ID)
	if p == nil && begin {
		p = s.pair(remote.PC{ID: status.ID, Name: status.Name})
	}
	if p != nil {
		p.wake()
	}
}

func (s *Sharing) complain(err error) {
	if err != nil && !s.tasks.HasEnded() {
		s.opts.Log.Warn("what waits for other PCs could not be looked at", "err", err)
	}
}
