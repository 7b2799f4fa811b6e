package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"sync"
	"time"

	"bridge/backend/bridge"
	"bridge/backend/job"
)

// interruptTime is what a CLI gets to end its turn before Close goes on; the
// slowest needs 0.3 s.
const interruptTime = 3 * time.Second

// protocol is what differs between the kinds. Each method returns when the CLI
// has taken what was said; errors are those of job.Run.
type protocol interface {
	message(ctx context.Context, message job.Message) error
	answer(ctx context.Context, question job.Question, answer job.Answer) error
	interrupt(ctx context.Context) error
	// leave ends what the CLI runs in the background; its process is ended by
	// the run.
	leave(ctx context.Context)
}

// run is what all kinds have in common: it implements job.Run and keeps the
// book of messages, questions and turns.
type run struct {
	protocol protocol
	process  *process
	feed     *feed
	opened   chan struct{} // closed when the session is there, or never will be

	mu        sync.Mutex // guards the book: everything below
	state     job.ActivityState
	turn      bool  // a turn runs
	over      bool  // the CLI says nothing more
	unopened  error // why there is no session
	session   string
	messages  map[string]*sent
	questions map[string]*asked

	closing sync.Once
	closed  chan struct{} // closed when Close has done its work
	failed  error         // what Close came to
}

// sent is a message that was handed over once, and how that went.
type sent struct {
	text    string
	done    chan struct{} // closed when it was handed over or refused
	err     error
	waiting bool // it is on its way to the model
}

// asked is a question and the one answer that was given.
type asked struct {
	question job.Question
	answer   *job.Answer
	done     chan struct{} // closed when the answer was taken
	err      error
	gone     bool          // resolved or withdrawn
	closed   chan struct{} // closed when it is gone
}

// newRun puts a process under a run and says so.
func newRun(p *process, floor job.Floor) *run {
	r := &run{
		process: p, feed: newFeed(), opened: make(chan struct{}), state: job.ActivityIdle,
		messages: map[string]*sent{}, questions: map[string]*asked{}, closed: make(chan struct{}),
	}
	r.feed.put(job.Spawned{Processes: []job.Process{p.identity()}, Floor: floor})
	return r
}

// begin reads the CLI's lines until it ends, and hands the prompt over.
func (r *run) begin(prompt job.Message, line func([]byte)) {
	first, _ := r.claim(prompt)
	go func() {
		r.process.lines(line)
		r.process.lost()
		r.finish()
	}()
	go func() {
		err := r.deliver(context.Background(), first, prompt)
		if err != nil && !errors.Is(err, job.ErrEnded) && !errors.Is(err, job.ErrUnconfirmed) {
			r.endTurn(r.refusedPrompt(err), true)
		}
	}()
}

// refusedPrompt tells why a CLI that runs did not take the prompt.
func (r *run) refusedPrompt(err error) job.TurnEnded {
	end := job.TurnEnded{Why: job.EndFailed, Message: err.Error()}
	if refused, ok := errors.AsType[*openError](err); ok {
		end.Why = refused.why
	}
	return end
}

// openError is a session that could not be had.
type openError struct {
	why job.EndReason
	error
}

// finish is the end of the stream: what was open is gone.
func (r *run) finish() {
	r.mu.Lock()
	turn := r.turn || r.anyWaitingLocked()
	r.over = true
	r.openLocked()
	r.mu.Unlock()
	r.withdrawAll()
	if pending, has := r.protocol.(interface{ end() }); has {
		pending.end()
	}
	exited := r.process.exited()
	if turn {
		r.endTurn(r.lostTurn(exited), true)
	}
	r.feed.close(exited)
}

// lostTurn tells why a CLI that ended in the middle did so.
func (r *run) lostTurn(exited job.Exited) job.TurnEnded {
	end := job.TurnEnded{Why: job.EndLost, Message: "the CLI ended in the middle"}
	if judge, can := r.protocol.(interface {
		exited(job.Exited) (job.EndReason, bool)
	}); can {
		if why, known := judge.exited(exited); known {
			end = job.TurnEnded{Why: why, Message: exited.Stderr}
		}
	}
	return end
}

func (r *run) anyWaitingLocked() bool {
	for _, m := range r.messages {
		if m.waiting {
			return true
		}
	}
	return false
}

// open says that the session is there, once.
func (r *run) open(opened job.Opened) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session != "" || r.over {
		return
	}
	r.session = opened.Session
	r.feed.put(opened)
	r.openLocked()
}

func (r *run) openLocked() {
	select {
	case <-r.opened:
	default:
		close(r.opened)
	}
}

// waitOpen waits until the session is there.
func (r *run) waitOpen(ctx context.Context) error {
	select {
	case <-r.opened:
	case <-ctx.Done():
		return ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return job.ErrEnded
	}
	return r.unopened
}

// failOpen says that there will be no session.
func (r *run) failOpen(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session == "" && r.unopened == nil {
		r.unopened = err
		r.openLocked()
	}
}

// Events implements job.Run.
func (r *run) Events() <-chan job.Event { return r.feed.out }

// Message implements job.Run.
func (r *run) Message(ctx context.Context, message job.Message) error {
	m, again := r.claim(message)
	switch {
	case m == nil:
		return job.ErrEnded
	case !again:
		return r.deliver(ctx, m, message)
	}
	select {
	case <-m.done:
		return m.err
	case <-ctx.Done():
		return job.ErrUnconfirmed
	}
}

// claim takes the right to hand a message over; again says that somebody has it.
// It is nil when the run is over.
func (r *run) claim(message job.Message) (m *sent, again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m, again = r.messages[message.ID]; again || r.over {
		return m, again
	}
	m = &sent{text: message.Text, done: make(chan struct{}), waiting: true}
	r.messages[message.ID] = m
	return m, false
}

