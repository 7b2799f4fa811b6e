package sharing

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/remote"
)

// overlap is how far before what is known to be here another PC is asked again, in
// milliseconds: its clock may have been put back since. What is here already is not
// stored a second time.
const overlap = 24 * 60 * 60 * 1000

// syncState is how far decisions were exchanged on this link.
type syncState struct {
	looked   bool  // said holds
	said     int64 // the last decision that was recorded before this link, or told on it
	asked    bool
	answered bool
	question flight         // of a PC that has answered: where it does not, it is asked again
	since    remote.Cursor  // what was asked for last
	resume   *remote.Cursor // what to ask for next, where more came than this PC takes at once
	later    flight         // they could not be stored: they are asked for again then
}

// mayShare reports whether decisions are exchanged with that PC, as far as this one
// is concerned.
func (p *pair) mayShare() bool {
	return p.status.Can(remote.DecisionsCapability) && p.allows(remote.ShareDecisions, p.pc.Name) == nil
}

// sendDecisions asks for what was decided there, once on each link, and tells what is
// decided here from then on. What was decided before, and what did not arrive, the
// other PC asks for.
func (p *pair) sendDecisions(ctx context.Context) error {
	if due := p.sync.question; !due.again.IsZero() && !due.isOut(p.opts.Now()) {
		p.sync.asked, p.sync.question = false, flight{}
	}
	last, err := p.mark(ctx)
	if err != nil || !p.mayShare() {
		return err
	}
	if since := p.overrun.asked.Swap(nil); since != nil {
		if err := p.answer(ctx, *since); err != nil {
			return err
		}
	}
	if p.overrun.told.Swap(false) {
		p.sync.asked = false
		p.hold(&p.sync.later) // it may go on like that
	}
	if !p.sync.asked && !p.sync.later.isOut(p.opts.Now()) {
		since := remote.Cursor{CreatedAt: max(p.upTo-overlap, 0)}
		if p.sync.resume != nil {
			since = *p.sync.resume
		}
		if err := p.ask(ctx, since); err != nil {
			return err
		}
		p.sync.asked, p.sync.later.again, p.sync.resume = true, time.Time{}, nil
	}
	if last == p.sync.said {
		return nil
	}
	own, err := p.opts.DB.Remote().DecidedAfter(ctx, p.sync.said)
	if err != nil {
		return err
	}
	for _, rev := range own {
		one, err := decidedFor(p.status, rev)
		if err != nil {
			return err
		}
		if err := p.sendSync(ctx, remote.Sync{Kind: remote.SyncUpsert, Upsert: &one}); err != nil {
			return err
		}
	}
	p.sync.said = last
	return nil
}

// decidedFor returns a decision as a PC can read it: an older Bridge there gets a
// withdrawal as a decision whose text says so.
func decidedFor(pc remote.Status, rev decision.Revision) (remote.Decided, error) {
	decided, err := remote.DecidedOf(rev)
	decided.Withdrawn = decided.Withdrawn && pc.Can(remote.WithdrawalsCapability)
	return decided, err
}

// mark returns the last decision that was recorded here. The first one on a link is where
// telling begins: what was decided before is in each answer on it.
func (p *pair) mark(ctx context.Context) (last int64, err error) {
	last, err = p.opts.DB.Remote().LastDecision(ctx)
	if err == nil && !p.sync.looked {
		p.sync.looked, p.sync.said = true, last
	}
	return last, err
}

// overrun is what the frames were about that were dropped because too many waited: what
// they told is asked for again, and what they asked is answered after the others.
type overrun struct {
	told  atomic.Bool
	asked atomic.Pointer[remote.Cursor]
}

func (o *overrun) note(payload []byte, now int64) {
	in, err := remote.ParseSync(payload, now)
	switch {
	case err != nil:
		return
	case in.Kind == remote.SyncRequest:
		o.asked.Store(in.Since)
	default:
		o.told.Store(true)
	}
}

