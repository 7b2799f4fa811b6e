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

// overlap is how far before the last known decision a request to another PC starts, in
// milliseconds. The other PC's clock may have been set back. Known decisions are not
// stored twice.
const overlap = 24 * 60 * 60 * 1000

// syncState is how far decisions were exchanged on this link.
type syncState struct {
	looked    bool  // said is valid
	sent      int64 // the last decision recorded before this link, or sent on it
	requested bool
	answered  bool
	question  flight         // to a PC that has answered before: without an answer it is sent again
	since     remote.Cursor  // the cursor of the last request
	resume    *remote.Cursor // the next cursor, after more came than this PC takes at once
	later     flight         // decisions could not be stored: they are requested again then
}

// mayShare reports whether this PC allows the exchange of decisions with that PC, and
// that PC supports it.
func (p *pair) mayShare() bool {
	return p.status.Can(remote.DecisionsCapability) && p.allows(remote.ShareDecisions, p.pc.Name) == nil
}

// sendDecisions requests that PC's decisions, once on each link, and sends those made
// here from then on. The other PC requests earlier ones, and those that did not arrive.
func (p *pair) sendDecisions(ctx context.Context) error {
	if due := p.sync.question; !due.retryAt.IsZero() && !due.isOut(p.opts.Now()) {
		p.sync.requested, p.sync.question = false, flight{}
	}
	last, err := p.mark(ctx)
	if err != nil || !p.mayShare() {
		return err
	}
	if since := p.overrun.requested.Swap(nil); since != nil {
		if err := p.answer(ctx, *since); err != nil {
			return err
		}
	}
	if p.overrun.notified.Swap(false) {
		p.sync.requested = false
		p.hold(&p.sync.later) // it may continue like that
	}
	if !p.sync.requested && !p.sync.later.isOut(p.opts.Now()) {
		since := remote.Cursor{CreatedAt: max(p.upTo-overlap, 0)}
		if p.sync.resume != nil {
			since = *p.sync.resume
		}
		if err := p.ask(ctx, since); err != nil {
			return err
		}
		p.sync.requested, p.sync.later.retryAt, p.sync.resume = true, time.Time{}, nil
	}
	if last == p.sync.sent {
		return nil
	}
	own, err := p.opts.DB.Remote().DecidedAfter(ctx, p.sync.sent)
	if err != nil {
		return err
	}
	for _, rev := range own {
		decided, err := decidedFor(p.status, rev)
		if err != nil {
			return err
		}
		if err := p.sendSync(ctx, remote.Sync{Kind: remote.SyncUpsert, Upsert: &decided}); err != nil {
			return err
		}
	}
	p.sync.sent = last
	return nil
}

// decidedFor returns a decision in a form that the PC can read. An older Bridge gets a
// withdrawal as a decision whose text states it.
func decidedFor(pc remote.Status, rev decision.Revision) (remote.Decided, error) {
	decided, err := remote.DecidedOf(rev)
	decided.Withdrawn = decided.Withdrawn && pc.Can(remote.WithdrawalsCapability)
	return decided, err
}

// mark returns the last decision recorded here. The first mark on a link is where sending
// begins: each answer on the link holds the earlier ones.
func (p *pair) mark(ctx context.Context) (last int64, err error) {
	last, err = p.opts.DB.Remote().LastDecision(ctx)
	if err == nil && !p.sync.looked {
		p.sync.looked, p.sync.sent = true, last
	}
	return last, err
}

// overrun records the frames that were dropped because too many waited. What they sent is
// requested again, and what they requested is answered after the others.
type overrun struct {
	notified  atomic.Bool
	requested atomic.Pointer[remote.Cursor]
}

func (o *overrun) note(payload []byte, now int64) {
	in, err := remote.ParseSync(payload, now)
	switch {
	case err != nil:
		return
	case in.Kind == remote.SyncRequest:
		o.requested.Store(in.Since)
	default:
		o.notified.Store(true)
	}
}

func (p *pair) ask(ctx context.Context, since remote.Cursor) error {
	if p.sync.answered {
		p.begin(&p.sync.question)
	}
	p.sync.since = since
	return p.sendSync(ctx, remote.Sync{Kind: remote.SyncRequest, Since: &since})
}

// dropOver reports whether a PC has sent more decisions than this PC accepts in this time
// (SEC-12). Further decisions are then dropped, and requested again later.
func (s *syncState) dropOver(allowance *remote.Allowance, now time.Time) bool {
	if allowance.Left(remote.DecisionLimit, now) > 0 {
		return false
	}
	if s.resume == nil && s.requested {
		since := s.since
		s.resume = &since
	}
	s.requested, s.question = false, flight{}
	s.later = flight{retryAt: now.Add(allowance.Wait(remote.DecisionLimit, remote.MaxDecisions, now))}
	return true
}

func (p *pair) sendSync(ctx context.Context, s remote.Sync) error {
	payload, err := remote.EncodeSync(s)
	return p.send(ctx, remote.DecisionsFrame, payload, err)
}

// handleSync processes a frame about decisions. It sends and stores nothing for a PC with
// which the owner does not share decisions.
func (p *pair) handleSync(ctx context.Context, data []byte) error {
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
	return p.storeState(ctx, in)
}

// answer sends the decisions after a cursor. The asking PC may only now be allowed to
// answer: if it never answered, this PC's request is sent again.
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
		decided, err := decidedFor(p.status, rev)
		if err != nil {
			return err
		}
		if !decided.Cursor().After(since) {
			continue
		}
		if len(out.Decisions) == remote.MaxDecisions {
			out.More = true
			break
		}
		out.Decisions = append(out.Decisions, decided)
	}
	if !p.sync.answered {
		p.sync.requested = false
	}
	return p.sendSync(ctx, out)
}

// storeState stores another PC's decisions and requests the rest. Sessions are notified at
// the end, because a later part may replace an earlier decision.
func (p *pair) storeState(ctx context.Context, in remote.Sync) error {
	p.sync.answered, p.sync.question = true, flight{}
	err := p.keep(ctx, in.Decisions, !in.More)
	if !p.sync.requested || len(in.Decisions) == 0 {
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
	for i, item := range decided {
		revisions[i] = item.Revision(p.pc.Name)
	}
	added, err := p.opts.Broker.Import(ctx, p.pc, revisions, tell)
	p.decided.Take(added)
	if slices.Contains([]bridge.Code{bridge.Storage, bridge.Unavailable}, bridge.CodeOf(err)) {
		p.sync.requested, p.sync.answered = false, false
		p.hold(&p.sync.later)
	} else {
		p.sync.later = flight{}
	}
	return err
}
