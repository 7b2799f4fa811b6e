// Package questions keeps what sessions ask their owner, and carries the answers to them
// (row NED-03). What is asked and answered is durable in questions.db before anybody is
// told of it; an answer that a crash kept from its session is carried by the next broker,
// once. Only the owner answers: a tool asks and withdraws.
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

// Broker is what questions ask of the broker; *broker.Broker is one.
type Broker interface {
	// Asker finds out who asks on a connection.
	Asker(ctx context.Context, conn *ipc.Conn, caller api.Caller) (broker.Asker, error)
	// Chat carries the owner's words to a session by the best way of its kind.
	Chat(ctx context.Context, request chat.Request) (chat.Outcome, error)
	// Deliver stores a message for a session, once however often it is asked.
	Deliver(ctx context.Context, from bridge.Address, peerID string, args api.SendArgs) error
	// IsStored reports whether a message of that id was ever stored.
	IsStored(ctx context.Context, messageID string) (bool, error)
	// DecideOwner records a decision of the owner's, once for that id.
	DecideOwner(ctx context.Context, cwd string, args api.DecideArgs) (api.DecideResult, error)
	// Changed tells everyone who watches.
	Changed()
}

// Options says what Questions work with. All fields are required.
type Options struct {
	Path   string // of questions.db
	Broker Broker
	Now    func() time.Time
	Log    *slog.Logger
}

// Questions serves one home. Its methods may be called concurrently.
type Questions struct {
	opts Options

	mu   sync.Mutex // guards below, and is held while something is written
	file file
	list []question.Question // in the order in which they were asked
}

// Open reads what was asked. An answer that did not reach its session is carried by
// Resume.
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

// Resume carries the answers that a crash kept from their sessions.
func (q *Questions) Resume(ctx context.Context) {
	for _, one := range q.Questions() {
		if one.State == question.Answered && !one.Carried && one.By.ID != "" {
			if err := q.carry(ctx, one.ID); err != nil {
				q.opts.Log.Error("an answer of the owner's waits to be carried", "question", one.ID, "err", err)
			}
		}
	}
}

// Questions lists the open ones and the last that are over, in the order in which they
// were asked.
func (q *Questions) Questions() []question.Question {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.list)
}

// Needs are the open ones, as the list of the owner's needs has them. What another
// program asked is not his to answer here.
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

// ask takes a question in. The id is chosen by whoever asks: the same one again is the
// same question.
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
			other.By.ID = one.By.ID // it has another id since, and is the same session
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
		changed = []question.Question{before, one} // in this order: of one key one is open
	}
	return one, q.saveLocked(ctx, changed...)
}

// withdraw takes an own question back. One that is over stays as it is.
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

// of is an own question.
func (q *Questions) of(by broker.Asker, id string) (question.Question, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if at := q.find(id); at >= 0 && by.Same(q.list[at].By.ID) {
		return q.list[at], nil
	}
	return question.Question{}, bridge.Errorf(bridge.NotFound, "you have asked no question %q", id)
}

// Answer gives a question its owner's answer; the first one wins. The question is as it
// is then, also beside a Conflict. It is answered for good once this returns without an
// error, whether or not its session could be told yet.
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

// carry takes an answer to its session, and pins it where that was asked for. What was
// done is not done again: the message and the decision have ids of their own, and a
// message that was stored before is on its way.
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

// send stores the answer for its session: as mail in a thread of its own for one that
// waits there, and by the way of the owner's words for every other.
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

// find is where a question is in the list, -1 for nowhere.
func (q *Questions) find(id string) int {
	return slices.IndexFunc(q.list, func(one question.Question) bool { return one.ID == id })
}

// saveLocked writes what changed and shows it from then on.
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

// isOver reports whether nothing more comes of it.
func isOver(one question.Question) bool {
	return one.State != question.Open && (one.State != question.Answered || one.Carried)
}