func (r *run) deliver(ctx context.Context, m *sent, message job.Message) error {
	err := r.protocol.message(ctx, message)
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(m.done)
	switch m.err = err; {
	case err == nil:
		r.feed.put(job.Accepted{Message: message.ID})
	case !errors.Is(err, job.ErrUnconfirmed) && !errors.Is(err, job.ErrEnded):
		m.waiting = false // it is refused, so no turn comes of it
	}
	return err
}

// inserted says that a message is part of the turn, once.
func (r *run) inserted(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m, known := r.messages[id]; known && m.waiting {
		m.waiting, r.turn = false, true
		r.feed.put(job.Inserted{Message: id})
		r.showLocked()
	}
}

// insertedText is inserted for a CLI that keeps no ids: one of the messages on
// their way that say this.
func (r *run) insertedText(text string) {
	r.mu.Lock()
	id := ""
	for known, m := range r.messages {
		if m.waiting && m.text == text {
			id = known
		}
	}
	r.mu.Unlock()
	r.inserted(id)
}

// waiting reports whether a message is on its way to the model.
func (r *run) waiting() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.anyWaitingLocked()
}

// turnRuns says that a turn runs.
func (r *run) turnRuns() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn = true
	r.showLocked()
}

// endTurn ends the turn; idle says that no other follows by itself.
func (r *run) endTurn(end job.TurnEnded, idle bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn = !idle
	r.feed.put(end)
	r.showLocked()
}

// showLocked says what the run does when that has changed.
func (r *run) showLocked() {
	state := job.ActivityIdle
	switch {
	case r.anyOpenLocked():
		state = job.ActivityRequiresAction
	case r.turn:
		state = job.ActivityRunning
	}
	if state != r.state {
		r.state = state
		r.feed.put(job.Activity{State: state})
	}
}

func (r *run) anyOpenLocked() bool {
	for _, a := range r.questions {
		if a.answer == nil && !a.gone {
			return true
		}
	}
	return false
}

// ask opens a question, once.
func (r *run) ask(question job.Question) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.questions[question.ID]; known || r.over {
		return
	}
	r.turn = true
	r.questions[question.ID] = &asked{question: question, done: make(chan struct{}), closed: make(chan struct{})}
	r.feed.put(job.Asked{Question: question})
	r.showLocked()
}

// resolved closes a question: the CLI acted on the answer, or it is gone.
func (r *run) resolved(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a, known := r.questions[id]; known {
		r.closeLocked(a, a.answer != nil)
	}
}

// withdraw closes a question whose answer, if any, was not used.
func (r *run) withdraw(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a, known := r.questions[id]; known {
		r.closeLocked(a, false)
	}
}

func (r *run) withdrawAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.questions {
		r.closeLocked(a, false)
	}
}

func (r *run) closeLocked(a *asked, used bool) {
	if a.gone {
		return
	}
	a.gone = true
	close(a.closed)
	if used {
		r.feed.put(job.Resolved{Question: a.question.ID})
	} else {
		r.feed.put(job.Withdrawn{Question: a.question.ID})
	}
	r.showLocked()
}

// awaitGone waits until the CLI says that it is done with a question.
func (r *run) awaitGone(ctx context.Context, id string) error {
	r.mu.Lock()
	a := r.questions[id]
	r.mu.Unlock()
	select {
	case <-a.closed:
		return nil
	case <-ctx.Done():
		return job.ErrUnconfirmed
	}
}

// Answer implements job.Run.
func (r *run) Answer(ctx context.Context, answer job.Answer) error {
	r.mu.Lock()
	a, known := r.questions[answer.Question]
	switch {
	case !known || a.gone && a.answer == nil:
		r.mu.Unlock()
		return bridge.Errorf(bridge.NotFound, "no such question is open")
	case a.answer != nil:
		same := reflect.DeepEqual(*a.answer, answer)
		r.mu.Unlock()
		if !same {
			return bridge.Errorf(bridge.Conflict, "it was answered otherwise")
		}
		select {
		case <-a.done:
			return a.err
		case <-ctx.Done():
			return job.ErrUnconfirmed
		}
	}
	a.answer = &answer
	r.mu.Unlock()
	a.err = r.protocol.answer(ctx, a.question, answer)
	close(a.done)
	r.mu.Lock()
	r.showLocked()
	r.mu.Unlock()
	return a.err
}

// Interrupt implements job.Run.
func (r *run) Interrupt(ctx context.Context) error {
	r.mu.Lock()
	// A prompt on its way is a turn that begins.
	busy, over := r.turn || r.anyWaitingLocked(), r.over
	r.mu.Unlock()
	if over || !busy {
		return nil
	}
	return r.protocol.interrupt(ctx)
}

// Close implements job.Run.
func (r *run) Close(ctx context.Context) error {
	r.closing.Do(func() {
		go func() {
			defer close(r.closed)
			if ctx.Err() == nil {
				polite, cancel := context.WithTimeout(ctx, interruptTime)
				_ = r.Interrupt(polite) // it is ended in any case
				r.protocol.leave(polite)
				cancel()
			}
			r.failed = r.process.end(ctx)
		}()
	})
	select {
	case <-r.closed:
		return r.failed
	case <-ctx.Done():
	}
	// A later call in a hurry does not wait for the patience of the first.
	if err := killGroup(r.process.cmd.Process); err != nil {
		<-r.process.ended
	}
	<-r.closed
	return r.failed
}

// noise hands on a line that means nothing here, cut to what one can read.
func (r *run) noise(line []byte) {
	const most = 500
	r.feed.put(job.Noise{Line: string(bytes.ToValidUTF8(line[:min(len(line), most)], nil))})
}

// text reads a JSON string, "" for anything else.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
