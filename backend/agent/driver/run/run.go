package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/sandbox/connects"
)

// interruptTime is what a CLI gets to end its turn before Close goes on; the
// slowest needs 0.3 s.
const interruptTime = 3 * time.Second

// Protocol is what differs between the kinds. Each method returns when the CLI
// has taken what was said; errors are those of job.Run.
type Protocol interface {
	Send(ctx context.Context, message job.Message) error
	Decide(ctx context.Context, question job.Question, answer job.Answer) error
	Stop(ctx context.Context) error
	// Leave ends what the CLI runs in the background; its process is ended by
	// the run.
	Leave(ctx context.Context)
}

// Run is what all kinds have in common: it implements job.Run and keeps the
// book of messages, questions and turns. The methods that job.Run does not have
// are for its protocol, which tells by them what the CLI said.
type Run struct {
	Process  *Process
	protocol Protocol
	feed     *feed
	opened   chan struct{} // closed when the session is there, or never will be
	cut      atomic.Bool   // the line that is being read was cut

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
	gone     bool          // Resolved or withdrawn
	closed   chan struct{} // closed when it is gone
}

// New puts a process under a run and says so.
func New(p *Process, floor job.Floor) *Run {
	r := &Run{
		Process: p, feed: newFeed(), opened: make(chan struct{}), state: job.ActivityIdle,
		messages: map[string]*sent{}, questions: map[string]*asked{}, closed: make(chan struct{}),
	}
	r.feed.put(job.Spawned{Processes: []job.Process{p.identity()}, Floor: floor})
	if p.connections != nil {
		go r.reportRefused(p.connections)
	}
	return r
}

// reportRefused reports the sockets to which the job's processes were not allowed to connect.
func (r *Run) reportRefused(connections *connects.Supervisor) {
	unsupervised := connections.Unsupervised()
	for {
		select {
		case <-unsupervised:
			r.feed.put(job.SocketsOpen{})
			unsupervised = nil
		case path := <-connections.Refused():
			r.feed.put(job.SocketRefused{Socket: bridge.OneLine(path)})
		case <-connections.Done():
			return
		}
	}
}

// Begin reads the CLI's lines until it ends, and hands the prompt over.
func (r *Run) Begin(protocol Protocol, prompt job.Message, line func([]byte)) {
	r.protocol = protocol
	first, _ := r.claim(prompt)
	go func() {
		output := r.Process.output()
		r.readLines(output, line)
		output.Close()
		r.Process.Lost()
		r.finish()
	}()
	go func() {
		err := r.deliver(context.Background(), first, prompt)
		if err != nil && !errors.Is(err, job.ErrEnded) && !errors.Is(err, job.ErrUnconfirmed) {
			r.EndTurn(r.refusedPrompt(err), true)
		}
	}()
}

// refusedPrompt returns why a running CLI did not accept the prompt.
func (r *Run) refusedPrompt(err error) job.TurnEnded {
	end := job.TurnEnded{Why: job.EndFailed, Message: err.Error()}
	if refused, ok := errors.AsType[*OpenError](err); ok {
		end.Why = refused.Why
	}
	return end
}

// OpenError is a session that could not be had.
type OpenError struct {
	Why job.EndReason
	Err error
}

func (e *OpenError) Error() string { return e.Err.Error() }

// finish is the end of the stream: what was open is gone.
func (r *Run) finish() {
	r.mu.Lock()
	turn := r.turn || r.anyWaitingLocked()
	r.over = true
	r.openLocked()
	r.mu.Unlock()
	r.WithdrawAll()
	if pending, has := r.protocol.(interface{ End() }); has {
		pending.End()
	}
	exited := r.Process.exited()
	if turn {
		r.EndTurn(r.lostTurn(exited), true)
	}
	r.feed.close(exited)
}

// lostTurn returns why a CLI ended in the middle of a turn.
func (r *Run) lostTurn(exited job.Exited) job.TurnEnded {
	end := job.TurnEnded{Why: job.EndLost, Message: exited.Words()}
	if judge, can := r.protocol.(interface {
		Exited(job.Exited) (job.EndReason, bool)
	}); can {
		if why, known := judge.Exited(exited); known {
			end.Why = why
		}
	}
	return end
}

func (r *Run) anyWaitingLocked() bool {
	for _, m := range r.messages {
		if m.waiting {
			return true
		}
	}
	return false
}

// Open says that the session is there, once.
func (r *Run) Open(opened job.Opened) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session != "" || r.over {
		return
	}
	r.session = opened.Session
	r.feed.put(opened)
	r.openLocked()
}

func (r *Run) openLocked() {
	select {
	case <-r.opened:
	default:
		close(r.opened)
	}
}

