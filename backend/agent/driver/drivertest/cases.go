package drivertest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/proc"
	"bridge/backend/testing/testkit"
)

func typeName(v any) string { return fmt.Sprintf("%T", v) }

// way says when a case is tried with a real CLI.
type way int

const (
	aside  way = iota // in a long run
	onIt              // in every run, for it is on the way that a job takes
	inMain            // in every run, with every CLI and protocol
)

// Case is one promise of the port.
type Case struct {
	Name string
	Run  func(t *testing.T, bench Bench)
	Way  way
}

// Cases are all that every kind passes.
func Cases() []Case {
	return []Case{
		{"JOB-15 a turn ends with its answer, tokens and an idle run", answers, inMain},
		{"JOB-07 what was allowed runs, and its exit code is told", allowed, inMain},
		{"JOB-07 what was denied does not run, and the model reads why", denied, onIt},
		{"JOB-07 an answer counts once, and none for a question that is gone", answeredOnce, aside},
		{"JOB-05 a message reaches the turn that runs", liveMessage, onIt},
		{"JOB-05 a message during the last answer is not lost", lateMessage, aside},
		{"JOB-05 a message to an idle run begins a turn, once by its id", nextTurn, aside},
		{"JOB-05 a session is continued with all that was said", continued, onIt},
		{"JOB-06 an interrupt ends the turn and not the run", interrupted, onIt},
		{"JOB-06 an interrupt withdraws the open question", withdrawn, aside},
		{"JOB-06 a close while busy ends the process", closedBusy, aside},
		{"JOB-15 a CLI that is killed is lost, not answered", killed, onIt},
		{"JOB-15 an unknown session is named", unknownSession, aside},
		{"JOB-13 ask asks before a change, and the marks are in the environment", marked, aside},
	}
}

// Test runs every case on the bench.
func Test(t *testing.T, bench func(t *testing.T) Bench) { cases(t, bench, aside) }

// TestReal runs every case on the bench of a real CLI in a long run, else those on the way
// that a job takes.
func TestReal(t *testing.T, bench func(t *testing.T) Bench) { realCases(t, bench, onIt) }

// TestRealMain is TestReal with only the main way in every run.
func TestRealMain(t *testing.T, bench func(t *testing.T) Bench) { realCases(t, bench, inMain) }

func realCases(t *testing.T, bench func(t *testing.T) Bench, least way) {
	if testkit.IsLong() {
		least = aside
	}
	cases(t, bench, least)
}

func cases(t *testing.T, bench func(t *testing.T) Bench, least way) {
	for _, c := range Cases() {
		if c.Way >= least {
			t.Run(c.Name, func(t *testing.T) { c.Run(t, bench(t)) })
		}
	}
}

func answers(t *testing.T, bench Bench) {
	bench.Script("answer", Step{Say: "forty-two"})
	j := Begin(t, bench, "answer")
	end := j.ended(job.EndAnswer)
	j.Drain()
	if index[job.Accepted](j) < 0 { // the word that it was taken may come after a quick turn's end
		Until(j, func(job.Accepted) bool { return true })
	}
	if end.Text != "forty-two" {
		t.Errorf("the answer is %q", end.Text)
	}
	if spawned := index[job.Spawned](j); spawned != 0 {
		t.Errorf("Spawned is event %d, want the first; %s", spawned, Kinds(j.All))
	}
	if opened := Of[job.Opened](j); len(opened) != 1 || opened[0].Session == "" {
		t.Errorf("Opened = %+v, want one with a session", opened)
	}
	for _, at := range []int{index[job.Accepted](j), index[job.Inserted](j), index[job.Usage](j)} {
		if at < 0 {
			t.Errorf("Accepted, Inserted or Usage is missing; %s", Kinds(j.All))
		}
	}
	if used := Of[job.Usage](j); len(used) > 0 && (used[len(used)-1].Input < 10 || used[len(used)-1].Output < 5) {
		t.Errorf("usage = %+v, want at least 10 in and 5 out", used[len(used)-1])
	}
	process := Of[job.Spawned](j)[0].Processes[0]
	if identity, err := proc.Identity(process.PID); err != nil || identity != process.Identity {
		t.Errorf("the process that runs is %q (%v), the one told is %q", identity, err, process.Identity)
	}
	j.Close()
	if exits := Of[job.Exited](j); len(exits) != 1 || index[job.Exited](j) != len(j.All)-1 {
		t.Errorf("Exited is not the one last event: %s", Kinds(j.All))
	}
	if turns := Of[job.TurnEnded](j); len(turns) != 1 {
		t.Errorf("%d turns ended, want 1", len(turns))
	}
	if proc.Alive(process.PID) {
		t.Errorf("process %d lives on", process.PID)
	}
}

