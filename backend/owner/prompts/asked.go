package prompts

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"bridge/backend/broker"
	"bridge/backend/broker/mux"
	"bridge/backend/core/bridge"
	"bridge/backend/core/hooks"
	"bridge/backend/core/job"
	"bridge/backend/core/prompt"
	"bridge/backend/core/rule"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// Register registers the operations about prompts and standing rules.
func (p *Prompts) Register(m *mux.Mux) {
	mux.Handle(m, api.OpPrompt, func(ctx context.Context, conn *ipc.Conn, args api.PromptArgs) (api.PromptAnswer, error) {
		return p.ask(ctx, conn, args)
	})
	mux.Handle(m, api.OpPromptReport, func(_ context.Context, conn *ipc.Conn, args api.PromptReport) (api.Empty, error) {
		return api.Empty{}, p.report(conn, args)
	})
	mux.Handle(m, api.OpAway, mux.ForOwner(p.opts.Broker, "switches away mode", func(_ context.Context, args api.AwayArgs) (api.Prompting, error) {
		if args.On == nil {
			return p.Prompting(), nil
		}
		return p.SetAway(*args.On)
	}))
	mux.Handle(m, api.OpRules, mux.ForOwner(p.opts.Broker, "lists the standing rules", func(context.Context, api.Empty) ([]rule.Rule, error) {
		if p.opts.Rules == nil {
			return []rule.Rule{}, nil
		}
		return p.opts.Rules.Live()
	}))
	mux.Handle(m, api.OpTakeBackRule, mux.ForOwner(p.opts.Broker, "takes a standing rule back", func(_ context.Context, args api.RuleArgs) (api.RuleRevoked, error) {
		return p.revoke(args.ID)
	}))
}

// Approve answers a prompt by the owner's command.
func (p *Prompts) Approve(ctx context.Context, conn *ipc.Conn, args api.ApproveArgs) (job.Approval, error) {
	err := mux.CheckOwner(ctx, p.opts.Broker, conn, "answers by this command")
	if err == nil {
		err = args.Check()
	}
	if err != nil {
		return job.Approval{}, err
	}
	if len(args.Picks) > 0 {
		return p.Pick(args.Approval, args.Picks)
	}
	return p.Answer(args.Approval, args.Decision, args.Reason)
}

func (p *Prompts) revoke(id string) (api.RuleRevoked, error) {
	if p.opts.Rules == nil {
		return api.RuleRevoked{}, bridge.Errorf(bridge.Unavailable, "no standing rules are kept here")
	}
	revoked, undone, err := p.opts.Rules.Revoke(id)
	if err != nil {
		return api.RuleRevoked{}, err
	}
	p.opts.Broker.Changed()
	return api.RuleRevoked{Rule: revoked, Asked: undone.Asked, Handed: undone.Handed}, nil
}

func (p *Prompts) file(id string) string { return filepath.Join(p.opts.Answers, id+".json") }

// ask creates a card for a prompt and waits for the outcome. An empty answer leaves the
// prompt to the terminal.
func (p *Prompts) ask(ctx context.Context, asker holder, args api.PromptArgs) (api.PromptAnswer, error) {
	if err := bridge.CheckID("the prompt's id", args.ID); err != nil {
		return api.PromptAnswer{}, err
	}
	if !p.Shows(args.Call.Kind) {
		return api.PromptAnswer{}, nil
	}
	s, ok, err := p.opts.Broker.Prompter(ctx, args.Call)
	if err != nil || !ok {
		return api.PromptAnswer{}, err
	}
	if s.Threads && isLink(asker) {
		return api.PromptAnswer{}, nil // the background server's client reports it (package codexthreads)
	}
	if args.PID == 0 {
		args.PID = s.AgentPID
	}
	item := promptOf(args, s)
	if item.OnlyTold == "" && p.opts.Rule != nil {
		if decision, rule := p.opts.Rule(item); decision == job.Allow {
			return p.byRule(asker, item, rule)
		}
	}
	if item.OnlyTold == "" && item.Child != "" && bridge.TraitsOf(args.Call.Kind).Prompts.ChildHidden && !p.visible(ctx, args) {
		item.OnlyTold = "its dialog comes to the terminal only when nobody waits for an answer from here"
	}
	record, err := p.add(asker, item)
	if err != nil || record == nil {
		return api.PromptAnswer{}, err
	}
	p.opts.Broker.Changed()
	if item.OnlyTold != "" {
		return api.PromptAnswer{}, nil // no one waits: later signs from the session close the card
	}
	return p.await(ctx, record, args), nil
}

