package runner

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/testkit"
)

// player is a driver whose agent does what a test says, in the test's own time.
type player struct {
	events chan job.Event
	once   sync.Once
	// takes holds each message back and leaves the end until they are closed; nil holds
	// nothing. With deaf its turn goes on when it is interrupted.
	takes, leaves chan struct{}
	deaf          bool

	mu       sync.Mutex // guards what follows
	messages []string
	answers  []job.Answer
	stops    int
	closed   bool
}

func newPlayer() *player { return &player{events: make(chan job.Event, 1000)} }

func (p *player) Start(_ context.Context, spec job.Spec) (job.Run, error) {
	p.says(job.Spawned{Floor: job.FloorNone}, job.Opened{Session: "s1"}, job.Accepted{Message: spec.Prompt.ID}, job.Inserted{Message: spec.Prompt.ID}, job.Activity{State: job.ActivityRunning})
	return p, nil
}

func (p *player) says(events ...job.Event) {
	for _, event := range events {
		p.events <- event
	}
}

// ends ends the turn.
func (p *player) ends(end job.TurnEnded) {
	p.says(end, job.Activity{State: job.ActivityIdle})
}

func (p *player) Events() <-chan job.Event { return p.events }

func (p *player) Message(_ context.Context, message job.Message) error {
	if p.takes != nil {
		<-p.takes
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return job.ErrEnded
	}
	p.messages = append(p.messages, message.Text)
	p.says(job.Accepted{Message: message.ID}, job.Inserted{Message: message.ID}, job.Activity{State: job.ActivityRunning})
	return nil
}

func (p *player) Answer(_ context.Context, answer job.Answer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers = append(p.answers, answer)
	return nil
}

func (p *player) Interrupt(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stops++
	if !p.deaf {
		p.ends(job.TurnEnded{Why: job.EndInterrupted})
	}
	return nil
}

func (p *player) Close(context.Context) error {
	if p.leaves != nil {
		<-p.leaves
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.once.Do(func() {
		p.says(job.Exited{})
		close(p.events)
	})
	return nil
}

func (p *player) answered() []job.Answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.answers)
}

func (p *player) interrupted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stops
}

func (p *player) heard() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.messages)
}

// played is a bench whose agent is a player, in a bubble of its own time.
func played(t *testing.T, change func(*runs.SpecFile), play func(b *bench, p *player, done <-chan error)) {
	t.Helper()
	b := newBench(t) // its folders outlive the bubble
	synctest.Test(t, func(t *testing.T) {
		inside := *b
		inside.T, inside.broker = t, newMemory()
		p := newPlayer()
		inside.drive = p
		inside.spec("work", change)
		done := inside.begin()
		time.Sleep(time.Second) // it looks a few times for what an earlier run left
		synctest.Wait()
		play(&inside, p, done)
	})
}

func (b *bench) waitsFor(waitFor job.WaitFor) *job.Wait {
	b.Helper()
	synctest.Wait()
	state := b.state()
	if state.State != job.Waiting || state.Wait == nil || state.Wait.For != waitFor {
		b.Fatalf("the job is %s and waits for %+v; want %s", state.State, state.Wait, waitFor)
	}
	return state.Wait
}

func TestJOB_16_AProvidersTroubleIsTriedAgainThreeTimes(t *testing.T) {
	played(t, func(*runs.SpecFile) {}, func(b *bench, p *player, done <-chan error) {
		for i, pause := range []time.Duration{15 * time.Second, 30 * time.Second, 60 * time.Second} {
			p.ends(job.TurnEnded{Why: job.EndProvider, Status: 500})
			b.waitsFor(job.ForRetry)
			time.Sleep(pause - time.Second)
			synctest.Wait()
			if n := len(p.heard()); n != i {
				b.Fatalf("after %s there were %d tries", pause-time.Second, n)
			}
			time.Sleep(time.Second + 2*time.Millisecond)
			synctest.Wait()
			if heard := p.heard(); len(heard) != i+1 || heard[i] != job.GoOn {
				b.Fatalf("after %s the agent heard %q", pause, heard)
			}
		}
		p.ends(job.TurnEnded{Why: job.EndProvider, Status: 500, Message: "down"})
		b.ended(done)
		if envelope := b.envelope(); envelope.State != job.Failed || envelope.Ended != job.EndProvider || envelope.Error != "down" {
			b.Errorf("the envelope says %+v", envelope)
		}
		if tries := b.entries(EntryRetry); len(tries) != 3 || b.state().Tried != 3 {
			b.Errorf("the journal has the tries %+v", tries)
		}
	})
}