func allowed(t *testing.T, bench Bench) {
	bench.Script("touch", Step{Run: "touch made && echo seen-$((40+2))"}, Step{Say: "done"})
	j := Begin(t, bench, "touch")
	question := Until[job.Asked](j, nil).Question
	Until(j, func(a job.Activity) bool { return a.State == job.ActivityRequiresAction })
	if question.Kind != job.QuestionCommand || !strings.Contains(question.Subject, "touch made && echo seen-$((40+2))") {
		t.Errorf("question = %+v, want the exact command", question)
	}
	if made(j) {
		t.Error("it ran before it was allowed")
	}
	j.must("Answer", j.Run.Answer(j.ctx, job.Answer{Question: question.ID, Allow: true}))
	Until(j, func(r job.Resolved) bool { return r.Question == question.ID })
	j.ended(job.EndAnswer)
	if !made(j) {
		t.Error("it did not run")
	}
	steps := Of[job.StepEnded](j)
	if len(steps) != 1 || steps[0].State != job.StepDone || steps[0].Exit == nil || *steps[0].Exit != 0 || !strings.Contains(steps[0].Output, "seen-42") {
		t.Errorf("steps = %+v, want one done with exit 0 and its output", steps)
	}
	if started := Of[job.StepStarted](j); len(started) != 1 || started[0].Step != steps[0].Step || !strings.Contains(started[0].Subject, "touch made") {
		t.Errorf("started = %+v", started)
	}
}

func denied(t *testing.T, bench Bench) {
	bench.Script("touch", Step{Run: "touch made"}, Step{Say: "done"})
	j := Begin(t, bench, "touch")
	j.answer(false, "because-of-the-moon")
	// One that knows no reasons may stop at the refusal.
	if end := Until[job.TurnEnded](j, nil); end.Why != job.EndAnswer && (j.can().DenyReason || end.Why != job.EndDenied) {
		t.Errorf("the turn ended with %+v, want an answer", end)
	}
	if made(j) {
		t.Error("it ran")
	}
	want := 0
	if j.can().DenyReason {
		want = 1
	}
	if n := bench.Shown("because-of-the-moon"); n != want {
		t.Errorf("the model reads the reason %d times, want %d", n, want)
	}
	if steps := Of[job.StepEnded](j); len(steps) != 1 || steps[0].State != job.StepRefused {
		t.Errorf("steps = %+v, want one that was refused", steps)
	}
}

func answeredOnce(t *testing.T, bench Bench) {
	bench.Script("touch", Step{Run: "touch made"}, Step{Say: "done"})
	j := Begin(t, bench, "touch")
	question := j.answer(true, "")
	if err := j.Run.Answer(j.ctx, job.Answer{Question: question.ID, Allow: true}); err != nil {
		t.Errorf("the same answer again: %v, want nil", err)
	}
	if err := j.Run.Answer(j.ctx, job.Answer{Question: question.ID, Reason: "no"}); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("another answer: %v, want a conflict", err)
	}
	if err := j.Run.Answer(j.ctx, job.Answer{Question: "none", Allow: true}); bridge.CodeOf(err) != bridge.NotFound {
		t.Errorf("an answer to nothing: %v, want not found", err)
	}
	j.ended(job.EndAnswer)
	if !made(j) {
		t.Error("what was allowed first did not run")
	}
}

