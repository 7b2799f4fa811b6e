// Package drivertest is the suite of cases that every driver of an agent CLI
// passes, on scripted stand-ins and on the real CLIs: what the port in package
// job promises is promised for each kind. Only tests import it.
package drivertest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"bridge/backend/core/job"
	"bridge/backend/platform/sandbox"
	"bridge/backend/testing/testkit"
)

// Bench is one kind of CLI with a model whose answers are scripted.
type Bench interface {
	Driver() job.Driver
	// Spec is a job in an empty folder of its own, without a prompt, that asks
	// before it changes anything.
	Spec(t *testing.T) job.Spec
	// Script registers what the model answers to a prompt that says script:NAME.
	Script(name string, steps ...Step)
	Open(gate string)
	AtGate(ctx context.Context, gate string) error
	// Shown counts how often the model's newest request holds text.
	Shown(text string) int
}

// Step is one answer of the model: words, a shell command, or a failure.
type Step struct {
	Say, Run string
	Fault    Fault
	Gate     string // it waits until the gate is opened
}

// Fault is a way in which a provider fails.
type Fault string

// The faults.
const (
	Unauthorized Fault = "401"
	UsageLimit   Fault = "429"
	ServerError  Fault = "500"
	Refusal      Fault = "refusal"
	Empty        Fault = "empty"
	Context      Fault = "context"
	// Of the CLI itself, for stand-ins:
	Junk Fault = "junk" // lines that mean nothing come before the answer
	Lost Fault = "lost" // its stream breaks, the process lives on
)

// patience bounds every wait; it is no measure of speed.
const patience = testkit.Patience

// Job is a run under test, with all that it said so far.
type Job struct {
	*testing.T
	Run  job.Run
	Spec job.Spec
	ctx  context.Context
	All  []job.Event
	next int // first event that no wait has passed yet
}

// Start starts the job of spec and ends it with the test.
func Start(t *testing.T, bench Bench, spec job.Spec) *Job {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	run, err := bench.Driver().Start(ctx, spec)
	if err != nil {
		cancel()
		t.Fatalf("Start: %v", err)
	}
	j := &Job{T: t, Run: run, Spec: spec, ctx: ctx}
	t.Cleanup(func() {
		defer cancel()
		j.Close()
		// A job's runner does the same. A sandbox of the CLI's own can survive its parent: bwrap
		// waits for good if its parent is killed while it starts.
		if err := sandbox.End(ctx, sandbox.Mark{Job: spec.Job, Token: spec.Token}, nil); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			for _, event := range j.All {
				t.Logf("%T %+v", event, event)
			}
		}
	})
	return j
}

// Begin starts a job whose prompt plays the script.
func Begin(t *testing.T, bench Bench, script string) *Job {
	t.Helper()
	spec := bench.Spec(t)
	spec.Prompt = Prompt(script)
	return Start(t, bench, spec)
}

// Prompt is a message that plays the script.
func Prompt(script string) job.Message {
	return job.Message{ID: uuid.NewString(), Text: "play script:" + script}
}

// Close ends the run and reads all that it still says.
func (j *Job) Close() {
	j.Helper()
	if err := j.Run.Close(j.ctx); err != nil {
		j.Errorf("Close: %v", err)
	}
	for event := range j.Run.Events() {
		j.All = append(j.All, event)
	}
}

// Until waits for the next event of type E that fits. Every event is passed once.
func Until[E job.Event](j *Job, fits func(E) bool) E {
	j.Helper()
	for {
		for j.next < len(j.All) {
			event := j.All[j.next]
			j.next++
			if e, ok := event.(E); ok && (fits == nil || fits(e)) {
				return e
			}
		}
		select {
		case event, open := <-j.Run.Events():
			if !open {
				var want E
				j.Fatalf("the stream ended without %T; %s", want, Kinds(j.All))
			}
			j.All = append(j.All, event)
		case <-j.ctx.Done():
			var want E
			j.Fatalf("no %T came; %s", want, Kinds(j.All))
		}
	}
}

// Drain reads until the run is idle.
func (j *Job) Drain() {
	j.Helper()
	Until(j, func(a job.Activity) bool { return a.State == job.ActivityIdle })
}

// Of returns all events of type E so far.
func Of[E job.Event](j *Job) []E {
	var found []E
	for _, event := range j.All {
		if e, ok := event.(E); ok {
			found = append(found, e)
		}
	}
	return found
}

// Kinds names the types of events, in their order.
func Kinds(events []job.Event) string {
	var names []string
	for _, event := range events {
		var name string
		switch e := event.(type) {
		case job.Activity:
			name = "Activity(" + string(e.State) + ")"
		case job.TurnEnded:
			name = "TurnEnded(" + string(e.Why) + ")"
		case job.Noise:
			name = "Noise(" + e.Line + ")"
		default:
			name = strings.TrimPrefix(typeName(event), "job.")
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// answer allows or refuses the next question.
func (j *Job) answer(allow bool, reason string) job.Question {
	j.Helper()
	question := Until[job.Asked](j, nil).Question
	j.must("Answer", j.Run.Answer(j.ctx, job.Answer{Question: question.ID, Allow: allow, Reason: reason}))
	return question
}

// can returns the capabilities that the run declares.
func (j *Job) can() job.Capabilities {
	j.Helper()
	for _, event := range j.All {
		if opened, is := event.(job.Opened); is {
			return opened.Capabilities
		}
	}
	return Until[job.Opened](j, nil).Capabilities
}

// say sends a message to a busy run. If the turn takes no more input, the message is delivered
// after the turn. The channel gets the result.
func (j *Job) say(message job.Message) <-chan error {
	j.Helper()
	taken := make(chan error, 1)
	if j.can().LiveMessage {
		taken <- j.Run.Message(j.ctx, message)
		return taken
	}
	go func() { taken <- j.Run.Message(j.ctx, message) }()
	return taken
}

func (j *Job) must(what string, err error) {
	j.Helper()
	if err != nil {
		j.Fatalf("%s: %v", what, err)
	}
}

// ended waits for the end of a turn and expects it to be why.
func (j *Job) ended(why job.EndReason) job.TurnEnded {
	j.Helper()
	end := Until[job.TurnEnded](j, nil)
	if end.Why != why {
		j.Errorf("the turn ended with %q (%+v), want %q", end.Why, end, why)
	}
	return end
}

// index is the place of the first event of type E, -1 without one.
func index[E job.Event](j *Job) int {
	return slices.IndexFunc(j.All, func(event job.Event) bool { _, ok := event.(E); return ok })
}

// lastIndex is the place of the last event of type E, -1 without one.
func lastIndex[E job.Event](j *Job) int {
	for i := len(j.All) - 1; i >= 0; i-- {
		if _, ok := j.All[i].(E); ok {
			return i
		}
	}
	return -1
}