// WaitOpen waits until the session is open. It fails with ErrEnded if the run has ended, with
// the error of FailOpen, and if ctx ends.
func (r *Run) WaitOpen(ctx context.Context) error {
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

// FailOpen makes WaitOpen fail with err, unless the session is open already.
func (r *Run) FailOpen(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session == "" && r.unopened == nil {
		r.unopened = err
		r.openLocked()
	}
}

// Events implements job.Run.
func (r *Run) Events() <-chan job.Event { return r.feed.out }

// Message implements job.Run. It fails with ErrEnded after the end of the run, and with
// ErrUnconfirmed if the message may have arrived. A repeat returns the first result.
func (r *Run) Message(ctx context.Context, message job.Message) error {
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

// claim reserves a message for its delivery. It returns nil after the end of the run, and
// again if the message is reserved already.
func (r *Run) claim(message job.Message) (m *sent, again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m, again = r.messages[message.ID]; again || r.over {
		return m, again
	}
	m = &sent{text: message.Text, done: make(chan struct{}), waiting: true}
	r.messages[message.ID] = m
	return m, false
}

func (r *Run) deliver(ctx context.Context, m *sent, message job.Message) error {
	err := r.protocol.Send(ctx, message)
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

// Inserted says that a message is part of the turn, once.
func (r *Run) Inserted(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m, known := r.messages[id]; known && m.waiting {
		m.waiting, r.turn = false, true
		r.feed.put(job.Inserted{Message: id})
		r.showLocked()
	}
}

// InsertedText is inserted for a CLI that keeps no ids: one of the messages on
// their way that say this.
func (r *Run) InsertedText(text string) {
	r.mu.Lock()
	id := ""
	for known, m := range r.messages {
		if m.waiting && m.text == text {
			id = known
		}
	}
	r.mu.Unlock()
	r.Inserted(id)
}

// Waiting reports whether a message is on its way to the model.
func (r *Run) Waiting() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.anyWaitingLocked()
}

// TurnRuns says that a turn runs.
func (r *Run) TurnRuns() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn = true
	r.showLocked()
}

// EndTurn ends the turn; idle says that no other follows by itself.
func (r *Run) EndTurn(end job.TurnEnded, idle bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn = !idle
	end.Text = cutAnswer(end.Text)
	r.feed.put(end)
	r.showLocked()
}

// showLocked says what the run does when that has changed.
func (r *Run) showLocked() {
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

func (r *Run) anyOpenLocked() bool {
	for _, a := range r.questions {
		if a.answer == nil && !a.gone {
			return true
		}
	}
	return false
}

// Rest says that nothing runs any more, but for what is on its way.
func (r *Run) Rest() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn = r.anyWaitingLocked()
	r.showLocked()
}

// Put publishes other events. It blocks while the reader of the events is far behind, and so
// the CLI is blocked, too (SEC-11).
func (r *Run) Put(events ...job.Event) {
	for i, event := range events {
		switch e := event.(type) {
		case job.Text:
			e.Text = cutAnswer(e.Text)
			events[i] = e
		case job.StepStarted:
			e.Subject = cutText(e.Subject, mostOfSubject)
			events[i] = e
		}
	}
	r.feed.waitForRoom()
	r.feed.put(events...)
}

// Session is the id of the session, "" while there is none.
func (r *Run) Session() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.session
}

// Ask opens a question, once.
func (r *Run) Ask(question job.Question) {
	question.IsCut = r.cut.Load()
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

// Resolved closes a question: the CLI acted on the answer, or it is gone.
func (r *Run) Resolved(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a, known := r.questions[id]; known {
		r.closeLocked(a, a.answer != nil)
	}
}

// Withdraw closes a question whose answer, if any, was not used.
func (r *Run) Withdraw(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a, known := r.questions[id]; known {
		r.closeLocked(a, false)
	}
}

// WithdrawAll closes all questions: their answers, if any, were not used.
func (r *Run) WithdrawAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.questions {
		r.closeLocked(a, false)
	}
}

func (r *Run) closeLocked(a *asked, used bool) {
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

// AwaitGone waits until the CLI has closed a question. It fails with ErrUnconfirmed if ctx ends
// first.
func (r *Run) AwaitGone(ctx context.Context, id string) error {
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

// Answer implements job.Run. It fails with NotFound if the question is not open, and with
// Conflict if it has a different answer. It fails with ErrUnconfirmed if the answer may have
// arrived.
func (r *Run) Answer(ctx context.Context, answer job.Answer) error {
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
	a.err = r.protocol.Decide(ctx, a.question, answer)
	close(a.done)
	r.mu.Lock()
	r.showLocked()
	r.mu.Unlock()
	return a.err
}

// Interrupt implements job.Run. It fails with the error of the protocol's Stop. Without a turn
// it does nothing.
func (r *Run) Interrupt(ctx context.Context) error {
	r.mu.Lock()
	// A prompt on its way is a turn that begins.
	busy, over := r.turn || r.anyWaitingLocked(), r.over
	r.mu.Unlock()
	if over || !busy {
		return nil
	}
	return r.protocol.Stop(ctx)
}

// Close implements job.Run. It fails if the process cannot be killed.
func (r *Run) Close(ctx context.Context) error {
	r.closing.Do(func() {
		go func() {
			defer close(r.closed)
			if ctx.Err() == nil {
				polite, cancel := context.WithTimeout(ctx, interruptTime)
				_ = r.Interrupt(polite) // it is ended in any case
				r.protocol.Leave(polite)
				cancel()
			}
			r.failed = r.Process.end(ctx)
		}()
	})
	select {
	case <-r.closed:
		return r.failed
	case <-ctx.Done():
	}
	// A later call in a hurry does not wait for the patience of the first.
	if err := killGroup(r.Process.cmd.Process); err != nil {
		<-r.Process.ended
	}
	<-r.closed
	return r.failed
}

// Noise hands on a line that means nothing here, cut to what one can read.
func (r *Run) Noise(line []byte) {
	const most = 500
	r.feed.put(job.Noise{Line: string(bytes.ToValidUTF8(line[:min(len(line), most)], nil))})
}

// Text reads a JSON string, "" for anything else.
func Text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// AsJSON writes what is made of strings, numbers, lists and objects of them.
func AsJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // it cannot be
	}
	return string(raw)
}

// Denial is what the model reads of a refusal: it must hear something, or some
// CLIs end the turn.
func Denial(answer job.Answer) string {
	if answer.Reason != "" {
		return answer.Reason
	}
	return "This was refused. Do not try it again in another way."
}