// Shows reports whether a prompt of that kind becomes a card now.
func (p *Prompts) Shows(kind bridge.AgentKind) bool {
	now := p.Prompting()
	return now.AnswerPrompts.Shows(prompt.Watch{Away: now.Away, Page: p.opts.Watched(), Free: bridge.TraitsOf(kind).Prompts.Free})
}

func promptOf(args api.PromptArgs, s broker.Prompter) prompt.Prompt {
	cwd := args.Call.Cwd
	if cwd == "" {
		cwd = s.Cwd
	}
	return prompt.Prompt{
		Approval: job.Approval{
			ID: args.ID, Session: s.Name, Agent: string(args.Call.Kind), Kind: args.Kind, What: args.What, Detail: args.Detail, Why: args.Why,
			Cwd: cwd, OnlyTold: args.OnlyTold, Caution: args.Caution, Choices: args.Choices,
		},
		HostID: args.Call.SessionID, Child: args.Call.ChildID, Call: args.Call.Tool,
	}
}

// byRule answers a prompt by a standing rule of the owner. The answer is durable, like
// the owner's.
func (p *Prompts) byRule(asker holder, item prompt.Prompt, rule string) (api.PromptAnswer, error) {
	record, err := p.add(asker, item)
	if err != nil || record == nil {
		return api.PromptAnswer{}, err
	}
	if _, err := p.decide(item.ID, func(item *prompt.Prompt) error { return item.Answer(rule, job.Allow, "", p.opts.Now()) }); err != nil {
		return api.PromptAnswer{}, err
	}
	return api.PromptAnswer{Decision: job.Allow}, nil
}

// visible waits until claude reports that the dialog of a child is on the screen. If another
// prompt of the session is open, it returns false: the dialog could belong to either.
func (p *Prompts) visible(ctx context.Context, args api.PromptArgs) bool {
	p.mu.Lock()
	open := p.openLocked(args.Call)
	p.mu.Unlock()
	if open > 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, p.opts.Timing.Visible)
	defer cancel()
	for {
		if waits, known := p.opts.Waits(args.Call.CLIDataDir, args.PID, args.Call.SessionID); waits && known {
			return true
		}
		if !ipc.Pause(ctx, p.opts.Timing.PollInterval) {
			return false
		}
	}
}

// openLocked counts the open prompts of a call's session.
func (p *Prompts) openLocked(call session.HookCall) (open int) {
	for _, record := range p.list {
		if record.isOf(call) && record.State == job.ApprovalAsked {
			open++
		}
	}
	return open
}

// isOf reports whether the prompt belongs to the session of a call.
func (r *record) isOf(call session.HookCall) bool {
	return r.Agent == string(call.Kind) && r.HostID == call.SessionID
}

// traits returns the properties of the prompts of its agent's kind.
func (r *record) traits() bridge.PromptTraits {
	return bridge.TraitsOf(bridge.AgentKind(r.Agent)).Prompts
}

// isReportedByHolder reports whether the holder alone reports the prompt's outcome. A refusal may
// end the turn, and that event may arrive first by another path. Codex also
// reports the reason of a refusal as a prompt.
func (r *record) isReportedByHolder() bool {
	return r.alone || r.traits().RefusesAll && r.holder != nil && r.Decision != ""
}