// Its time is up while the provider is left in peace: nothing is tried before somebody
// says so, and then it is.
func TestJOB_17_AStopTakesTheNextTryAway(t *testing.T) {
	played(t, func(s *runs.SpecFile) { s.TimeoutSec = 60 }, func(b *bench, p *player, done <-chan error) {
		time.Sleep(50 * time.Second)
		p.ends(job.TurnEnded{Why: job.EndProvider, Status: 500})
		b.waitsFor(job.ForRetry)
		time.Sleep(time.Hour)
		b.waitsFor(job.ForTime)
		if heard := p.heard(); len(heard) > 0 {
			b.Errorf("it was tried again all the same: %q", heard)
		}
		if refused := b.broker.order(b, api.Order{ID: "g1", Kind: api.OrderGoOn, By: "owner"}); refused != nil {
			b.Fatal(refused)
		}
		synctest.Wait()
		if heard := p.heard(); !slices.Equal(heard, []string{job.GoOn}) || b.state().State != job.Running {
			b.Errorf("it went on with %q and is %s", heard, b.state().State)
		}
		p.ends(job.TurnEnded{Why: job.EndAnswer, Text: "done"})
		b.ended(done)
	})
}

// A limit is never waited out: the run ends and says until when.
func TestJOB_16_AUsageLimitThatTheAgentWaitsOutEndsTheRun(t *testing.T) {
	played(t, func(*runs.SpecFile) {}, func(b *bench, p *player, done <-chan error) {
		until := time.Now().Add(3 * time.Hour).Truncate(time.Millisecond)
		p.says(job.Retrying{Why: job.EndLimit, Until: until, Message: "used up"})
		b.ended(done)
		if envelope := b.envelope(); envelope.State != job.Limit || !envelope.Until.Time().Equal(until) || envelope.Error != "used up" {
			b.Errorf("the envelope says %+v", envelope)
		}
		if heard := p.heard(); len(heard) > 0 {
			b.Errorf("it was tried again: %q", heard)
		}
	})
}

func TestJOB_17_OverItsBudgetOrTimeOrSenseTheRunPausesAndAsks(t *testing.T) {
	tests := []struct {
		what  job.WaitFor
		given func(*runs.SpecFile)
		use   func(p *player)
	}{
		{job.ForBudget, func(s *runs.SpecFile) { s.BudgetUSD = 1 }, func(p *player) { p.says(job.Usage{CostUSD: 1.5, CostKnown: true}) }},
		{job.ForTime, func(s *runs.SpecFile) { s.TimeoutSec = 60 }, func(*player) { time.Sleep(61 * time.Second) }},
		{job.ForRepeat, func(*runs.SpecFile) {}, func(p *player) {
			for range 5 {
				p.says(job.StepStarted{Step: "s", Tool: "Bash", Subject: "make"}, job.StepEnded{Step: "s", State: job.StepFailed, Output: "no"})
			}
		}},
	}
	for _, tt := range tests {
		t.Run(string(tt.what), func(t *testing.T) {
			played(t, tt.given, func(b *bench, p *player, done <-chan error) {
				tt.use(p)
				wait := b.waitsFor(tt.what)
				if wait.ID == "" || p.interrupted() != 1 {
					b.Errorf("it waits as %+v, interrupted %d times", wait, p.interrupted())
				}
				b.broker.give(api.Order{ID: "m1", Kind: api.OrderMessage, Text: "and this"})
				time.Sleep(48 * time.Hour)
				b.waitsFor(tt.what) // nobody's silence ends it, and no message lets it go on
				if heard := p.heard(); len(heard) > 0 {
					b.Errorf("it went on with %q", heard)
				}
				if refused := b.broker.order(b, api.Order{ID: "g1", Kind: api.OrderGoOn, By: "owner"}); refused != nil {
					b.Fatal(refused)
				}
				synctest.Wait()
				if heard := p.heard(); !slices.Equal(heard, []string{"and this"}) || b.state().State != job.Running {
					b.Errorf("it went on with %q and is %s", heard, b.state().State)
				}
				p.ends(job.TurnEnded{Why: job.EndAnswer, Text: "done"})
				b.ended(done)
				if envelope := b.envelope(); envelope.State != job.Finished {
					b.Errorf("the envelope says %+v", envelope)
				}
			})
		})
	}
}

