// Package questions keeps the questions of sessions to their owner, and sends the
// answers back (row NED-03). Questions and answers are durable in questions.db before
// anyone is notified. If a crash stops an answer, the next broker sends it once. Only
// the owner answers; tools ask and withdraw.
package questions

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"bridge/backend/broker"
	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/needs"
	"bridge/backend/core/question"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// Broker is the part of the broker that questions use; *broker.Broker implements it.
type Broker interface {
	// Asker returns the session behind a connection.
	Asker(ctx context.Context, conn *ipc.Conn, caller api.Caller) (broker.Asker, error)
	// Chat sends an owner's message to a session by the best transport of its kind.
	Chat(ctx context.Context, request chat.Request) (chat.Outcome, error)
	// Deliver stores a message for a session, only once for any number of calls.
	Deliver(ctx context.Context, from bridge.Address, peerID string, args api.SendArgs) error
	// IsStored reports whether a message with that id was ever stored.
	IsStored(ctx context.Context, messageID string) (bool, error)
	// DecideOwner records a decision of the owner, once per id.
	DecideOwner(ctx context.Context, cwd string, args api.DecideArgs) (api.DecideResult, error)
	// Changed notifies all subscribers.
	Changed()
}

// Options configures Questions. All fields are required.
type Options struct {
	Path   string // of questions.db
	Broker Broker
	Now    func() time.Time
	Log    *slog.Logger
}

// Questions keeps the questions of one home. Its methods are safe for concurrent use.
type Questions struct {
	opts Options

	mu   sync.Mutex // guards the fields below; held during a write
	file file
	list []question.Question // in the order in which they were asked
}

// Open reads the questions. Resume sends the answers that did not reach their sessions.
func Open(ctx context.Context, opts Options) (*Questions, error) {
	q := &Questions{opts: opts, file: file{path: opts.Path, log: opts.Log}}
	var err error
	q.list, err = q.file.open(ctx)
	return q, err
}

// Close closes questions.db.
func (q *Questions) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.file.close()
}

// Resume sends the answers that a crash kept from their sessions.
func (q *Questions) Resume(ctx context.Context) {
	for _, one := range q.Questions() {
		if one.State == question.Answered && !one.Carried && one.By.ID != "" {
			if err := q.carry(ctx, one.ID); err != nil {
				q.opts.Log.Error("an answer of the owner's waits to be carried", "question", one.ID, "err", err)
			}
		}
	}
}

// Questions lists the open questions and the last closed ones, in the order in which
// they were asked.
func (q *Questions) Questions() []question.Question {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.list)
}

// Needs returns the open questions as facts for the list of the owner's needs. It omits
// questions of other programs, which the owner cannot answer here.
func (q *Questions) Needs() (facts []needs.QuestionFact) {
	for _, one := range q.Questions() {
		if one.State != question.Open || one.By.ID == "" {
			continue
		}
		fact := needs.QuestionFact{
			ID: one.ID, By: cmp.Or(one.By.Name, "somebody"), Folder: one.Project, Title: one.Title, Context: one.Context, Blocking: one.Blocking, AskedAt: one.AskedAt,
		}
		for _, option := range one.Options {
			fact.Options = append(fact.Options, option.Label)
		}
		facts = append(facts, fact)
	}
	return facts
}

