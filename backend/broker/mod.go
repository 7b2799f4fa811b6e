package broker

import (
	"context"
	"slices"
	"time"

	"bridge/backend/agent/clidata"
	"bridge/backend/broker/mailbox"
	"bridge/backend/broker/wake"
	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

// mods is the part that gives the owner's words to claude's mods.
type mods struct{ *core }

// modWait serves the child process of a mod: it ends with a prompt to enter or a
// line to show. A session that has not registered yet is waited for.
func (p *mods) modWait(ctx context.Context, l *link, args api.ModWait) (api.ModReply, error) {
	if err := bridge.CheckID("the host session id", args.SessionID); err != nil {
		return api.ModReply{}, err
	}
	changes, stop := p.feed.Watch()
	defer stop()
	for {
		s, arrived := p.modSession(l, args)
		var doubt <-chan time.Time // never, unless words wait for a turn to end
		if s != nil {
			reply, held, err := p.modNext(ctx, l, s, args.Line)
			gone := bridge.CodeOf(err) == bridge.Unavailable
			if err != nil && !gone || reply != (api.ModReply{}) {
				return reply, err
			}
			if held {
				doubt = time.After(p.opts.Pace.Doubt)
			}
		}
		for waits := true; waits; {
			select {
			case <-arrived:
				waits = false
			case <-changes:
				now, _ := p.modSession(l, args)
				waits = now == s
			case <-doubt:
				p.doubtTurn(s)
				waits = false
			case <-ctx.Done():
				return api.ModReply{}, nil
			}
		}
	}
}

// modSession finds the session of a mod's conversation and makes the connection
// its mod: of several the newest. arrived is closed when there may be something
// to do.
func (p *mods) modSession(l *link, args api.ModWait) (s *session.Session, arrived <-chan struct{}) {
	p.Lock()
	defer p.Unlock()
	s, ok := p.Roster.ByHost(bridge.Claude, args.SessionID)
	if !ok || p.Boxes[s.ID] == nil || l.Mod.Moved {
		return nil, nil
	}
	box := p.Boxes[s.ID]
	changed, ok := box.Mod.Hello(&l.Mod, args.SessionID, args.Busy || s.Busy)
	if !ok {
		return nil, nil
	}
	if changed {
		p.watchModLocked(s, box)
		p.changed()
	}
	return s, box.Arrived()
}

// modLostLocked notes that a mod has gone: hooks take the owner's words again.
func (p *mods) modLostLocked(l *link) {
	for _, box := range p.Boxes {
		if box.Mod.Lost(&l.Mod) {
			box.Signal()
			p.changed()
		}
	}
}

// modNext is what the mod shall do now. held says that words wait for a turn to
// end.
func (p *mods) modNext(ctx context.Context, l *link, s *session.Session, shown string) (reply api.ModReply, held bool, err error) {
	if reply.Prompt, held, err = p.modPrompt(ctx, l, s); err != nil {
		return api.ModReply{}, false, err
	}
	line, err := p.statusLine(ctx, s)
	if err == nil && line != shown {
		reply.Line = &line
	}
	return reply, held, err
}

// modPrompt takes the oldest of the owner's words that wait, if the mod may enter
// it now. That it was given is durable before it leaves, so that no broker offers
// it again until its outcome is known.
func (p *mods) modPrompt(ctx context.Context, l *link, s *session.Session) (prompt *api.ModPrompt, held bool, err error) {
	lease, given, err := p.leases.lease(ctx, l, s, hookScan, mail.MayBeForMod, func(free []mail.Delivery) mail.Presentation {
		at := slices.IndexFunc(free, p.Boxes.KeptForMod(s))
		if at < 0 {
			return mail.Presentation{}
		}
		if held = !p.modFreeLocked(l, s); held {
			return mail.Presentation{}
		}
		p.Boxes[s.ID].Mod.Give(free[at].ID)
		return mail.Presentation{Shown: free[at : at+1]}
	})
	if err != nil || lease == nil {
		return nil, held, err
	}
	now := p.nowMillis()
	mark := mail.Mark{MessageID: given.Shown[0].ID, Recipient: lease.Recipient, At: now, Via: mail.ViaMod, Evidence: mail.ViaMod.Evidence("")}
	err = p.opts.DB.Record(context.WithoutCancel(ctx), bridge.StageHanded, []mail.Mark{mark})
	p.Lock()
	defer p.Unlock()
	box := p.Boxes[s.ID]
	if err != nil {
		if box != nil {
			box.Mod.NotGiven()
		}
		return nil, false, err
	}
	if lease := l.Leases.Find(lease.ID); lease != nil {
		lease.Release()
	}
	if box != nil {
		p.watchModLocked(s, box)
	}
	p.changed()
	return &api.ModPrompt{
		ID: mark.MessageID, Recipient: lease.Recipient, SessionID: s.SessionID, Text: given.Shown[0].Body, Until: now + p.opts.Pace.Settle.Milliseconds(),
	}, false, nil
}

// modFreeLocked reports whether the mod may enter a prompt now: the main turn has
// ended, nothing else was given to it or to a wake hook and still waits for its
// turn to begin.
func (p *mods) modFreeLocked(l *link, s *session.Session) bool {
	box := p.Boxes[s.ID]
	woken := box.Hooks.HasBegun(box.LastActive(), p.nowMillis(), p.opts.Pace.Confirm.Milliseconds())
	return p.Boxes.HasMod(s) && box.Mod.Is(&l.Mod) && box.Mod.State() == wake.ModFree && !s.Busy && !woken
}

// doubtTurn asks whether a turn that words wait for is still under way: one that
// a person broke off may end without a word.
func (p *mods) doubtTurn(s *session.Session) {
	p.idleness.lookIdle(s)
	p.Lock()
	defer p.Unlock()
	if box := p.Boxes[s.ID]; box != nil && !s.Busy && p.nowMillis() >= box.LastActive()+p.opts.Pace.Settle.Milliseconds() {
		box.Mod.Rest()
	}
}

// modReport notes what became of a prompt, or that the main turn has ended.
func (p *mods) modReport(ctx context.Context, _ *link, report api.ModReport) (api.Empty, error) {
	if err := report.Check(); err != nil {
		return api.Empty{}, err
	}
	switch report.Event {
	case api.ModTurnEnded:
		p.modTurnEnded(report)
		return api.Empty{}, nil
	case api.ModTurnStarted:
		if s, ok := p.Live(bridge.Claude, report.SessionID); ok {
			p.idleness.believe(s, report.SessionID, true, report.At)
		}
		return api.Empty{}, nil
	default:
	}
	ctx = context.WithoutCancel(ctx) // what happened is noted even when the caller is gone
	given, err := p.ledger.GivenToMod(ctx, report.Recipient)
	if err != nil {
		return api.Empty{}, err
	}
	if !slices.ContainsFunc(given, func(d mail.Delivery) bool { return d.ID == report.ID }) {
		return api.Empty{}, nil // its own trace has told already
	}
	switch report.Event {
	case api.ModEntered:
		err = p.ledger.Entered(ctx, report.Recipient, report.ID, mail.ViaMod, "its mod: claude entered it as a prompt")
	case api.ModDropped:
		err = p.ledger.GiveUp(ctx, report.Recipient, report.ID, "its mod: claude did not take it as a prompt: "+report.Detail)
	default: // nothing was tried: it is offered again
		err = p.ledger.Unseen(ctx, report.Recipient, report.ID)
	}
	if err != nil {
		return api.Empty{}, err
	}
	p.Lock()
	defer p.Unlock()
	if _, box := p.Boxes.Of(report.Recipient); box != nil {
		box.Mod.Resolved(report.ID)
		switch report.Event {
		case api.ModBusy:
			box.Mod.Busy()
		case api.ModMoved:
			box.Mod.Moved(report.SessionID)
		default:
		}
		box.Signal()
	}
	p.changed()
	return api.Empty{}, nil
}

// modTurnEnded notes that the session is at rest, unless its next turn has begun
// since.
func (p *mods) modTurnEnded(report api.ModReport) {
	p.Lock()
	s, ok := p.Roster.ByHost(bridge.Claude, report.SessionID)
	ended := ok && p.Boxes[s.ID] != nil && p.Boxes[s.ID].Mod.TurnEnded(report.At)
	if ended {
		p.Boxes[s.ID].Signal()
	}
	p.Unlock()
	if ended {
		p.changed()
		p.idleness.turnEnded(s)
	}
}

// watchModLocked looks after what was given to a mod until all of its outcomes
// are known.
func (p *mods) watchModLocked(s *session.Session, box *mailbox.Box) {
	if !box.Mod.Watch() {
		return
	}
	p.soon(p.opts.Pace.Settle, func(ctx context.Context) {
		if err := p.judgeMod(ctx, s, session.HookCall{}); err != nil {
			p.opts.Log.Warn("what became of a prompt could not be noted", "session", s.Name, "err", err)
		}
		p.Lock()
		defer p.Unlock()
		if box.Mod.Unwatch() && p.Boxes[s.ID] == box {
			p.watchModLocked(s, box)
		}
	})
}

// judgeMod finds out what became of mail whose mod has not said it. The prompt's own
// trace tells, in the hook call that shows it or in claude's transcript
// (mail.ModTrace).
func (p *mods) judgeMod(ctx context.Context, s *session.Session, call session.HookCall) error {
	p.Lock()
	id, box := s.ID, p.Boxes[s.ID]
	if box == nil || s.Kind != bridge.Claude || !box.Mod.Open() {
		p.Unlock()
		return nil
	}
	now, settle, confirm := p.nowMillis(), p.opts.Pace.Settle.Milliseconds(), p.opts.Pace.Confirm.Milliseconds()
	awaited, quiet := box.Mod.Awaited(), !s.Busy && !box.Mod.InTurn() && now >= box.LastActive()+settle
	folder, cwd, asked, tries := s.CLIDataDir, s.Cwd, box.Mod.Conversations(s.SessionID), box.Mod.Tries()
	p.Unlock()
	given, err := p.ledger.GivenToMod(ctx, id)
	if err != nil {
		return err
	}
	left := 0
	for _, d := range given {
		if d.ID == awaited && now < d.Handed.At+confirm {
			left++
			continue
		}
		shown := call.Event == session.EventPrompt && call.Prompt == d.Body
		entered, known := clidata.ClaudeEntered(folder, cwd, asked, d.Body, d.Handed.At)
		trace := mail.ModTrace{Shown: shown, Entered: entered, Known: known, Quiet: quiet && now >= d.Handed.At+settle, Tries: tries[d.ID]}
		switch trace.Outcome() {
		case mail.ModShown:
			err = p.ledger.Entered(ctx, id, d.ID, mail.ViaPrompt, "claude showed it as a prompt")
		case mail.ModInTranscript:
			err = p.ledger.Entered(ctx, id, d.ID, mail.ViaTranscript, "claude's transcript holds it as a prompt")
		case mail.ModAgain:
			err = p.ledger.Unseen(ctx, id, d.ID)
		case mail.ModGivenUp:
			err = p.ledger.GiveUp(ctx, id, d.ID, "its mod was given it, and claude's transcript shows no such prompt")
		case mail.ModOpen:
			left++
			continue
		}
		if err != nil {
			return err
		}
		p.Lock()
		box.Mod.Resolved(d.ID)
		box.Signal()
		p.changed()
		p.Unlock()
	}
	p.Lock()
	box.Mod.Judged(left > 0)
	p.Unlock()
	return nil
}

// statusLine is what a claude shows above its composer (CHT-21).
func (p *mods) statusLine(ctx context.Context, s *session.Session) (string, error) {
	settings, err := p.opts.Settings()
	if err != nil || !settings.Claude.StatusLine {
		return "", nil
	}
	waiting, err := p.opts.DB.Waiting(ctx, p.TargetOf(s).ID, hookScan, nil)
	if err != nil {
		return "", err
	}
	p.Lock()
	defer p.Unlock()
	return mail.StatusLine(waiting, s.Serverless), nil
}
