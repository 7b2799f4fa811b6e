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
	for _, item := range q.Questions() {
		if item.State == question.Answered && !item.Carried && item.By.ID != "" {
			if err := q.carry(ctx, item.ID); err != nil {
				q.opts.Log.Error("an answer of the owner's waits to be carried", "question", item.ID, "err", err)
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
	for _, item := range q.Questions() {
		if item.State != question.Open || item.By.ID == "" {
			continue
		}
		fact := needs.QuestionFact{
			ID: item.ID, By: cmp.Or(item.By.Name, "somebody"), Folder: item.Project, Title: item.Title, Context: item.Context, Blocking: item.Blocking, AskedAt: item.AskedAt,
		}
		for _, option := range item.Options {
			fact.Options = append(fact.Options, option.Label)
		}
		facts = append(facts, fact)
	}
	return facts
}

// ask records a question. The caller chooses the id: if it repeats the id, ask returns
// the same question.
func (q *Questions) ask(ctx context.Context, asker broker.Asker, id string, args question.Args) (question.Question, error) {
	if err := bridge.CheckID("the question's id", id); err != nil {
		return question.Question{}, err
	}
	if err := args.Check(); err != nil {
		return question.Question{}, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if at := q.find(id); at >= 0 {
		if !asker.Same(q.list[at].By.ID) {
			return question.Question{}, bridge.Errorf(bridge.Conflict, "another session has asked a question of that id")
		}
		return q.list[at], nil
	}
	item := question.Question{
		ID: id, Project: asker.Cwd, Title: args.Title, Context: args.Context, Topic: args.Topic, Options: args.Options, Blocking: args.Blocking,
		By: asker.Address, State: question.Open, AskedAt: q.opts.Now().UnixMilli(),
	}
	var own []question.Question
	for _, other := range q.list {
		if other.State == question.Open && asker.Same(other.By.ID) {
			other.By.ID = item.By.ID // it is the same session with a new id
			own = append(own, other)
		}
	}
	replaces, err := question.Ask(item, own)
	if err != nil {
		return question.Question{}, err
	}
	changed := []question.Question{item}
	if replaces != "" {
		before := q.list[q.find(replaces)]
		if err := before.End(question.Superseded, item.AskedAt); err != nil {
			return question.Question{}, err
		}
		changed = []question.Question{before, item} // the order matters: only one question of a key may be open
	}
	return item, q.saveLocked(ctx, changed...)
}

// withdraw cancels a question of the caller. A closed question stays unchanged.
func (q *Questions) withdraw(ctx context.Context, asker broker.Asker, id string) (question.Question, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := q.find(id)
	if at < 0 || !asker.Same(q.list[at].By.ID) {
		return question.Question{}, bridge.Errorf(bridge.NotFound, "you have asked no question %q", id)
	}
	item := q.list[at]
	if item.State != question.Open {
		return item, nil
	}
	if err := item.End(question.Cancelled, q.opts.Now().UnixMilli()); err != nil {
		return item, err
	}
	return item, q.saveLocked(ctx, item)
}

// get returns a question of the caller.
func (q *Questions) get(asker broker.Asker, id string) (question.Question, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if at := q.find(id); at >= 0 && asker.Same(q.list[at].By.ID) {
		return q.list[at], nil
	}
	return question.Question{}, bridge.Errorf(bridge.NotFound, "you have asked no question %q", id)
}

// Answer records the owner's answer to a question; the first answer wins. It returns
// the current question, even with a Conflict. If it returns no error, the answer is
// final, even if the session does not have it yet.
func (q *Questions) Answer(ctx context.Context, id string, answer question.Answer) (question.Question, error) {
	item, err := q.decide(ctx, id, answer)
	if err != nil {
		return item, err
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
	item := q.list[at]
	if err := item.Decide(answer, q.opts.Now().UnixMilli()); err != nil {
		return q.list[at], err
	}
	if item.By.ID == "" {
		return q.list[at], bridge.Errorf(bridge.Unsupported, "another program asked this, and nobody here can tell it the answer")
	}
	item.Message = question.MessageID(id)
	return item, q.saveLocked(context.WithoutCancel(ctx), item)
}

// carry sends an answer to its session, and pins it if the owner asked for that. It
// repeats no completed step: message and decision have unique ids, and a stored message
// is in delivery.
func (q *Questions) carry(ctx context.Context, id string) error {
	ctx = context.WithoutCancel(ctx)
	q.mu.Lock()
	item := q.list[q.find(id)]
	q.mu.Unlock()
	if item.Answer.Pin && !item.Pinned {
		topic := cmp.Or(item.Topic, item.Title)
		args := api.DecideArgs{ID: item.ID, Topic: string([]rune(topic)[:min(len([]rune(topic)), question.MaxTopicChars)]), Text: item.Title + " " + item.Answer.Words()}
		if _, err := q.opts.Broker.DecideOwner(ctx, item.Project, args); err != nil {
			return err
		}
		item.Pinned = true
	}
	stored, err := q.opts.Broker.IsStored(ctx, item.Message)
	if err == nil && !stored {
		item.Via, err = q.send(ctx, item)
	}
	if err != nil {
		return err
	}
	item.Carried = true
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.saveLocked(ctx, item)
}

// send stores the answer for its session. If the session waits, the answer goes as mail
// in a separate thread, otherwise as the owner's chat message.
func (q *Questions) send(ctx context.Context, item question.Question) (via string, err error) {
	if !item.Blocking {
		outcome, err := q.opts.Broker.Chat(ctx, chat.Request{Session: item.By.ID, Body: item.Body(), MessageID: item.Message})
		if bridge.CodeOf(err) != bridge.NotFound {
			return string(outcome.Transport), err
		}
	}
	return string(chat.Bridge), q.opts.Broker.Deliver(ctx, bridge.OwnerAddress(), item.By.ID, api.SendArgs{
		To: item.By.Name, MessageID: item.Message, ConversationID: question.Conversation(item.ID), Body: item.Body(),
	})
}

// find returns the index of a question in the list, or -1.
func (q *Questions) find(id string) int {
	return slices.IndexFunc(q.list, func(item question.Question) bool { return item.ID == id })
}

// saveLocked writes changed questions and then updates the list.
func (q *Questions) saveLocked(ctx context.Context, changed ...question.Question) error {
	if err := q.file.put(ctx, changed...); err != nil {
		return err
	}
	for _, item := range changed {
		if at := q.find(item.ID); at >= 0 {
			q.list[at] = item
		} else {
			q.list = append(q.list, item)
		}
	}
	over := 0
	for _, item := range q.list {
		if isOver(item) {
			over++
		}
	}
	q.list = slices.DeleteFunc(q.list, func(item question.Question) bool {
		if !isOver(item) || over <= keptEnded {
			return false
		}
		over--
		return true
	})
	q.opts.Broker.Changed()
	return nil
}

// isOver reports whether a question is closed and its answer sent.
func isOver(item question.Question) bool {
	return item.State != question.Open && (item.State != question.Answered || item.Carried)
}