func (p *pair) ask(ctx context.Context, since remote.Cursor) error {
	if p.sync.answered {
		p.begin(&p.sync.question)
	}
	p.sync.since = since
	return p.sendSync(ctx, remote.Sync{Kind: remote.SyncRequest, Since: &since})
}

// dropOver reports whether a PC has brought more decisions than this one takes in this
// time (SEC-12). What comes is dropped then, and asked for again later.
func (s *syncState) dropOver(taken *remote.Allowance, now time.Time) bool {
	if taken.Left(remote.DecisionLimit, now) > 0 {
		return false
	}
	if s.resume == nil && s.asked {
		since := s.since
		s.resume = &since
	}
	s.asked, s.question = false, flight{}
	s.later = flight{again: now.Add(taken.Wait(remote.DecisionLimit, remote.MaxDecisions, now))}
	return true
}

func (p *pair) sendSync(ctx context.Context, s remote.Sync) error {
	payload, err := remote.EncodeSync(s)
	return p.send(ctx, remote.DecisionsFrame, payload, err)
}

// takeSync takes a frame about decisions. Nothing is said to a PC with which the owner
// does not share them, and nothing of it is kept.
func (p *pair) takeSync(ctx context.Context, data []byte) error {
	if err := p.allows(remote.ShareDecisions, p.pc.Name); err != nil {
		return err
	}
	in, err := remote.ParseSync(data, p.now())
	if err != nil {
		return err
	}
	switch {
	case in.Kind == remote.SyncRequest:
		return p.answer(ctx, *in.Since)
	case p.sync.dropOver(&p.decided, p.opts.Now()):
		return nil
	case in.Kind == remote.SyncUpsert:
		return p.keep(ctx, []remote.Decided{*in.Upsert}, true)
	}
	return p.takeState(ctx, in)
}

// answer sends what comes after a place. A PC that asks may have been allowed to
// answer just now: what it was asked before is asked again, if it never answered.
func (p *pair) answer(ctx context.Context, since remote.Cursor) error {
	if _, err := p.mark(ctx); err != nil {
		return err
	}
	own, err := p.opts.DB.Remote().Shareable(ctx)
	if err != nil {
		return err
	}
	out := remote.Sync{Kind: remote.SyncState}
	for _, rev := range own {
		one, err := decidedFor(p.status, rev)
		if err != nil {
			return err
		}
		if !one.Cursor().After(since) {
			continue
		}
		if len(out.Decisions) == remote.MaxDecisions {
			out.More = true
			break
		}
		out.Decisions = append(out.Decisions, one)
	}
	if !p.sync.answered {
		p.sync.asked = false
	}
	return p.sendSync(ctx, out)
}

// takeState keeps what another PC has decided and asks for the rest. The sessions
// hear of it at the end: what an earlier part says a later one may replace.
func (p *pair) takeState(ctx context.Context, in remote.Sync) error {
	p.sync.answered, p.sync.question = true, flight{}
	err := p.keep(ctx, in.Decisions, !in.More)
	if !p.sync.asked || len(in.Decisions) == 0 {
		return err
	}
	last := in.Decisions[len(in.Decisions)-1].Cursor()
	p.upTo = last.CreatedAt
	if in.More {
		err = errors.Join(err, p.ask(ctx, last))
	}
	return err
}

func (p *pair) keep(ctx context.Context, decided []remote.Decided, tell bool) error {
	revisions := make([]decision.Revision, len(decided))
	for i, one := range decided {
		revisions[i] = one.Revision(p.pc.Name)
	}
	fresh, err := p.opts.Broker.Import(ctx, p.pc, revisions, tell)
	p.decided.Take(fresh)
	if slices.Contains([]bridge.Code{bridge.Storage, bridge.Unavailable}, bridge.CodeOf(err)) {
		p.sync.asked, p.sync.answered = false, false
		p.hold(&p.sync.later)
	} else {
		p.sync.later = flight{}
	}
	return err
}
