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

// mods is the part of the broker that gives the owner's chat messages to claude's mods.
type mods struct{ *core }

// modWait serves the child process of a mod. It returns with a prompt to enter or a line
// to show. If the session has not registered yet, it waits for it.
func (p *mods) modWait(ctx context.Context, l *link, args api.ModWait) (api.ModReply, error) {
	if err := bridge.CheckID("the host session id", args.SessionID); err != nil {
		return api.ModReply{}, err
	}
	changes, stop := p.feed.Watch()
	defer stop()
	for {
		s, arrived := p.modSession(l, args)
		var doubt <-chan time.Time // never, unless messages wait for a turn to end
		if s != nil {
			reply, held, err := p.modNext(ctx, l, s, args.Line)
			ended := bridge.CodeOf(err) == bridge.Unavailable
			if err != nil && !ended || reply != (api.ModReply{}) {
				return reply, err
			}
			if held {
				doubt = time.After(p.opts.Timing.Doubt)
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

// modSession returns the session of a mod's conversation and makes the connection its
// mod, the newest of several. arrived is closed when modWait should check again.
func (p *mods) modSession(l *link, args api.ModWait) (s *session.Session, arrived <-chan struct{}) {
	p.Lock()
	defer p.Unlock()
	s, ok := p.WithModLocked(args.SessionID)
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

// modLostLocked records that a mod has disconnected: hooks get the owner's messages again.
func (p *mods) modLostLocked(l *link) {
	for _, box := range p.Boxes {
		if box.Mod.Lost(&l.Mod) {
			box.Signal()
			p.changed()
		}
	}
}

// modNext returns what the mod should do now. held is set if messages wait for a turn to
// end.
func (p *mods) modNext(ctx context.Context, l *link, s *session.Session, currentLine string) (reply api.ModReply, held bool, err error) {
	if reply.Prompt, held, err = p.modPrompt(ctx, l, s); err != nil {
		return api.ModReply{}, false, err
	}
	line, err := p.statusLine(ctx, s)
	if err == nil && line != currentLine {
		reply.Line = &line
	}
	return reply, held, err
}

// modPrompt returns the owner's oldest waiting message, if the mod may enter it now. It
// records the handover before it returns. Therefore no broker offers the message again
// until its outcome is known.
func (p *mods) modPrompt(ctx context.Context, l *link, s *session.Session) (prompt *api.ModPrompt, held bool, err error) {
	lease, presentation, err := p.leases.lease(ctx, l, s, hookScan, mail.MayBeForMod, func(free []mail.Delivery) mail.Presentation {
		at := slices.IndexFunc(free, p.Boxes.ReservedForMod(s))
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
	mark := mail.Mark{MessageID: presentation.Shown[0].ID, Recipient: lease.Recipient, At: now, Via: mail.ViaMod, Evidence: mail.ViaMod.Evidence("")}
	err = p.opts.DB.Record(context.WithoutCancel(ctx), bridge.StageHanded, []mail.Mark{mark})
	p.Lock()
	defer p.Unlock()
	box := p.Boxes[s.ID]
	if err != nil {
		if box != nil {
			box.Mod.UndoGive()
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
		ID: mark.MessageID, Recipient: lease.Recipient, SessionID: s.SessionID, Text: presentation.Shown[0].Body, Until: now + p.opts.Timing.Settle.Milliseconds(),
	}, false, nil
}

// modFreeLocked reports whether the mod may enter a prompt now. The main turn must have
// ended. Nothing else given to the mod or to a wake hook may still wait for its turn to
// begin.
func (p *mods) modFreeLocked(l *link, s *session.Session) bool {
	box := p.Boxes[s.ID]
	woken := box.Hooks.TurnMayStart(box.LastActive(), p.nowMillis(), p.opts.Timing.Confirm.Milliseconds())
	return p.Boxes.HasMod(s) && box.Mod.Is(&l.Mod) && box.Mod.State() == wake.ModFree && !s.Busy && !woken
}

// doubtTurn checks whether the turn that messages wait for is still running. A turn that
// a person interrupted may end without a report.
func (p *mods) doubtTurn(s *session.Session) {
	p.idleness.Check(s)
	p.Lock()
	defer p.Unlock()
	if box := p.Boxes[s.ID]; box != nil && !s.Busy && p.nowMillis() >= box.LastActive()+p.opts.Timing.Settle.Milliseconds() {
		box.Mod.Rest()
	}
}

// modReport records the outcome of a prompt, or that the main turn has started or ended.
func (p *mods) modReport(ctx context.Context, _ *link, report api.ModReport) (api.Empty, error) {
	if err := report.Check(); err != nil {
		return api.Empty{}, err
	}
	switch report.Event {
	case api.ModTurnEnded:
		p.modTurnEnded(report)
		return api.Empty{}, nil
	case api.ModTurnStarted:
		if s, ok := p.WithMod(report.SessionID); ok {
			p.idleness.Believe(s, report.SessionID, true, report.At)
		}
		return api.Empty{}, nil
	default:
	}
	ctx = context.WithoutCancel(ctx) // record the event even if the caller has disconnected
	deliveries, err := p.ledger.HandedToMod(ctx, report.Recipient)
	if err != nil {
		return api.Empty{}, err
	}
	at := slices.IndexFunc(deliveries, func(d mail.Delivery) bool { return d.ID == report.ID })
	if at < 0 {
		return api.Empty{}, nil // the prompt's trace has settled it already
	}
	switch report.Event {
	case api.ModEntered:
		err = p.ledger.Entered(ctx, report.Recipient, deliveries[at], mail.ViaMod, "its mod: claude entered it as a prompt")
	case api.ModDropped:
		err = p.ledger.GiveUp(ctx, report.Recipient, report.ID, "its mod: claude did not take it as a prompt: "+report.Detail)
	default: // nothing was tried: the message is offered again
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

// modTurnEnded records that the session is idle, unless its next turn has begun since.
func (p *mods) modTurnEnded(report api.ModReport) {
	p.Lock()
	s, ok := p.WithModLocked(report.SessionID)
	ended := ok && p.Boxes[s.ID] != nil && p.Boxes[s.ID].Mod.TurnEnded(report.At)
	if ended {
		p.Boxes[s.ID].Signal()
	}
	p.Unlock()
	if ended {
		p.changed()
		p.idleness.ReportedIdle(s)
	}
}

// watchModLocked checks what was given to a mod repeatedly, until all outcomes are known.
func (p *mods) watchModLocked(s *session.Session, box *mailbox.Box) {
	if !box.Mod.Watch() {
		return
	}
	p.soon(p.opts.Timing.Settle, func(ctx context.Context) {
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

// judgeMod determines the outcome of mail whose mod has not reported it. The evidence is
// the prompt's own trace, in the hook call that shows it or in claude's transcript
// (mail.ModTrace).
func (p *mods) judgeMod(ctx context.Context, s *session.Session, call session.HookCall) error {
	p.Lock()
	id, box := s.ID, p.Boxes[s.ID]
	if box == nil || !bridge.TraitsOf(s.Kind).Mod || !box.Mod.Open() {
		p.Unlock()
		return nil
	}
	now, settle, confirm := p.nowMillis(), p.opts.Timing.Settle.Milliseconds(), p.opts.Timing.Confirm.Milliseconds()
	awaited, quiet := box.Mod.Awaited(), !s.Busy && !box.Mod.InTurn() && now >= box.LastActive()+settle
	folder, cwd, conversations, tries := s.CLIDataDir, s.Cwd, box.Mod.Conversations(s.SessionID), box.Mod.Tries()
	p.Unlock()
	deliveries, err := p.ledger.HandedToMod(ctx, id)
	if err != nil {
		return err
	}
	pendingCount := 0
	for _, d := range deliveries {
		if d.ID == awaited && now < d.Handed.At+confirm {
			pendingCount++
			continue
		}
		isPrompt := call.Event == session.EventPrompt && call.Prompt == d.Body
		entered, known := clidata.ClaudeEntered(folder, cwd, conversations, d.Body, d.Handed.At)
		trace := mail.ModTrace{Shown: isPrompt, Entered: entered, Known: known, Quiet: quiet && now >= d.Handed.At+settle, Tries: tries[d.ID]}
		switch trace.Outcome() {
		case mail.ModShown:
			err = p.ledger.Entered(ctx, id, d, mail.ViaPrompt, "claude showed it as a prompt")
		case mail.ModInTranscript:
			err = p.ledger.Entered(ctx, id, d, mail.ViaTranscript, "claude's transcript holds it as a prompt")
		case mail.ModAgain:
			err = p.ledger.Unseen(ctx, id, d.ID)
		case mail.ModGivenUp:
			err = p.ledger.GiveUp(ctx, id, d.ID, "its mod was given it, and claude's transcript shows no such prompt")
		case mail.ModOpen:
			pendingCount++
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
	box.Mod.Judged(pendingCount > 0)
	p.Unlock()
	return nil
}

// statusLine returns the line that a claude shows above its composer, "" for none (CHT-21).
func (p *mods) statusLine(ctx context.Context, s *session.Session) (string, error) {
	settings, err := p.opts.Settings()
	if err != nil || !settings.Claude.StatusLine {
		return "", nil
	}
	waiting, err := p.Exchanges.Waiting(ctx, p.TargetOf(s).ID, hookScan, nil)
	if err != nil {
		return "", err
	}
	p.Lock()
	defer p.Unlock()
	return mail.StatusLine(waiting, s.Serverless), nil
}