func liveMessage(t *testing.T, bench Bench) {
	bench.Script("touch", Step{Run: "touch made"}, Step{Say: "done"})
	j := Begin(t, bench, "touch")
	question := Until[job.Asked](j, nil).Question
	message := job.Message{ID: uuid.NewString(), Text: "look-at-the-moon"}
	taken := j.say(message)
	j.must("Answer", j.Run.Answer(j.ctx, job.Answer{Question: question.ID, Allow: true}))
	if !j.can().LiveMessage { // it is the next turn, of the same run
		j.ended(job.EndAnswer)
		if index[job.Accepted](j) != lastIndex[job.Accepted](j) {
			t.Errorf("it was taken while a turn ran: %s", Kinds(j.All))
		}
	}
	Until(j, func(i job.Inserted) bool { return i.Message == message.ID })
	j.ended(job.EndAnswer)
	j.must("Message", <-taken)
	if n := bench.Shown("look-at-the-moon"); n != 1 {
		t.Errorf("the model reads the message %d times, want 1", n)
	}
}

func lateMessage(t *testing.T, bench Bench) {
	bench.Script("slow", Step{Say: "first", Gate: "last-answer"})
	bench.Script("more", Step{Say: "second"})
	j := Begin(t, bench, "slow")
	j.must("AtGate", bench.AtGate(j.ctx, "last-answer"))
	message := Prompt("more")
	taken := j.say(message)
	bench.Open("last-answer")
	Until(j, func(i job.Inserted) bool { return i.Message == message.ID })
	j.Drain()
	j.must("Message", <-taken)
	turns := Of[job.TurnEnded](j)
	if len(turns) == 0 || turns[len(turns)-1].Text != "second" {
		t.Errorf("turns = %+v, want the last to answer the message", turns)
	}
}

func nextTurn(t *testing.T, bench Bench) {
	bench.Script("one", Step{Say: "first"})
	bench.Script("two", Step{Say: "second"})
	j := Begin(t, bench, "one")
	j.Drain()
	message := Prompt("two")
	for range 2 {
		j.must("Message", j.Run.Message(j.ctx, message))
	}
	if end := j.ended(job.EndAnswer); end.Text != "first" && end.Text != "second" {
		t.Errorf("the answer is %q", end.Text)
	}
	j.Drain()
	if n := bench.Shown("script:two"); n != 1 {
		t.Errorf("the model reads the message %d times, want 1", n)
	}
}

func continued(t *testing.T, bench Bench) {
	bench.Script("one", Step{Say: "first-words"})
	bench.Script("two", Step{Say: "second-words"})
	j := Begin(t, bench, "one")
	j.Drain()
	j.Close()
	spec := j.Spec
	spec.Session, spec.Prompt = Of[job.Opened](j)[0].Session, Prompt("two")
	again := Start(t, bench, spec)
	opened := Until[job.Opened](again, nil)
	if end := again.ended(job.EndAnswer); end.Text != "second-words" || opened.Session != spec.Session {
		t.Errorf("session %q answers %q, want %q to answer second-words", opened.Session, end.Text, spec.Session)
	}
	if bench.Shown("script:one") != 1 {
		t.Error("the model does not know what was said before")
	}
}

func interrupted(t *testing.T, bench Bench) {
	bench.Script("slow", Step{Say: "never", Gate: "held"})
	bench.Script("more", Step{Say: "second"})
	j := Begin(t, bench, "slow")
	j.must("AtGate", bench.AtGate(j.ctx, "held"))
	j.must("Interrupt", j.Run.Interrupt(j.ctx))
	j.ended(job.EndInterrupted)
	j.Drain()
	j.must("Interrupt while idle", j.Run.Interrupt(j.ctx))
	j.must("Message", j.Run.Message(j.ctx, Prompt("more")))
	if end := j.ended(job.EndAnswer); end.Text != "second" {
		t.Errorf("the answer is %q", end.Text)
	}
	bench.Open("held")
}

