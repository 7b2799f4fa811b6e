package broker

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"bridge/backend/agent/clidata"
	"bridge/backend/bridge"
	"bridge/backend/ipc/api"
	"bridge/backend/mail"
	"bridge/backend/session"
)

// modState is claude's mod in a session: it enters the owner's words as prompts of
// the user, one at a time and between turns (CHT-20).
type modState struct {
	link    *link  // of its child process, nil while no mod is there
	session string // the conversation that it said hello for
	turn    bool   // a main turn is under way, as far as the mod and the hooks tell
	began   int64  // when the last turn's prompt was heard of, Unix epoch milliseconds
	out     string // the message that it was given and has not reported on
	outTo   *link  // whose report on it is waited for
	// open says that messages may be with a mod; watched that what becomes of
	// them is looked after; asked are the conversations that they were meant for.
	open    bool
	watched bool
	asked   []string
	tries   map[string]int // how often each message was given to a mod
}

func (m *modState) tried(message string) {
	if m.tries == nil {
		m.tries = map[string]int{}
	}
	m.tries[message]++
}

// hasModLocked reports whether a mod said hello for the very conversation that
// the session is in. A channel goes before it (CHT-03).
func (b *Broker) hasModLocked(s *session.Session) bool {
	box := b.boxes[s.ID]
	return s.Kind == bridge.Claude && !s.Channel && box != nil && box.mod.link != nil && box.mod.session == s.SessionID
}

// keptForModLocked tells which mail of s its mod is to have: no hook takes it.
func (b *Broker) keptForModLocked(s *session.Session) func(mail.Delivery) bool {
	if !b.hasModLocked(s) {
		return func(mail.Delivery) bool { return false }
	}
	return mail.IsForMod
}

// forHooksLocked is free without what a mod is to have.
func (b *Broker) forHooksLocked(s *session.Session, free []mail.Delivery) []mail.Delivery {
	return slices.DeleteFunc(free, b.keptForModLocked(s))
}

