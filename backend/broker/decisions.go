package broker

import (
	"context"

	"github.com/google/uuid"

	"bridge/backend/bridge"
	"bridge/backend/decision"
	"bridge/backend/ipc/api"
	"bridge/backend/session"
	"bridge/backend/store"
)

// decide records a decision and queues one durable message for every connected
// session in its scope (DEC-01, DEC-10). The author is the calling session.
func (b *Broker) decide(ctx context.Context, l *link, args api.DecideArgs) (api.DecideResult, error) {
	s, err := b.callerOf(ctx, l, args.Caller)
	if err != nil {
		return api.DecideResult{}, err
	}
	if err := b.active(ctx, s, "tool decide"); err != nil {
		return api.DecideResult{}, err
	}
	rev, err := b.revisionOf(s, args)
	if err != nil {
		return api.DecideResult{}, err
	}
	messageID := newMessageID()
	b.at(recording)
	rev, queued, err := b.opts.DB.RecordDecision(ctx, rev, func(r decision.Revision) []store.Notification {
		targets := b.inScope(r.Scope) // inside the write, so that settle finds what was written without a session
		b.at(recipientsChosen)
		return notifications(r, messageID, targets)
	})
	if err != nil {
		return api.DecideResult{}, err
	}
	b.deliver(ctx, queued)
	return api.DecideResult{Decision: rev, DeliveredTo: b.namesOf(queued)}, nil
}

// Points between which a session may join.
const (
	recording        point = "a decision is about to be written"
	recipientsChosen point = "a decision is being written, and its recipients are chosen"
	settling         point = "a session that joined is about to be written"
)

// revisionOf checks the request and turns it into the revision to record.
func (b *Broker) revisionOf(s *session.Session, args api.DecideArgs) (decision.Revision, error) {
	topic, err := decision.NormalizeTopic(args.Topic)
	if err != nil {
		return decision.Revision{}, err
	}
	if err := decision.CheckText(args.Text); err != nil {
		return decision.Revision{}, err
	}
	b.mu.Lock()
	author, cwd := s.Address(), s.Cwd
	b.mu.Unlock()
	scope, err := scopeOrProject(args.Scope, cwd)
	if err != nil {
		return decision.Revision{}, err
	}
	if err := b.checkWords(scope.Sessions); err != nil {
		return decision.Revision{}, err
	}
	rev := decision.Revision{
		ID: args.ID, Topic: topic, Text: args.Text, Scope: scope, Author: author, CreatedAt: b.nowMillis(), Current: true,
	}
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

// checkWords refuses the words that name more than one session (MSG-05).
func (b *Broker) checkWords(words []string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, word := range words {
		if err := b.roster.CheckWord(word); err != nil {
			return err
		}
	}
	return nil
}

// scopeOrProject is the scope asked for, else the session's project (DEC-06).
func scopeOrProject(scope *decision.Scope, cwd string) (decision.Scope, error) {
	if scope != nil {
		return *scope, nil
	}
	if cwd == "" {
		return decision.Scope{}, bridge.Errorf(bridge.Invalid, "this session's project folder is not known: give a scope")
	}
	return decision.ProjectOf(cwd), nil
}

// inScope lists the connected sessions that a scope reaches, job runners
// excluded.
func (b *Broker) inScope(scope decision.Scope) []decision.Target {
	b.mu.Lock()
	defer b.mu.Unlock()
	var targets []decision.Target
	for _, s := range b.roster.Live() {
		if target := b.roster.Target(s); !s.Runner && scope.Reaches(target) {
			targets = append(targets, target)
		}
	}
	return targets
}

// notifications makes the message for each target: one message with as many
// deliveries as there are sessions.
func notifications(r decision.Revision, messageID string, targets []decision.Target) []store.Notification {
	list := make([]store.Notification, 0, len(targets))
	for _, target := range targets {
		list = append(list, store.Notification{
			DecisionID: r.ID,
			SessionKey: target.SessionKey(),
			Message: bridge.Message{
				ID: messageID, Recipient: target.ID, From: r.Author, To: r.Scope.Target(),
				ConversationID: bridge.DecisionConversation + r.ID, Hop: bridge.DecisionHop,
				Body: decision.NotificationBody(r), CreatedAt: r.CreatedAt,
			},
		})
	}
	return list
}

// deliver tells live sessions of queued notifications.
func (b *Broker) deliver(ctx context.Context, queued []store.Notification) {
	if len(queued) == 0 {
		b.changed()
		return
	}
	messages := make([]bridge.Message, len(queued))
	for i, n := range queued {
		messages[i] = n.Message
	}
	b.arrived(ctx, messages)
}

func (b *Broker) namesOf(queued []store.Notification) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	names := []string{}
	for _, n := range queued {
		names = append(names, b.nameLocked(n.Message.Recipient))
	}
	return names
}

// decisions looks decisions up for a session (DEC-05, DEC-06, DEC-08).
func (b *Broker) decisions(ctx context.Context, l *link, args api.DecisionsArgs) ([]decision.Revision, error) {
	s, err := b.callerOf(ctx, l, args.Caller)
	if err != nil {
		return nil, err
	}
	if err := decision.CheckQuery(args.Query); err != nil {
		return nil, err
	}
	target := b.targetOf(s)
	scope, err := scopeOrProject(args.Scope, target.Cwd)
	if err != nil {
		return nil, err
	}
	found, err := b.opts.DB.Decisions(ctx, decision.Lookup{Query: args.Query, Scope: &scope, History: args.History, Asking: &target})
	if err != nil {
		return nil, err
	}
	if found == nil {
		found = []decision.Revision{}
	}
	return found, b.active(ctx, s, "tool decisions")
}

// catchUp queues the applicable current decisions that the session was not told
// of yet (DEC-13). Receipts keep it from being told twice.
func (b *Broker) catchUp(ctx context.Context, target decision.Target) error {
	current, err := b.applicable(ctx, target)
	if err != nil {
		return err
	}
	told, err := b.opts.DB.Delivered(ctx, target.SessionKey())
	if err != nil {
		return err
	}
	var missing []store.Notification
	for i := len(current) - 1; i >= 0; i-- { // oldest first, as they were made
		if told[current[i].ID] {
			continue
		}
		one := notifications(current[i], newMessageID(), []decision.Target{target})
		one[0].Message.CreatedAt = b.nowMillis()
		missing = append(missing, one...)
	}
	if len(missing) == 0 {
		return nil
	}
	queued, err := b.opts.DB.NotifyDecisions(ctx, missing)
	if err != nil {
		return err
	}
	b.deliver(ctx, queued)
	return nil
}

// applicable lists the current decisions that reach a session, newest first.
func (b *Broker) applicable(ctx context.Context, target decision.Target) ([]decision.Revision, error) {
	all, err := b.opts.DB.Decisions(ctx, decision.Lookup{})
	if err != nil {
		return nil, err
	}
	return decision.Applicable(all, target), nil
}

// note is the session-start note for the MCP instructions (DEC-15).
func (b *Broker) note(ctx context.Context, target decision.Target) (string, error) {
	current, err := b.applicable(ctx, target)
	if err != nil {
		return "", err
	}
	return decision.Note(current), nil
}