func withdrawn(t *testing.T, bench Bench) {
	bench.Script("touch", Step{Run: "touch made"}, Step{Say: "done"})
	j := Begin(t, bench, "touch")
	question := Until[job.Asked](j, nil).Question
	j.must("Interrupt", j.Run.Interrupt(j.ctx))
	Until(j, func(w job.Withdrawn) bool { return w.Question == question.ID })
	j.Drain()
	if err := j.Run.Answer(j.ctx, job.Answer{Question: question.ID, Allow: true}); bridge.CodeOf(err) != bridge.NotFound {
		t.Errorf("an answer after that: %v, want not found", err)
	}
	if ends := Of[job.TurnEnded](j); len(ends) != 1 || ends[0].Why != job.EndInterrupted || made(j) {
		t.Errorf("ends = %+v, made = %v", ends, made(j))
	}
}

func closedBusy(t *testing.T, bench Bench) {
	bench.Script("slow", Step{Say: "never", Gate: "held"})
	j := Begin(t, bench, "slow")
	j.must("AtGate", bench.AtGate(j.ctx, "held"))
	j.Close()
	j.must("Close again", j.Run.Close(j.ctx))
	if pid := Of[job.Spawned](j)[0].Processes[0].PID; proc.Alive(pid) {
		t.Errorf("process %d lives on", pid)
	}
	if err := j.Run.Message(j.ctx, Prompt("slow")); !errors.Is(err, job.ErrEnded) {
		t.Errorf("a message after the end: %v, want ErrEnded", err)
	}
	bench.Open("held")
}

func killed(t *testing.T, bench Bench) {
	bench.Script("slow", Step{Say: "never", Gate: "held"})
	j := Begin(t, bench, "slow")
	j.must("AtGate", bench.AtGate(j.ctx, "held"))
	process, err := os.FindProcess(Until[job.Spawned](j, nil).Processes[0].PID)
	j.must("FindProcess", err)
	j.must("Kill", process.Kill())
	j.ended(job.EndLost)
	if exit := Until[job.Exited](j, nil); exit.Code != -1 {
		t.Errorf("exit code %d, want -1 for a signal", exit.Code)
	}
	bench.Open("held")
}

func unknownSession(t *testing.T, bench Bench) {
	spec := bench.Spec(t)
	spec.Session, spec.Prompt = "0b5f6bd0-0000-4000-8000-000000000000", Prompt("none")
	if spec.Kind == bridge.OpenCode {
		spec.Session = "ses_0000000000000000000000000"
	}
	Start(t, bench, spec).ended(job.EndNoSession)
}

func marked(t *testing.T, bench Bench) {
	t.Setenv("BRIDGE_TEST_FOREIGN", "of-the-runner")
	bench.Script("env", Step{Run: "env; touch x"}, Step{Say: "done"})
	j := Begin(t, bench, "env")
	j.answer(true, "")
	j.ended(job.EndAnswer)
	steps := Of[job.StepEnded](j)
	if len(steps) != 1 || !strings.Contains(steps[0].Output, "BRIDGE_JOB="+j.Spec.Job) || strings.Contains(steps[0].Output, "of-the-runner") {
		t.Errorf("environment:\n%+v", steps)
	}
}

// made reports whether the file that the steps make is there.
func made(j *Job) bool {
	_, err := os.Stat(filepath.Join(j.Spec.Folder, "made"))
	return err == nil
}