// add records a prompt. It returns nil if too many are open.
func (p *Prompts) add(asker holder, item prompt.Prompt) (*record, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweepLocked()
	if p.findLocked(item.ID) != nil {
		return nil, bridge.Errorf(bridge.Conflict, "a prompt of that id was asked before")
	}
	totalCount, sessionCount := 0, 0
	for _, other := range p.list {
		if other.State != job.ApprovalAsked {
			continue
		}
		totalCount++
		if other.Agent == item.Agent && other.HostID == item.HostID {
			sessionCount++
		}
	}
	if totalCount >= maxOpen || sessionCount >= maxOpenOfOne {
		p.opts.Log.Warn("too many prompts are open: one is left to the terminal", "session", item.Session)
		return nil, nil
	}
	entry := &record{Prompt: prompt.Ask(item, p.opts.Now()), changed: make(chan struct{})}
	if entry.alone = !isLink(asker); entry.alone || entry.OnlyTold == "" {
		entry.holder = asker
	}
	p.list = append(p.list, entry)
	p.markLocked()
	return entry, nil
}

// await waits for the owner's answer, or for the prompt's end.
func (p *Prompts) await(ctx context.Context, item *record, args api.PromptArgs) api.PromptAnswer {
	looks := make(<-chan time.Time)
	if bridge.TraitsOf(args.Call.Kind).Registry {
		ticker := time.NewTicker(p.opts.Timing.PollInterval)
		defer ticker.Stop()
		looks = ticker.C
	}
	seen := false // its dialog was on the screen
	for {
		p.mu.Lock()
		state, changed := item.Prompt, item.changed
		p.mu.Unlock()
		if state.State != job.ApprovalAsked {
			if state.State == job.ApprovalWithdrawn {
				return api.PromptAnswer{}
			}
			return api.PromptAnswer{Decision: state.Decision, Reason: state.Reason, Answers: state.Answers}
		}
		select {
		case <-changed:
		case <-looks:
			waits, known := p.opts.Waits(args.Call.CLIDataDir, args.PID, args.Call.SessionID)
			if seen && known && !waits {
				p.see(item, prompt.Closed)
			}
			seen = seen || waits
		case <-ctx.Done():
			return api.PromptAnswer{} // Disconnected closes the card
		}
	}
}

// see records a sign about one prompt.
func (p *Prompts) see(item *record, sign prompt.Sign) {
	p.mu.Lock()
	changed := p.seeLocked(item, sign)
	p.mu.Unlock()
	if changed {
		p.opts.Broker.Changed()
	}
}

// signs maps the events that an asker reports to signs.
var signs = map[api.PromptEvent]prompt.Sign{
	api.PromptAllowed: prompt.Allowed, api.PromptRefused: prompt.Refused, api.PromptStopped: prompt.Stopped, api.PromptGone: prompt.Gone,
}

// report records what an asker reports about its own prompt.
func (p *Prompts) report(asker holder, report api.PromptReport) error {
	if report.Event == api.PromptDelivered {
		return p.Deliver(asker, report.ID)
	}
	sign, known := signs[report.Event]
	if !known {
		return bridge.Errorf(bridge.Invalid, "%q is nothing that becomes of a prompt", report.Event)
	}
	return p.Report(asker, report.ID, sign)
}

// Hold asks the owner a prompt for a part of this process, and waits for the answer.
// Until Release, only the holder reports the outcome, with Deliver and Tell.
func (p *Prompts) Hold(ctx context.Context, asker any, args api.PromptArgs) (api.PromptAnswer, error) {
	return p.ask(ctx, asker, args)
}

// Deliver records that the agent has the answer.
func (p *Prompts) Deliver(asker any, id string) error {
	return p.ofHolder(asker, id, func(item *record) error {
		after := item.Prompt
		if err := after.Deliver(); err != nil {
			return err
		}
		p.changeLocked(item, after)
		return nil
	})
}

// Report records a sign that the holder of a prompt saw.
func (p *Prompts) Report(asker any, id string, sign prompt.Sign) error {
	return p.ofHolder(asker, id, func(item *record) error {
		p.seeLocked(item, sign)
		return nil
	})
}

func (p *Prompts) ofHolder(asker holder, id string, do func(*record) error) error {
	err := func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		record := p.findLocked(id)
		if record == nil || record.holder == nil || record.holder != asker {
			return bridge.Errorf(bridge.NotFound, "this connection has no prompt %q", id)
		}
		return do(record)
	}()
	if err == nil {
		p.opts.Broker.Changed()
	}
	return err
}