// The word that a run may go on counts once, also before its turn has ended.
func TestJOB_17_OneWordLetsAStoppedRunGoOn(t *testing.T) {
	played(t, func(s *runs.SpecFile) { s.BudgetUSD = 1 }, func(b *bench, p *player, done <-chan error) {
		p.deaf = true
		p.says(job.Usage{CostUSD: 1.5, CostKnown: true})
		b.waitsFor(job.ForBudget)
		b.broker.give(api.Order{ID: "g1", Kind: api.OrderGoOn, By: "owner"})
		synctest.Wait()
		if refused := b.broker.order(b, api.Order{ID: "g2", Kind: api.OrderGoOn, By: "boss"}); refused == nil || refused.Code != bridge.Conflict {
			b.Errorf("a second word: %v", refused)
		}
		p.ends(job.TurnEnded{Why: job.EndInterrupted})
		if refused := b.broker.order(b, api.Order{ID: "g1", Kind: api.OrderGoOn, By: "owner"}); refused != nil {
			b.Errorf("the first one: %v", refused)
		}
		synctest.Wait()
		p.ends(job.TurnEnded{Why: job.EndAnswer, Text: "done"})
		b.ended(done)
		if words := b.entries(EntryGoOn); len(words) != 1 || words[0].By != "owner" {
			b.Errorf("the journal has the words %+v", words)
		}
	})
}

// Words that are on their way when the turn ends begin another one.
func TestJOB_05_ARunWaitsForWordsOnTheirWay(t *testing.T) {
	played(t, func(*runs.SpecFile) {}, func(b *bench, p *player, done <-chan error) {
		p.takes = make(chan struct{})
		b.broker.give(api.Order{ID: "m1", Kind: api.OrderMessage, Text: "and this"})
		synctest.Wait()
		p.ends(job.TurnEnded{Why: job.EndAnswer, Text: "the first"})
		synctest.Wait()
		close(p.takes)
		synctest.Wait()
		if heard := p.heard(); !slices.Equal(heard, []string{"and this"}) {
			b.Fatalf("the agent heard %q", heard)
		}
		p.ends(job.TurnEnded{Why: job.EndAnswer, Text: "the second"})
		b.ended(done)
		if envelope := b.envelope(); envelope.State != job.Finished || envelope.Result != "the second" {
			b.Errorf("the envelope says %+v", envelope)
		}
	})
}

// While the agent ends its run takes no words any more, and its end still.
func TestJOB_06_ACancellationWhileTheAgentEndsCounts(t *testing.T) {
	played(t, func(*runs.SpecFile) {}, func(b *bench, p *player, done <-chan error) {
		p.leaves = make(chan struct{})
		p.ends(job.TurnEnded{Why: job.EndRefusal, Message: "no"})
		synctest.Wait()
		for kind, code := range map[api.OrderKind]bridge.Code{api.OrderMessage: bridge.Unavailable, api.OrderGoOn: bridge.Unavailable, api.OrderCancel: ""} {
			refused := b.broker.order(b, api.Order{ID: string(kind), Kind: kind, Text: "more", By: "boss"})
			if (refused == nil) != (code == "") || refused != nil && refused.Code != code {
				b.Errorf("%s while it ends: %v", kind, refused)
			}
		}
		close(p.leaves)
		b.ended(done)
		if envelope := b.envelope(); envelope.State != job.Cancelled {
			b.Errorf("the envelope says %+v", envelope)
		}
	})
}

