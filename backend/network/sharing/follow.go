package sharing

import (
	"reflect"
	"time"

	"bridge/backend/core/remote"
)

// A team can have a thousand PCs, and changes here happen many times a second. The cost
// of a change must not grow with the PCs that it does not concern. Therefore one check
// finds the PCs that need work and wakes only these. No goroutine runs for a PC that
// never needed any.

// seen is the state at the last check.
type seen struct {
	ways    map[string]wayTo // by id
	policy  remote.Policy
	decided int64
}

// wayTo is the state of the way to a PC.
type wayTo struct {
	name  string
	up    bool
	since time.Time
}

// settled is how long changes gather before one check covers all of them. Each message
// sent on this PC is a change, and a check for each took an eighth of the broker's work.
// Mail for a PC does not wait for the check: Waiting wakes the PC.
const settled = 50 * time.Millisecond

func (s *Sharing) settle() {
	select {
	case <-time.After(settled):
	case <-s.sooner:
	case <-s.tasks.Done():
	}
}

// follow wakes the PCs for which something changed or waits, and refuses mail that waits
// for PCs no longer known.
func (s *Sharing) follow() {
	if s.team != nil {
		s.team.notify()
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

// look finds the PCs for which something waits, and whether something changed that
// concerns all PCs.
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

// rouse wakes a PC. begin is set if there is work for it, so that a goroutine starts if
// none runs yet.
func (s *Sharing) rouse(status remote.Status, begin bool) {
	p := s.workerOf(status.ID)
	if p == nil && begin {
		p = s.pair(remote.PC{ID: status.ID, Name: status.Name})
	}
	if p != nil {
		p.notify()
	}
}

func (s *Sharing) complain(err error) {
	if err != nil && !s.tasks.HasEnded() {
		s.opts.Log.Warn("what waits for other PCs could not be looked at", "err", err)
	}
}
