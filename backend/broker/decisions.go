package broker

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"

	"bridge/backend/bridge"
	"bridge/backend/decision"
	"bridge/backend/ipc/api"
	"bridge/backend/session"
	"bridge/backend/store"
)

// decisions is the part that records decisions and tells sessions of them.
type decisions struct{ *core }

// decide records a decision and queues one durable message for every connected
// session in its scope (DEC-01, DEC-10). The author is the calling session.
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

// record records a decision of that author, who works in that folder.
func (p *decisions) record(ctx context.Context, author bridge.Address, cwd string, args api.DecideArgs) (api.DecideResult, error) {
	rev, err := p.revisionOf(author, cwd, args)
	if err != nil {
		return api.DecideResult{}, err
	}
	messageID := newMessageID()
	p.at(recording)
	rev, queued, err := p.opts.DB.RecordDecision(ctx, rev, func(r decision.Revision) []store.Notification {
		targets := p.inScope(r.Scope) // inside the write, so that persistIdentity finds what was written without a session
		p.at(recipientsChosen)
		return store.Notifications(r, messageID, targets)
	})
	if err != nil {
		return api.DecideResult{}, err
	}
	p.notify(ctx, queued)
	return api.DecideResult{Decision: rev, DeliveredTo: p.namesOf(queued)}, nil
}

// Points between which a session may join.
const (
	recording        point = "a decision is about to be written"
	recipientsChosen point = "a decision is being written, and its recipients are chosen"
	persisting       point = "a session that joined is about to be written"
)

// revisionOf checks the request and turns it into the revision to record.
func (p *decisions) revisionOf(author bridge.Address, cwd string, args api.DecideArgs) (decision.Revision, error) {
	rev, err := decision.New(args.Topic, args.Text, args.Scope, cwd)
	if err == nil {
		err = p.CheckWords(rev.Scope.Sessions...)
	}
	if err != nil {
		return decision.Revision{}, err
	}
	rev.ID, rev.Author, rev.CreatedAt = args.ID, author, p.nowMillis()
	if rev.ID == "" {
		rev.ID = uuid.NewString()
	} else if err := bridge.CheckID("the decision's id", rev.ID); err != nil {
		return decision.Revision{}, err
	}
	if args.SourceMessageID != "" {
		rev.SourceMessageID = &args.SourceMessageID
	}
	return rev, nil
}

// inScope lists the connected sessions that a scope reaches, job runners
// excluded.
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

// notify tells live sessions of queued notifications.
func (p *decisions) notify(ctx context.Context, queued []store.Notification) {
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

func (p *decisions) namesOf(queued []store.Notification) []string {
	p.Lock()
	defer p.Unlock()
	names := []string{}
	for _, n := range queued {
		names = append(names, p.NameLocked(n.Message.Recipient))
	}
	return names
}

// decisions looks decisions up for a session (DEC-05, DEC-06, DEC-08).
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

// catchUp queues the applicable current decisions that the session was not told
// of yet (DEC-13), and that the owner of this PC decided at the same time as another,
// where it was so (HUB-06). Receipts keep it from being told twice.
func (p *decisions) catchUp(ctx context.Context, target decision.Target) error {
	current, err := p.applicable(ctx, target)
	if err != nil {
		return err
	}
	told, err := p.opts.DB.Delivered(ctx, target.SessionKey())
	if err != nil {
		return err
	}
	var beside map[string]*decision.Revision
	if slices.ContainsFunc(current, func(r decision.Revision) bool { return !told[r.ID] && decision.Placed{Revision: r}.IsImported() }) {
		if beside, err = p.opts.DB.Remote().BesideOwn(ctx); err != nil {
			return err
		}
	}
	var missing []store.Notification
	missed, rest := decision.Missed(current, told)
	for i, revision := range missed { // oldest first, as they were made
		news := decision.News{Revision: revision, Beside: beside[revision.ID]}
		if i == len(missed)-1 {
			news.Rest = len(rest)
		}
		list := store.Notifications(revision, newMessageID(), []decision.Target{target})
		list[0].Message.CreatedAt, list[0].Message.Body = p.nowMillis(), news.Body()
		missing = append(missing, list...)
	}
	missing = append(missing, store.WithoutMessage(rest, target.SessionKey(), p.nowMillis())...)
	if len(missing) == 0 {
		return nil
	}
	queued, err := p.opts.DB.NotifyDecisions(ctx, missing)
	if err != nil {
		return err
	}
	p.notify(ctx, queued)
	return nil
}

// catchUpAll catches up every connected session but job runners.
func (p *decisions) catchUpAll(ctx context.Context) (err error) {
	for _, target := range p.inScope(decision.AllSessions()) {
		err = errors.Join(err, p.catchUp(ctx, target))
	}
	return err
}

// applicable lists the current decisions that reach a session, newest first.
func (p *decisions) applicable(ctx context.Context, target decision.Target) ([]decision.Revision, error) {
	all, err := p.opts.DB.Decisions(ctx, decision.Lookup{})
	if err != nil {
		return nil, err
	}
	return decision.Applicable(all, target), nil
}

// note is the session-start note for the MCP instructions (DEC-15).
func (p *decisions) note(ctx context.Context, target decision.Target) (string, error) {
	current, err := p.applicable(ctx, target)
	if err != nil {
		return "", err
	}
	return decision.Note(current), nil
}