// ask records a question. The caller chooses the id: if it repeats the id, ask returns
// the same question.
func (q *Questions) ask(ctx context.Context, by broker.Asker, id string, args question.Args) (question.Question, error) {
	if err := bridge.CheckID("the question's id", id); err != nil {
		return question.Question{}, err
	}
	if err := args.Check(); err != nil {
		return question.Question{}, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if at := q.find(id); at >= 0 {
		if !by.Same(q.list[at].By.ID) {
			return question.Question{}, bridge.Errorf(bridge.Conflict, "another session has asked a question of that id")
		}
		return q.list[at], nil
	}
	one := question.Question{
		ID: id, Project: by.Cwd, Title: args.Title, Context: args.Context, Topic: args.Topic, Options: args.Options, Blocking: args.Blocking,
		By: by.Address, State: question.Open, AskedAt: q.opts.Now().UnixMilli(),
	}
	var own []question.Question
	for _, other := range q.list {
		if other.State == question.Open && by.Same(other.By.ID) {
			other.By.ID = one.By.ID // it is the same session with a new id
			own = append(own, other)
		}
	}
	replaces, err := question.Ask(one, own)
	if err != nil {
		return question.Question{}, err
	}
	changed := []question.Question{one}
	if replaces != "" {
		before := q.list[q.find(replaces)]
		if err := before.End(question.Superseded, one.AskedAt); err != nil {
			return question.Question{}, err
		}
		changed = []question.Question{before, one} // the order matters: only one question of a key may be open
	}
	return one, q.saveLocked(ctx, changed...)
}

// withdraw cancels a question of the caller. A closed question stays unchanged.
func (q *Questions) withdraw(ctx context.Context, by broker.Asker, id string) (question.Question, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := q.find(id)
	if at < 0 || !by.Same(q.list[at].By.ID) {
		return question.Question{}, bridge.Errorf(bridge.NotFound, "you have asked no question %q", id)
	}
	one := q.list[at]
	if one.State != question.Open {
		return one, nil
	}
	if err := one.End(question.Cancelled, q.opts.Now().UnixMilli()); err != nil {
		return one, err
	}
	return one, q.saveLocked(ctx, one)
}

// of returns a question of the caller.
func (q *Questions) of(by broker.Asker, id string) (question.Question, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if at := q.find(id); at >= 0 && by.Same(q.list[at].By.ID) {
		return q.list[at], nil
	}
	return question.Question{}, bridge.Errorf(bridge.NotFound, "you have asked no question %q", id)
}

// Answer records the owner's answer to a question; the first answer wins. It returns
// the current question, even with a Conflict. If it returns no error, the answer is
// final, even if the session does not have it yet.
func (q *Questions) Answer(ctx context.Context, id string, answer question.Answer) (question.Question, error) {
	one, err := q.decide(ctx, id, answer)
	if err != nil {
		return one, err
	}
	if err := q.carry(ctx, id); err != nil {
		q.opts.Log.Error("an answer of the owner's waits to be carried", "question", id, "err", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.list[q.find(id)], nil
}

func (q *Questions) decide(ctx context.Context, id string, answer question.Answer) (question.Question, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := q.find(id)
	if at < 0 {
		return question.Question{}, bridge.Errorf(bridge.NotFound, "there is no question %q", id)
	}
	one := q.list[at]
	if err := one.Decide(answer, q.opts.Now().UnixMilli()); err != nil {
		return q.list[at], err
	}
	if one.By.ID == "" {
		return q.list[at], bridge.Errorf(bridge.Unsupported, "another program asked this, and nobody here can tell it the answer")
	}
	one.Message = question.MessageID(id)
	return one, q.saveLocked(context.WithoutCancel(ctx), one)
}

// carry sends an answer to its session, and pins it if the owner asked for that. It
// repeats no completed step: message and decision have unique ids, and a stored message
// is in delivery.
func (q *Questions) carry(ctx context.Context, id string) error {
	ctx = context.WithoutCancel(ctx)
	q.mu.Lock()
	one := q.list[q.find(id)]
	q.mu.Unlock()
	if one.Answer.Pin && !one.Pinned {
		topic := cmp.Or(one.Topic, one.Title)
		args := api.DecideArgs{ID: one.ID, Topic: string([]rune(topic)[:min(len([]rune(topic)), question.MaxTopicChars)]), Text: one.Title + " " + one.Answer.Words()}
		if _, err := q.opts.Broker.DecideOwner(ctx, one.Project, args); err != nil {
			return err
		}
		one.Pinned = true
	}
	stored, err := q.opts.Broker.IsStored(ctx, one.Message)
	if err == nil && !stored {
		one.Via, err = q.send(ctx, one)
	}
	if err != nil {
		return err
	}
	one.Carried = true
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.saveLocked(ctx, one)
}

// send stores the answer for its session. If the session waits, the answer goes as mail
// in a separate thread, otherwise as the owner's chat message.
func (q *Questions) send(ctx context.Context, one question.Question) (via string, err error) {
	if !one.Blocking {
		outcome, err := q.opts.Broker.Chat(ctx, chat.Request{Session: one.By.ID, Body: one.Body(), MessageID: one.Message})
		if bridge.CodeOf(err) != bridge.NotFound {
			return string(outcome.Transport), err
		}
	}
	return string(chat.Bridge), q.opts.Broker.Deliver(ctx, bridge.OwnerAddress(), one.By.ID, api.SendArgs{
		To: one.By.Name, MessageID: one.Message, ConversationID: question.Conversation(one.ID), Body: one.Body(),
	})
}

// find returns the index of a question in the list, or -1.
func (q *Questions) find(id string) int {
	return slices.IndexFunc(q.list, func(one question.Question) bool { return one.ID == id })
}

// saveLocked writes changed questions and then updates the list.
func (q *Questions) saveLocked(ctx context.Context, changed ...question.Question) error {
	if err := q.file.put(ctx, changed...); err != nil {
		return err
	}
	for _, one := range changed {
		if at := q.find(one.ID); at >= 0 {
			q.list[at] = one
		} else {
			q.list = append(q.list, one)
		}
	}
	over := 0
	for _, one := range q.list {
		if isOver(one) {
			over++
		}
	}
	q.list = slices.DeleteFunc(q.list, func(one question.Question) bool {
		if !isOver(one) || over <= keptEnded {
			return false
		}
		over--
		return true
	})
	q.opts.Broker.Changed()
	return nil
}

// isOver reports whether a question is closed and its answer sent.
func isOver(one question.Question) bool {
	return one.State != question.Open && (one.State != question.Answered || one.Carried)
}