// Of what is silent nothing is stopped: a long command is silent, too.
func TestJOB_17_ASilentRunIsShownAndGoesOnWhenItIsHeard(t *testing.T) {
	played(t, func(*runs.SpecFile) {}, func(b *bench, p *player, done <-chan error) {
		time.Sleep(10*time.Minute - time.Second)
		synctest.Wait()
		if state := b.state(); state.State != job.Running {
			b.Fatalf("after less than ten minutes the job is %s", state.State)
		}
		time.Sleep(2 * time.Second)
		b.waitsFor(job.ForSilence)
		if p.interrupted() != 0 {
			b.Error("a silent run was interrupted")
		}
		p.says(job.Text{Text: "here I am"})
		synctest.Wait()
		if state := b.state(); state.State != job.Running {
			b.Errorf("when it is heard the job is %s", state.State)
		}
		p.ends(job.TurnEnded{Why: job.EndAnswer, Text: "done"})
		b.ended(done)
	})
}

func TestJOB_07_NobodysAnswerDeniesAfterTenMinutes(t *testing.T) {
	played(t, func(*runs.SpecFile) {}, func(b *bench, p *player, done <-chan error) {
		p.says(job.Asked{Question: job.Question{ID: "q1", Kind: job.QuestionCommand, Tool: "Bash", Subject: "make"}})
		wait := b.waitsFor(job.ForApproval)
		time.Sleep(10*time.Minute - time.Second)
		synctest.Wait()
		if len(p.answered()) > 0 {
			b.Fatalf("it was answered early: %+v", p.answered())
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(p.answered()) != 1 || p.answered()[0].Allow || p.answered()[0].Reason == "" {
			b.Fatalf("the agent was answered %+v", p.answered())
		}
		refused := b.broker.order(b, api.Order{ID: "o1", Kind: api.OrderAnswer, Approval: wait.ID, Decision: job.Allow, By: "boss"})
		if refused == nil || refused.Code != bridge.Conflict {
			b.Errorf("a late answer: %v", refused)
		}
		p.says(job.Resolved{Question: "q1"})
		p.ends(job.TurnEnded{Why: job.EndAnswer, Text: "done"})
		b.ended(done)
		if a := b.approval(wait.ID); a.State != job.ApprovalExpired || a.Decision != job.Deny {
			b.Errorf("the approval is %+v", a)
		}
		if len(p.answered()) != 1 || len(p.heard()) > 0 {
			b.Errorf("the agent was answered %+v and told %q: an expiry is no follow-up", p.answered(), p.heard())
		}
	})
}

// What is too long to be shown whole is refused without anybody being asked.
func TestJOB_07_WhatIsTooLongIsRefusedByItself(t *testing.T) {
	played(t, func(*runs.SpecFile) {}, func(b *bench, p *player, done <-chan error) {
		p.says(job.Asked{Question: job.Question{ID: "q1", Kind: job.QuestionCommand, Tool: "Bash", Subject: strings.Repeat("x", 16_000)}})
		synctest.Wait()
		if len(p.answered()) != 1 || p.answered()[0].Allow || !strings.Contains(p.answered()[0].Reason, "16,000") {
			b.Errorf("the agent was answered %+v", p.answered())
		}
		if state := b.state(); state.State != job.Running {
			b.Errorf("the job is %s", state.State)
		}
		p.ends(job.TurnEnded{Why: job.EndAnswer, Text: "done"})
		b.ended(done)
	})
}

// TestSEC_11_AQuestionThatWasCutIsRefused: nobody would see all of it.
func TestSEC_11_AQuestionThatWasCutIsRefused(t *testing.T) {
	played(t, func(*runs.SpecFile) {}, func(b *bench, p *player, done <-chan error) {
		p.says(job.Asked{Question: job.Question{ID: "q1", Kind: job.QuestionCommand, Tool: "Bash", Subject: "ls", IsCut: true}})
		synctest.Wait()
		if len(p.answered()) != 1 || p.answered()[0].Allow || !strings.Contains(p.answered()[0].Reason, "too much to be shown") {
			b.Errorf("the agent was answered %+v", p.answered())
		}
		p.ends(job.TurnEnded{Why: job.EndAnswer, Text: "done"})
		b.ended(done)
	})
}

func TestJOB_04_AResultThatIsTooLargeIsKeptWhole(t *testing.T) {
	played(t, func(*runs.SpecFile) {}, func(b *bench, p *player, done <-chan error) {
		answer := strings.Repeat("words ", 6<<20)
		p.ends(job.TurnEnded{Why: job.EndAnswer, Text: answer})
		b.ended(done)
		report := b.broker.until(b, "the result", func(r api.RunnerReport) bool { return r.Result != nil })
		if r := report.Result; r.Bytes <= runs.MaxEnvelopeBytes || r.State != job.Finished || r.MessageID != runs.ResultID(jobName, 1) {
			b.Errorf("it was told as %+v", r)
		}
		data, err := os.ReadFile(filepath.Join(b.folder, "envelope.json"))
		if err != nil || !strings.Contains(string(data), answer) {
			b.Errorf("the envelope has %d bytes and not the whole answer: %v", len(data), err)
		}
	})
}

// A runner that is told to end keeps what it knows and leaves no result: the job
// was interrupted.
func TestARunnerThatIsToldToEndLeavesNoResult(t *testing.T) {
	b := newBench(t)
	b.spec("run sleep 1000\nsay done")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, b.options()) }()
	approval := b.broker.asked(b, 1)
	cancel()
	select {
	case err := <-done:
		if err == nil {
			t.Error("it says that all is well")
		}
	case <-time.After(testkit.Patience):
		t.Fatal("it did not end")
	}
	found, err := ReadFiles(b.folder)
	if err != nil || found.Result != nil || found.State.State != job.Interrupted || b.approval(approval.ID).State != job.ApprovalWithdrawn {
		t.Errorf("a look finds %+v, %v; the question is %s", found, err, b.approval(approval.ID).State)
	}
}