// Faults checks what every fault of the provider ends a turn with.
func Faults(t *testing.T, bench func(t *testing.T) Bench, want map[Fault]job.EndReason) {
	for fault, why := range want {
		t.Run("JOB-15 "+string(fault), func(t *testing.T) {
			b := bench(t)
			b.Script("fault", Step{Fault: fault}, Step{Fault: fault}, Step{Fault: fault}, Step{Fault: fault})
			end := Begin(t, b, "fault").ended(why)
			// Not every CLI says it of every account.
			if why == job.EndLimit && !end.Until.IsZero() && time.Until(end.Until) < 30*time.Minute {
				t.Errorf("the limit is over at %v, want in an hour", end.Until)
			}
			if end.Text != "" {
				t.Errorf("a turn without an answer has the text %q", end.Text)
			}
		})
	}
}

// Access checks what read and edit let a shell command do, in the folder and out
// of it, and what was told to lie below.
func Access(t *testing.T, bench func(t *testing.T) Bench, sandbox []string, floors map[job.Access]job.Floor) {
	for access, floor := range floors {
		t.Run("JOB-13 JOB-14 "+string(access), func(t *testing.T) {
			b := bench(t)
			spec := b.Spec(t)
			outside := filepath.Join(filepath.Dir(spec.Folder), "outside")
			b.Script("write", Step{Run: "touch made"}, Step{Run: "touch " + outside}, Step{Say: "done"})
			spec.Prompt, spec.Access, spec.Sandbox = Prompt("write"), access, sandbox
			j := Start(t, b, spec)
			// Whatever is asked is allowed: the floor has the last word.
			for ended := false; !ended; {
				switch event := Until[job.Event](j, nil).(type) {
				case job.Asked:
					j.must("Answer", j.Run.Answer(j.ctx, job.Answer{Question: event.Question.ID, Allow: true}))
				case job.TurnEnded:
					ended = true
				}
			}
			if spawned := Of[job.Spawned](j); spawned[0].Floor != floor {
				t.Errorf("below it lies %q, want %q", spawned[0].Floor, floor)
			}
			if done := made(j); done != (access == job.AccessEdit) {
				t.Errorf("it changed its folder: %v", done)
			}
			if _, err := os.Stat(outside); err == nil {
				t.Error("it wrote outside of its folder")
			}
		})
	}
	t.Run("JOB-14 read without a floor is refused", func(t *testing.T) {
		b := bench(t)
		if _, own := floors[job.AccessRead]; own && floors[job.AccessRead] == job.FloorOwn {
			t.Skip("its floor is its own")
		}
		spec := b.Spec(t)
		spec.Prompt, spec.Access, spec.Sandbox = Prompt("none"), job.AccessRead, nil
		if _, err := b.Driver().Start(t.Context(), spec); bridge.CodeOf(err) != bridge.Denied {
			t.Errorf("Start: %v, want it denied", err)
		}
	})
}

// Broken checks what a CLI does to its stream that a real one does seldom.
func Broken(t *testing.T, bench func(t *testing.T) Bench) {
	t.Run("JOB-15 lines that mean nothing are passed over", func(t *testing.T) {
		b := bench(t)
		b.Script("junk", Step{Say: "fine", Fault: Junk})
		j := Begin(t, b, "junk")
		if end := j.ended(job.EndAnswer); end.Text != "fine" {
			t.Errorf("the answer is %q", end.Text)
		}
		noise := Of[job.Noise](j)
		for _, line := range noise {
			if len(line.Line) > 500 {
				t.Errorf("a line of %d bytes is told", len(line.Line))
			}
		}
		if len(noise) == 0 {
			t.Error("nothing is told of them")
		}
	})
	t.Run("JOB-15 a stream that breaks ends the run", func(t *testing.T) {
		b := bench(t)
		b.Script("lost", Step{Fault: Lost})
		j := Begin(t, b, "lost")
		j.ended(job.EndLost)
		Until[job.Exited](j, nil)
		if pid := Of[job.Spawned](j)[0].Processes[0].PID; proc.Alive(pid) {
			t.Errorf("process %d lives on", pid)
		}
	})
}