// modWait serves the child process of a mod: it ends with a prompt to enter or a
// line to show. A session that has not registered yet is waited for.
func (b *Broker) modWait(ctx context.Context, l *link, args api.ModWait) (api.ModReply, error) {
	if err := bridge.CheckID("the host session id", args.SessionID); err != nil {
		return api.ModReply{}, err
	}
	changes, stop := b.Watch()
	defer stop()
	for {
		s, arrived := b.modSession(l, args)
		var doubt <-chan time.Time // never, unless words wait for a turn to end
		if s != nil {
			reply, held, err := b.modNext(ctx, l, s, args.Line)
			gone := bridge.CodeOf(err) == bridge.Unavailable
			if err != nil && !gone || reply != (api.ModReply{}) {
				return reply, err
			}
			if held {
				doubt = time.After(b.opts.Pace.Doubt)
			}
		}
		for waits := true; waits; {
			select {
			case <-arrived:
				waits = false
			case <-changes:
				now, _ := b.modSession(l, args)
				waits = now == s
			case <-doubt:
				b.doubtTurn(s)
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
func (b *Broker) modSession(l *link, args api.ModWait) (s *session.Session, arrived <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.roster.ByHost(bridge.Claude, args.SessionID)
	if !ok || b.boxes[s.ID] == nil || l.moved {
		return nil, nil
	}
	box := b.boxes[s.ID]
	if mod := &box.mod; mod.link != l || mod.session != args.SessionID {
		if mod.link != nil && mod.link.number > l.number {
			return nil, nil
		}
		mod.link, mod.session = l, args.SessionID
		mod.turn = args.Busy || s.Busy
		mod.asked = append(mod.asked, args.SessionID)
		b.watchModLocked(s, box)
		b.changedLocked()
	}
	return s, box.arrived
}

// modLostLocked notes that a mod has gone: hooks take the owner's words again.
func (b *Broker) modLostLocked(l *link) {
	for _, box := range b.boxes {
		if box.mod.link == l {
			box.mod.link = nil
			box.signal()
			b.changedLocked()
		}
	}
}

// modNext is what the mod shall do now. held says that words wait for a turn to
// end.
func (b *Broker) modNext(ctx context.Context, l *link, s *session.Session, shown string) (reply api.ModReply, held bool, err error) {
	if reply.Prompt, held, err = b.modPrompt(ctx, l, s); err != nil {
		return api.ModReply{}, false, err
	}
	line, err := b.statusLine(ctx, s)
	if err == nil && line != shown {
		reply.Line = &line
	}
	return reply, held, err
}

// modPrompt takes the oldest of the owner's words that wait, if the mod may enter
// it now. That it was given is durable before it leaves, so that no broker offers
// it again until its outcome is known.
func (b *Broker) modPrompt(ctx context.Context, l *link, s *session.Session) (prompt *api.ModPrompt, held bool, err error) {
	loan, given, err := b.lend(ctx, l, s, hookScan, mail.MayBeForMod, func(free []mail.Delivery) mail.Presentation {
		at := slices.IndexFunc(free, b.keptForModLocked(s))
		if at < 0 {
			return mail.Presentation{}
		}
		if held = !b.modFreeLocked(l, s); held {
			return mail.Presentation{}
		}
		mod := &b.boxes[s.ID].mod
		mod.out, mod.outTo, mod.open = free[at].ID, l, true
		mod.tried(mod.out)
		return mail.Presentation{Shown: free[at : at+1]}
	})
	if err != nil || loan == nil {
		return nil, held, err
	}
	now := b.nowMillis()
	mark := mail.Mark{MessageID: given.Shown[0].ID, Recipient: loan.Recipient, At: now, Via: mail.ViaMod, Evidence: mail.ViaMod.Evidence("")}
	err = b.opts.DB.Record(context.WithoutCancel(ctx), bridge.StageHanded, []mail.Mark{mark})
	b.mu.Lock()
	defer b.mu.Unlock()
	box := b.boxes[s.ID]
	if err != nil {
		if box != nil {
			box.mod.out = ""
		}
		return nil, false, err
	}
	if held := l.loans[loan.ID]; held != nil {
		b.releaseLocked(held)
	}
	if box != nil {
		b.watchModLocked(s, box)
	}
	b.changedLocked()
	return &api.ModPrompt{
		ID: mark.MessageID, Recipient: loan.Recipient, SessionID: s.SessionID, Text: given.Shown[0].Body, Until: now + b.opts.Pace.Settle.Milliseconds(),
	}, false, nil
}

// modFreeLocked reports whether the mod may enter a prompt now: the main turn has
// ended, nothing else was given to it or to a wake hook and still waits for its
// turn to begin.
func (b *Broker) modFreeLocked(l *link, s *session.Session) bool {
	box := b.boxes[s.ID]
	woken := box.wake.begun > box.lastActive && b.nowMillis()-box.wake.begun < b.opts.Pace.Confirm.Milliseconds()
	return b.hasModLocked(s) && box.mod.link == l && box.mod.out == "" && !box.mod.turn && !s.Busy && !woken
}

// doubtTurn asks whether a turn that words wait for is still under way: one that
// a person broke off may end without a word.
func (b *Broker) doubtTurn(s *session.Session) {
	b.lookIdle(s)
	b.mu.Lock()
	defer b.mu.Unlock()
	if box := b.boxes[s.ID]; box != nil && !s.Busy && b.nowMillis() >= box.lastActive+b.opts.Pace.Settle.Milliseconds() {
		box.mod.turn = false
	}
}

// noteTurn keeps whether the main turn is under way, as a hook call tells.
// It ends with the mod's own word.
func (m *modState) noteTurn(call session.HookCall, now int64) {
	switch call.Event {
	case session.EventPrompt:
		m.turn, m.began = true, now
	case session.EventTool, session.EventPreTool:
		m.turn = true
	case session.EventStart, session.EventEnd:
		m.turn = m.turn && call.Source == "compact"
	default: // a stop hook may keep the turn going
	}
}

// modReport notes what became of a prompt, or that the main turn has ended.
func (b *Broker) modReport(ctx context.Context, _ *link, report api.ModReport) (api.Empty, error) {
	if err := report.Check(); err != nil {
		return api.Empty{}, err
	}
	if report.Event == api.ModTurnEnded {
		b.modTurnEnded(report)
		return api.Empty{}, nil
	}
	ctx = context.WithoutCancel(ctx) // what happened is noted even when the caller is gone
	given, err := b.givenToMod(ctx, report.Recipient)
	if err != nil {
		return api.Empty{}, err
	}
	if !slices.ContainsFunc(given, func(d mail.Delivery) bool { return d.ID == report.ID }) {
		return api.Empty{}, nil // its own trace has told already
	}
	switch report.Event {
	case api.ModEntered:
		err = b.modEntered(ctx, report.Recipient, report.ID, mail.ViaMod, "its mod: claude entered it as a prompt")
	case api.ModDropped:
		err = b.modGaveBack(ctx, report.Recipient, report.ID, "its mod: claude did not take it as a prompt: "+report.Detail)
	default: // nothing was tried: it is offered again
		err = b.opts.DB.Unhand(ctx, report.ID, report.Recipient)
	}
	if err != nil {
		return api.Empty{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, box := b.boxOfLocked(report.Recipient); box != nil {
		box.mod.settled(report)
		box.signal()
	}
	b.changedLocked()
	return api.Empty{}, nil
}

// settled ends the wait for a prompt's outcome. A mod whose conversation is
// another one by now is not asked again.
func (m *modState) settled(report api.ModReport) {
	if m.out == report.ID {
		m.out = ""
	}
	switch report.Event {
	case api.ModBusy:
		m.turn = true
	case api.ModMoved:
		if m.link != nil && m.session == report.SessionID {
			m.link.moved = true
			m.link = nil
		}
	default:
	}
}

func (b *Broker) modEntered(ctx context.Context, recipient, id string, via mail.Via, evidence string) error {
	mark := mail.Mark{MessageID: id, Recipient: recipient, At: b.nowMillis(), Via: via, Evidence: evidence}
	return b.opts.DB.Record(ctx, bridge.StageConsumed, []mail.Mark{mark})
}

// modGaveBack makes a message ordinary mail again. Why is kept with it, and that
// a wake was tried, so that no mod gets it a second time.
func (b *Broker) modGaveBack(ctx context.Context, recipient, id, reason string) error {
	mark := mail.Mark{MessageID: id, Recipient: recipient, At: b.nowMillis(), Via: mail.ViaMod, Evidence: shortReason(reason)}
	if err := b.opts.DB.Record(ctx, bridge.StageWoken, []mail.Mark{mark}); err != nil {
		return err
	}
	return b.opts.DB.Unhand(ctx, id, recipient)
}

// maxReasonChars bounds the words of a mod that are kept.
const maxReasonChars = 200

func shortReason(words string) string {
	runes := []rune(strings.Join(strings.Fields(words), " "))
	return string(runes[:min(len(runes), maxReasonChars)])
}

// modTurnEnded notes that the session is at rest, unless its next turn has begun
// since.
func (b *Broker) modTurnEnded(report api.ModReport) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.roster.ByHost(bridge.Claude, report.SessionID)
	if !ok || b.boxes[s.ID] == nil {
		return
	}
	box := b.boxes[s.ID]
	if box.mod.began > report.At {
		return
	}
	box.mod.turn, s.Busy = false, false
	box.signal()
	b.changedLocked()
}

// givenToMod is the unread mail that was given to a mod and whose outcome is not
// known.
func (b *Broker) givenToMod(ctx context.Context, recipient string) ([]mail.Delivery, error) {
	byMod := func(d mail.Delivery) bool { return d.Handed.Via == mail.ViaMod }
	unread, err := b.opts.DB.Unread(ctx, recipient, hookScan, byMod)
	return slices.DeleteFunc(unread, func(d mail.Delivery) bool { return !byMod(d) }), err
}

// watchModLocked looks after what was given to a mod until all of its outcomes
// are known.
func (b *Broker) watchModLocked(s *session.Session, box *mailbox) {
	if box.mod.watched {
		return
	}
	box.mod.watched = true
	b.soon(b.opts.Pace.Settle, func(ctx context.Context) {
		if err := b.judgeMod(ctx, s, session.HookCall{}); err != nil {
			b.opts.Log.Warn("what became of a prompt could not be noted", "session", s.Name, "err", err)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		box.mod.watched = false
		if box.mod.open && b.boxes[s.ID] == box {
			b.watchModLocked(s, box)
		}
	})
}

// judgeMod finds out what became of mail whose mod has not said it. The prompt's own
// trace tells, in the hook call that shows it or in claude's transcript
// (mail.ModTrace).
func (b *Broker) judgeMod(ctx context.Context, s *session.Session, call session.HookCall) error {
	b.mu.Lock()
	id, box := s.ID, b.boxes[s.ID]
	if box == nil || s.Kind != bridge.Claude || !box.mod.open {
		b.mu.Unlock()
		return nil
	}
	now, settle, confirm := b.nowMillis(), b.opts.Pace.Settle.Milliseconds(), b.opts.Pace.Confirm.Milliseconds()
	awaited, quiet := "", !s.Busy && !box.mod.turn && now >= box.lastActive+settle
	if box.mod.link != nil && box.mod.link == box.mod.outTo {
		awaited = box.mod.out
	}
	folder, cwd, asked := s.Store, s.Cwd, append(slices.Clone(box.mod.asked), s.SessionID)
	tries := maps.Clone(box.mod.tries)
	b.mu.Unlock()
	given, err := b.givenToMod(ctx, id)
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
			err = b.modEntered(ctx, id, d.ID, mail.ViaPrompt, "claude showed it as a prompt")
		case mail.ModInTranscript:
			err = b.modEntered(ctx, id, d.ID, mail.ViaTranscript, "claude's transcript holds it as a prompt")
		case mail.ModAgain:
			err = b.opts.DB.Unhand(ctx, d.ID, id)
		case mail.ModGivenUp:
			err = b.modGaveBack(ctx, id, d.ID, "its mod was given it, and claude's transcript shows no such prompt")
		case mail.ModOpen:
			left++
			continue
		}
		if err != nil {
			return err
		}
		b.mu.Lock()
		box.mod.settled(api.ModReport{ID: d.ID})
		box.signal()
		b.changedLocked()
		b.mu.Unlock()
	}
	b.mu.Lock()
	box.mod.open = left > 0 || box.mod.out != ""
	b.mu.Unlock()
	return nil
}

// statusLine is what a claude shows above its composer (CHT-21).
func (b *Broker) statusLine(ctx context.Context, s *session.Session) (string, error) {
	settings, err := b.opts.Settings()
	if err != nil || !settings.Claude.StatusLine {
		return "", nil //nolint:nilerr // bad settings are told elsewhere, and keep no prompt
	}
	waiting, err := b.opts.DB.Waiting(ctx, b.targetOf(s).ID, hookScan, nil)
	if err != nil {
		return "", err
	}
	return mail.StatusLine(waiting), nil
}