func TestJOB_10_WhoFollowsTheLogHearsOfEachLine(t *testing.T) {
	played(t, func(*runs.SpecFile) {}, func(b *bench, p *player, done <-chan error) {
		for _, event := range []job.Event{
			job.Text{Text: "I begin."},
			job.StepStarted{Step: "1", Tool: "Bash", Subject: "make"},
			job.StepEnded{Step: "1", State: job.StepDone},
			job.Text{Text: "It is made."},
			job.Retrying{Attempt: 1, Why: job.EndOverload, Message: "overloaded"},
		} {
			before := b.broker.heard()
			p.says(event)
			synctest.Wait()
			if b.broker.heard() == before {
				b.Errorf("nobody was told of %T", event)
			}
		}
		p.ends(job.TurnEnded{Why: job.EndAnswer, Text: "done"})
		b.ended(done)
	})
}

// Whoever looks for processes looks again until nothing was there for a while; a job
// that nobody has begun waits for none of it.
func TestAFirstRunWaitsForNoLookAtWhatIsLeft(t *testing.T) {
	b := newBench(t)
	b.spec("say done")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	end := func() error {
		found, err := ReadFiles(b.folder)
		if err != nil {
			t.Fatal(err)
		}
		found.Alive = false
		return found.End(over)
	}
	if err := end(); err != nil {
		t.Errorf("before the first run: %v", err)
	}
	b.run()
	if err := end(); err == nil {
		t.Error("behind a run nobody looked")
	}
}
