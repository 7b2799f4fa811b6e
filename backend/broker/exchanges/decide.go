package exchanges

import (
	"cmp"
	"context"
	"slices"

	"bridge/backend/broker/mux"
	"bridge/backend/core/bridge"
	"bridge/backend/core/exchange"
	"bridge/backend/core/needs"
	"bridge/backend/core/remote"
	"bridge/backend/core/session"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
)

// Register serves api.OpExchange for the owner alone.
func (s *Service) Register(m *mux.Mux, askers mux.Askers) {
	mux.Handle(m, api.OpExchange, mux.ForOwner(askers, "pauses and resumes the messages of two sessions", s.Decide))
}

// Decide pauses or resumes the messages of two sessions to each other. To resume a pair
// that is not paused starts its count anew. It fails with Invalid or NotFound for names
// that are not two sessions of this PC, and with Storage or Unsupported if the file cannot
// be read or written. Then nothing has changed.
func (s *Service) Decide(ctx context.Context, args api.ExchangeArgs) (api.Exchange, error) {
	if err := args.Check(); err != nil {
		return api.Exchange{}, err
	}
	a, err := s.resolve(args.A)
	if err != nil {
		return api.Exchange{}, err
	}
	b, err := s.resolve(args.B)
	if err != nil {
		return api.Exchange{}, err
	}
	if a.ID == b.ID {
		return api.Exchange{}, bridge.Errorf(bridge.Invalid, "name two different sessions: both names are %s", a.Name)
	}
	answer := api.Exchange{A: a.Name, B: b.Name, Paused: args.Action == api.ExchangePause}
	pair := exchange.PairOf(a.ID, b.ID)
	if answer.Changed, err = s.set(pair, answer.Paused); err != nil {
		return api.Exchange{}, err
	}
	if answer.Waiting, err = s.between(ctx, pair); err != nil {
		s.opts.Log.Error("what waits between two sessions cannot be counted", "err", err) // the decision holds all the same
	}
	s.offer(context.WithoutCancel(ctx), pair, !answer.Paused)
	s.opts.Changed()
	return answer, nil
}

// resolve returns the session of this PC with that name or id.
func (s *Service) resolve(name string) (session.Recipient, error) {
	if host, _ := remote.SplitName(name); host != "" {
		return session.Recipient{}, bridge.Errorf(bridge.Invalid, "%s is on another PC: only the messages of two sessions of this PC can be paused", bridge.OneLine(name))
	}
	if name == session.Everyone {
		return session.Recipient{}, bridge.Errorf(bridge.Invalid, "name two sessions, not %s", session.Everyone)
	}
	s.opts.Presence.Lock()
	defer s.opts.Presence.Unlock()
	found, err := s.opts.Presence.Roster.Resolve(name, bridge.OwnerID)
	if err != nil {
		return session.Recipient{}, err
	}
	return found[0], nil
}

// set writes the state of a pair to the file, and then applies it. It reports whether that
// is a change. If the file cannot be read, it fails for a pause; a pair is resumed until
// the broker ends, and the file stays as it is.
func (s *Service) set(pair exchange.Pair, paused bool) (changed bool, err error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	isOfPair := func(p config.Pause) bool { return isPause(p) && exchange.PairOf(p.A, p.B) == pair }
	pauses, err := s.opts.File.Pauses()
	isReadable := err == nil
	switch {
	case isReadable:
	case paused:
		return false, err
	default:
		s.opts.Log.Warn("two sessions are resumed until the broker ends", "err", err)
		s.mu.Lock()
		pauses = slices.Clone(s.pauses)
		s.mu.Unlock()
	}
	if slices.ContainsFunc(pauses, isOfPair) != paused {
		pauses = slices.DeleteFunc(pauses, isOfPair)
		if paused {
			pauses = append(pauses, config.Pause{A: pair.A, B: pair.B, At: s.opts.Now().UnixMilli()})
		}
		if isReadable {
			if err := s.opts.File.SetPauses(pauses); err != nil {
				return false, err
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = s.isPausedLocked(pair) != paused
	s.pauses = pauses
	s.talks.Forget(pair)
	return changed, nil
}

// offer makes earlier readings of the mail of both sessions stale, and has those that wait
// for mail look again. If the pair was resumed, it announces what waited.
func (s *Service) offer(ctx context.Context, pair exchange.Pair, resumed bool) {
	p := s.opts.Presence
	var live []*session.Session
	p.Lock()
	for _, id := range []string{pair.A, pair.B} {
		if peer, isLive := p.Roster.Get(id); isLive && p.Boxes[id] != nil {
			p.Boxes[id].Renew()
			p.Boxes[id].Signal()
			live = append(live, peer)
		}
	}
	p.Unlock()
	for _, peer := range live {
		if resumed {
			s.opts.Announce(ctx, peer)
		}
	}
}

// between counts the messages of a pair to each other that wait. The count is unknown with
// an error.
func (s *Service) between(ctx context.Context, pair exchange.Pair) (bridge.Count, error) {
	s.mu.Lock()
	a, b := s.idsLocked(pair.A), s.idsLocked(pair.B)
	s.mu.Unlock()
	waitingA, err := s.held(ctx, pair.A, b)
	if err != nil {
		return bridge.UnknownCount, err
	}
	waitingB, err := s.held(ctx, pair.B, a)
	if err != nil {
		return bridge.UnknownCount, err
	}
	return bridge.Count(waitingA + waitingB), nil
}

// Facts returns the pairs for the owner's needs: those that have exchanged too many
// messages, and those that are paused. If the store cannot be read, it returns all of them
// with an error, and what waits is unknown.
func (s *Service) Facts(ctx context.Context) ([]needs.ExchangeFact, error) {
	most, now := s.most(), s.opts.Now().UnixMilli()
	s.mu.Lock()
	over := slices.DeleteFunc(s.talks.Over(now, most), func(e exchange.Exchange) bool { return s.isPausedLocked(e.Pair) })
	pauses := slices.Clone(s.pauses)
	s.mu.Unlock()
	facts := make([]needs.ExchangeFact, 0, len(over)+len(pauses))
	for _, e := range over {
		facts = append(facts, s.fact(e.Pair, needs.ExchangeFact{Messages: bridge.Count(e.Messages), Since: e.Since}))
	}
	var unreadable error
	for _, p := range pauses {
		if !isPause(p) {
			continue
		}
		pair := exchange.PairOf(p.A, p.B)
		waiting, err := s.between(ctx, pair)
		unreadable = cmp.Or(unreadable, err)
		facts = append(facts, s.fact(pair, needs.ExchangeFact{Paused: true, Messages: waiting, Since: p.At}))
	}
	return facts, unreadable
}

// fact returns a fact with the two sessions of a pair, in the order of their names.
func (s *Service) fact(pair exchange.Pair, fact needs.ExchangeFact) needs.ExchangeFact {
	p := s.opts.Presence
	p.Lock()
	defer p.Unlock()
	two := []needs.ExchangeSession{{ID: pair.A, Name: p.NameLocked(pair.A)}, {ID: pair.B, Name: p.NameLocked(pair.B)}}
	slices.SortFunc(two, func(x, y needs.ExchangeSession) int {
		return cmp.Or(bridge.CompareNames(x.Name, y.Name), cmp.Compare(x.ID, y.ID))
	})
	fact.A, fact.B = two[0], two[1]
	return fact
}
