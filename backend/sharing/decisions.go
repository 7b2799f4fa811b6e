package sharing

import (
	"context"
	"slices"
	"time"

	"bridge/backend/bridge"
	"bridge/backend/decision"
	"bridge/backend/remote"
)

// overlap is how far before the newest decision of another PC it is asked again, in
// milliseconds: its clock may have been put back since. What is here already is not
// stored a second time.
const overlap = 24 * 60 * 60 * 1000

// syncState is how far decisions were exchanged on this link.
type syncState struct {
	looked   bool  // said holds
	said     int64 // the last decision that was recorded before this link, or told on it
	asked    bool
	answered bool
	later    flight // they could not be stored: they are asked for again then
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
	last, err := p.opts.DB.Remote().LastDecision(ctx)
	if err != nil {
		return err
	}
	if !p.sync.looked {
		p.sync.looked, p.sync.said = true, last
	}
	if !p.mayShare() {
		return nil
	}
	if !p.sync.asked && !p.sync.later.isOut(p.opts.Now()) {
		_, newest, err := p.opts.DB.Remote().Imported(ctx, p.pc.ID)
		if err != nil {
			return err
		}
		if err := p.ask(ctx, remote.Cursor{CreatedAt: max(newest-overlap, 0)}); err != nil {
			return err
		}
		p.sync.asked, p.sync.later.again = true, time.Time{}
	}
	if last == p.sync.said {
		return nil
	}
	own, err := p.opts.DB.Remote().DecidedAfter(ctx, p.sync.said)
	if err != nil {
		return err
	}
	for _, rev := range own {
		one, err := remote.DecidedOf(rev)
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

func (p *pair) ask(ctx context.Context, since remote.Cursor) error {
	return p.sendSync(ctx, remote.Sync{Kind: remote.SyncRequest, Since: &since})
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
	switch in.Kind {
	case remote.SyncRequest:
		return p.answer(ctx, *in.Since)
	case remote.SyncUpsert:
		return p.keep(ctx, []remote.Decided{*in.Upsert}, true)
	default:
		return p.takeState(ctx, in)
	}
}

// answer sends what comes after a place. A PC that asks may have been allowed to
// answer just now: what it was asked before is asked again, if it never answered.
func (p *pair) answer(ctx context.Context, since remote.Cursor) error {
	own, err := p.opts.DB.Remote().Shareable(ctx)
	if err != nil {
		return err
	}
	out := remote.Sync{Kind: remote.SyncState}
	for _, rev := range own {
		one, err := remote.DecidedOf(rev)
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
	p.sync.answered = true
	if err := p.keep(ctx, in.Decisions, !in.More); err != nil || !in.More {
		return err
	}
	return p.ask(ctx, in.Decisions[len(in.Decisions)-1].Cursor())
}

func (p *pair) keep(ctx context.Context, decided []remote.Decided, tell bool) error {
	revisions := make([]decision.Revision, len(decided))
	for i, one := range decided {
		revisions[i] = one.Revision(p.pc.Name)
	}
	err := p.opts.Broker.Import(ctx, p.pc, revisions, tell)
	if slices.Contains([]bridge.Code{bridge.Storage, bridge.Unavailable}, bridge.CodeOf(err)) {
		p.sync.asked, p.sync.answered = false, false
		p.hold(&p.sync.later)
	} else {
		p.sync.later = flight{}
	}
	return err
}