// Disconnected releases the prompts of a connection.
func (p *Prompts) Disconnected(conn *ipc.Conn) { p.Release(conn) }

// Release removes a holder from its prompts: it delivers no more answers. The later
// outcome at claude appears in its hooks. For another agent it stays unknown.
func (p *Prompts) Release(asker any) {
	p.mu.Lock()
	changed := false
	for _, record := range p.list {
		if record.holder == nil || record.holder != asker {
			continue
		}
		record.holder = nil
		sign := prompt.Unheld
		if !record.traits().HooksShowOutcome && record.State == job.ApprovalDelivered {
			sign = prompt.Gone
		}
		changed = p.seeLocked(record, sign) || changed
	}
	p.mu.Unlock()
	if changed {
		p.opts.Broker.Changed()
	}
}

// HandleHook records what a hook or plugin call reports about the prompts of its session.
func (p *Prompts) HandleHook(call session.HookCall) {
	p.mu.Lock()
	changed := false
	if (call.Event == session.EventTool || call.Event == session.EventToolFailed) && call.Tool != "" {
		changed = p.ranLocked(call)
	} else if call.Event == session.EventToolBatch {
		changed = p.batchLocked(call)
	} else if sign, ends := ending(call); ends {
		for _, record := range p.list {
			if record.isOf(call) && !record.IsSettled() && concerns(call, record.Child) && !record.isReportedByHolder() {
				changed = p.seeLocked(record, sign) || changed
			}
		}
	}
	p.mu.Unlock()
	if changed {
		p.opts.Broker.Changed()
	}
}

// batchLocked ends the prompts of completed calls. A call that ran was reported before.
// After a refusal the model reads exactly our text; any other text has an unknown
// origin.
func (p *Prompts) batchLocked(call session.HookCall) (changed bool) {
	for _, record := range p.list {
		if !record.isOf(call) || record.Child != call.ChildID || record.IsSettled() {
			continue
		}
		results := resultsOf(call, record.Call)
		isRefusal := record.State == job.ApprovalDelivered && record.Decision == job.Deny
		switch {
		case len(results) == 0:
		case record.State == job.ApprovalAsked:
			changed = p.seeLocked(record, prompt.WentOn) || changed
		case isRefusal && slices.Contains(results, session.TextKey(hooks.Denial(record.Reason))):
			changed = p.seeLocked(record, prompt.Refused) || changed
		case isRefusal:
			changed = p.seeLocked(record, prompt.Gone) || changed
		}
	}
	return changed
}

// resultsOf returns the results that the model reads of the calls with that key.
func resultsOf(call session.HookCall, key string) (texts []string) {
	for _, result := range call.Results {
		if result.Tool == key && key != "" {
			texts = append(texts, result.Said)
		}
	}
	return texts
}

// ranLocked finds the prompt of a call that ran. It is the first open one, else the
// last that ended with an unknown outcome.
func (p *Prompts) ranLocked(call session.HookCall) bool {
	var last *record
	for _, record := range p.list {
		if !record.isOf(call) || record.Call != call.Tool || record.Child != call.ChildID {
			continue
		}
		if !record.IsSettled() {
			return p.seeLocked(record, prompt.Allowed)
		}
		last = record
	}
	return last != nil && p.seeLocked(last, prompt.Allowed)
}

// ending returns the sign that an event gives for all prompts that it concerns.
func ending(call session.HookCall) (sign prompt.Sign, ends bool) {
	switch call.Event {
	case session.EventStop, session.EventIdle, session.EventChildStop:
		return prompt.WentOn, true
	case session.EventInterrupt:
		return prompt.Stopped, true
	case session.EventPrompt, session.EventEnd:
		return prompt.Gone, true
	case session.EventStart:
		return prompt.Gone, call.Source != "compact"
	default:
		return 0, false
	}
}

// concerns reports whether such an event is about prompts of that child, "" for the
// session itself. The end of a session concerns all.
func concerns(call session.HookCall, child string) bool {
	if call.Event == session.EventEnd || call.Event == session.EventStart {
		return call.ChildID == "" || call.ChildID == child
	}
	return call.ChildID == child
}
