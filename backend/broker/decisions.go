package broker

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"bridge/backend/broker/notices"
	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

// decisions is the part of the broker that records decisions and notifies sessions of them.
type decisions struct{ *core }

// decide records a decision and queues one durable message for every connected session in
// its scope (DEC-01, DEC-10). The author is the calling session.
func (p *decisions) decide(ctx context.Context, l *link, args api.DecideArgs) (api.DecideResult, error) {
	s, err := p.sessions.callerOf(ctx, l, args.Caller)
	if err != nil {
		return api.DecideResult{}, err
	}
	if err := p.activity.noteActivity(ctx, s, "tool decide"); err != nil {
		return api.DecideResult{}, err
	}
	p.Lock()
	author, cwd := s.Address(), s.Cwd
	p.Unlock()
	return p.record(ctx, author, cwd, args)
}

// record records a decision of that author, whose working folder is cwd.
func (p *decisions) record(ctx context.Context, author bridge.Address, cwd string, args api.DecideArgs) (api.DecideResult, error) {
	rev, err := decision.New(args.Topic, args.Text, args.Scope, cwd)
	if err == nil {
		err = p.CheckWords(rev.Scope.Sessions...)
	}
	if err != nil {
		return api.DecideResult{}, err
	}
	if args.SourceMessageID != "" {
		rev.SourceMessageID = &args.SourceMessageID
	}
	return p.revise(ctx, author, rev, args.ID, args.Supersedes)
}

// revise records a revision of that author under an id, or under a new one if id is "".
// With supersedes set, it fails unless that decision is in force.
func (p *decisions) revise(ctx context.Context, author bridge.Address, rev decision.Revision, id, supersedes string) (api.DecideResult, error) {
	rev.ID, rev.Author, rev.CreatedAt = id, author, p.nowMillis()
	if rev.ID == "" {
		rev.ID = uuid.NewString()
	} else if err := bridge.CheckID("the decision's id", rev.ID); err != nil {
		return api.DecideResult{}, err
	}
	if supersedes != "" {
		rev.Supersedes = &supersedes
	}
	messageID := newMessageID()
	p.at(recording)
	rev, queued, err := p.opts.DB.RecordDecision(ctx, rev, func(r decision.Revision) []decision.Notification {
		targets := p.inScope(r.Scope) // inside the write, so that persistIdentity finds earlier decisions
		p.at(recipientsChosen)
		return decision.Notifications(r, messageID, targets)
	})
	if err != nil {
		return api.DecideResult{}, err
	}
	p.notify(ctx, queued)
	return api.DecideResult{Decision: rev, DeliveredTo: p.namesOf(queued)}, nil
}

// The points between which a session may join.
const (
	recording        point = "a decision is about to be written"
	recipientsChosen point = "a decision is being written, and its recipients are chosen"
	persisting       point = "a session that joined is about to be written"
)

// inScope returns the connected sessions that a scope reaches, without job runners.
func (p *decisions) inScope(scope decision.Scope) []decision.Target {
	p.Lock()
	defer p.Unlock()
	var targets []decision.Target
	for _, s := range p.Roster.Live() {
		if target := p.Roster.Target(s); s.Host != session.HostRunner && scope.Reaches(target) {
			targets = append(targets, target)
		}
	}
	return targets
}

// notify signals live sessions that notifications are queued for them.
func (p *decisions) notify(ctx context.Context, queued []decision.Notification) {
	if len(queued) == 0 {
		p.changed()
		return
	}
	messages := make([]bridge.Message, len(queued))
	for i, n := range queued {
		messages[i] = n.Message
	}
	p.messages.arrived(ctx, messages)
}

func (p *decisions) namesOf(queued []decision.Notification) []string {
	p.Lock()
	defer p.Unlock()
	names := []string{}
	for _, n := range queued {
		names = append(names, p.NameLocked(n.Message.Recipient))
	}
	return names
}

// decisions returns the decisions that match a session's query (DEC-05, DEC-06, DEC-08).
func (p *decisions) decisions(ctx context.Context, l *link, args api.DecisionsArgs) ([]decision.Revision, error) {
	s, err := p.sessions.callerOf(ctx, l, args.Caller)
	if err != nil {
		return nil, err
	}
	if err := decision.CheckQuery(args.Query); err != nil {
		return nil, err
	}
	target := p.TargetOf(s)
	scope, err := decision.ScopeOrProject(args.Scope, target.Cwd)
	if err != nil {
		return nil, err
	}
	found, err := p.opts.DB.Decisions(ctx, decision.Lookup{Query: args.Query, Scope: &scope, History: args.History, Asking: &target})
	if err != nil {
		return nil, err
	}
	if found == nil {
		found = []decision.Revision{}
	}
	return found, p.activity.noteActivity(ctx, s, "tool decisions")
}

// catchUp queues the notifications that a joining session lacks (DEC-13). Receipts
// prevent a second notification of the same decision.
func (p *decisions) catchUp(ctx context.Context, target decision.Target) error {
	missing, err := p.notices().Missing(ctx, target)
	if err != nil || len(missing) == 0 {
		return err
	}
	queued, err := p.opts.DB.NotifyDecisions(ctx, missing)
	if err != nil {
		return err
	}
	p.notify(ctx, queued)
	return nil
}

func (p *decisions) notices() notices.Maker {
	return notices.Maker{DB: p.opts.DB, NewID: newMessageID, Now: p.nowMillis}
}

// catchUpAll catches up every connected session except job runners.
func (p *decisions) catchUpAll(ctx context.Context) (err error) {
	for _, target := range p.inScope(decision.AllSessions()) {
		err = errors.Join(err, p.catchUp(ctx, target))
	}
	return err
}

// applicable returns the current decisions that reach a session, newest first.
func (p *decisions) applicable(ctx context.Context, target decision.Target) ([]decision.Revision, error) {
	all, err := p.opts.DB.Decisions(ctx, decision.Lookup{})
	if err != nil {
		return nil, err
	}
	return decision.Applicable(all, target), nil
}

// note returns the session-start note for the MCP instructions (DEC-15).
func (p *decisions) note(ctx context.Context, target decision.Target) (string, error) {
	current, err := p.applicable(ctx, target)
	if err != nil {
		return "", err
	}
	return decision.Note(current), nil
}
