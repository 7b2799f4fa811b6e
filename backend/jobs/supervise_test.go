package jobs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
)

// tell is message_subagent of a session.
func (s session) tell(id string, args job.MessageArgs) (api.JobMessaged, error) {
	args.Job = first
	return s.JobMessage(s.b.t.Context(), api.JobMessageArgs{ID: id, Args: args})
}

// shown is the first job as its supervisor sees it.
func (s session) shown() api.JobView {
	s.b.t.Helper()
	got, err := s.Jobs(s.b.t.Context(), api.Caller{})
	for _, view := range got.Jobs {
		if view.Job == first {
			return view
		}
	}
	s.b.t.Fatalf("%s sees %+v, %v", s.Name, got, err)
	return api.JobView{}
}

// TestJOB_05_SettingsAloneBeginNothing: the title is there at once, the rest counts from
// the next turn on, and nothing is said to anybody.
func TestJOB_05_SettingsAloneBeginNothing(t *testing.T) {
	for _, state := range []job.State{job.Running, job.Finished, job.Queued} {
		t.Run("JOB-05 "+string(state), func(t *testing.T) {
			b := prepared(t)
			b.allow(func(o *config.Jobs) { o.MaxJobs = 1 })
			b.up()
			s := b.join("boss", "s1")
			var r *runner
			if state == job.Queued {
				s.mustSpawn("02", `{"prompt":"y"}`)
				r = b.begun()
			}
			s.mustSpawn("01", `{"prompt":"x"}`)
			if state != job.Queued {
				r = b.begun()
			}
			if state == job.Finished {
				r.finish("12")
			}
			result, err := s.tell("a", job.MessageArgs{Title: "better", Model: "big", Effort: "high", Access: "ask"})
			if err != nil || result.Delivery != nil || result.Status != state {
				t.Fatalf("%+v, %v", result, err)
			}
			if got := s.shown(); got.Title != "better" || got.Status != state {
				t.Errorf("it is shown as %+v", got)
			}
			if got := b.entry(first); got["title"] != "better" || got["model"] != "big" || got["effort"] != "high" || got["access"] != "ask" {
				t.Errorf("it is recorded as %v", got)
			}
			if len(b.starts) != 0 {
				t.Error("a runner was started")
			}
			switch state {
			case job.Running:
				if got := r.orders(); len(got) != 1 || got[0].Kind != api.OrderSettings || got[0].Settings.Title != "better" {
					t.Errorf("its runner is told %+v", got)
				}
				r.finish("12")
				fallthrough
			case job.Finished:
				if _, err := s.say(first, "more"); err != nil {
					t.Fatal(err)
				}
			default:
				r.finish("13")
			}
			if got := b.started().spec; got.Job != first || got.Title != "better" || got.Model != "big" || got.Effort != "high" || got.Access != job.AccessAsk {
				t.Errorf("its next run is asked for %+v", got)
			}
		})
	}
}

// TestJOB_05_EveryEndContinuesInItsOwnSessionInLine: at once where a place is free, else
// behind those who stand in line.
func TestJOB_05_EveryEndContinuesInItsOwnSessionInLine(t *testing.T) {
	for _, outcome := range []job.Outcome{
		answered,
		{State: job.Failed, Ended: job.EndFailed},
		{State: job.Refused, Ended: job.EndRefusal},
		{State: job.Limit, Ended: job.EndLimit},
		{State: job.Cancelled, Ended: job.EndedCancelled},
		{State: job.Interrupted},
	} {
		for _, free := range []bool{true, false} {
			t.Run(fmt.Sprintf("JOB-05 %s, a place is free %t", outcome.State, free), func(t *testing.T) {
				b := prepared(t)
				b.allow(func(o *config.Jobs) { o.MaxJobs = 1 })
				b.up()
				s := b.join("boss", "s1")
				s.mustSpawn("01", `{"prompt":"x","model":"gpt","send_to":["friend"]}`)
				r := b.begun()
				if outcome.State == job.Interrupted {
					b.down()
					b.rewrite(first, func(e map[string]any) { e["host"] = map[string]any{"pid": 1 << 22, "identity": "-:1"} })
					b.up()
					s = b.join("boss", "s1")
				} else if !r.report(r.end(outcome, "12")).Taken {
					t.Fatal("the result is not taken")
				}
				s.mail(1)
				if got := b.state(first); got != outcome.State {
					t.Fatalf("it is %s", got)
				}
				want, status := job.Continued, job.Starting
				if !free {
					s.mustSpawn("02", `{"prompt":"y"}`)
					r = b.begun()
					s.mustSpawn("03", `{"prompt":"z"}`)
					want, status = job.InLine, job.Queued
				}
				result, err := s.say(first, "more")
				if err != nil || result.Delivery == nil || *result.Delivery != want {
					t.Fatalf("%+v, %v; want %s", result, err, want)
				}
				if again, err := s.say(first, "and"); err != nil || again.Delivery == nil {
					t.Errorf("more words: %+v, %v", again, err)
				}
				if !free {
					if got := s.shown(); got.Status != status || got.Next != "more" {
						t.Errorf("it is shown as %+v", got)
					}
					r.finish("13")
					if r = b.begun(); r.spec.Job != "codex-job-00000003" {
						t.Fatalf("%s goes before those in line", r.spec.Job)
					}
					r.finish("14")
				}
				next := b.started().spec
				if next.Job != first || next.Run != 2 || next.Session != "thread-"+first || len(next.SendTo) != 1 {
					t.Errorf("its next run is asked for %+v", next)
				}
				if !free && next.Prompt != "more\n\nand" {
					t.Errorf("it begins with %q", next.Prompt)
				}
			})
		}
	}
}

// TestJOB_05_WordsToTheArchiveSaySo: it can be read by whom it answers to, and nothing
// of it changes.
func TestJOB_05_WordsToTheArchiveSaySo(t *testing.T) {
	b := newBench(t)
	s, other := b.join("boss", "s1"), b.join("other", "s2")
	path := b.jobs.files.Entry(first)
	data, err := json.Marshal(job.Job{
		Name: first, Agent: bridge.Codex, State: job.Finished, Owner: s.Name, Supervisor: s.ID, Root: s.Name, RootID: s.ID,
		Prompt: "x", Run: 1, FinishedAt: 1, ResultSent: true, SessionID: "thread",
	})
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for what, args := range map[string]job.MessageArgs{"words": {Message: "more"}, "settings": {Title: "better"}, "its name alone": {}} {
		_, err := s.tell("a", args)
		wantCode(t, what, err, bridge.Conflict)
		if err != nil {
			wantText(t, err.Error(), "is in the archive: it cannot be continued, only read")
		}
		_, err = other.tell("a", args)
		wantCode(t, what+" of another session", err, bridge.Denied)
	}
	_, err = s.JobCancel(t.Context(), api.JobArgs{Job: first})
	wantCode(t, "an end", err, bridge.Conflict)
	if got, err := s.JobResult(t.Context(), api.JobArgs{Job: first}); err != nil || got.Status != job.Finished || !got.Ended {
		t.Errorf("its result: %+v, %v", got, err)
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != string(data) || len(b.starts) != 0 {
		t.Errorf("the archive has %s, %v", now, err)
	}
}

var stops = []job.WaitFor{job.ForBudget, job.ForTime, job.ForRepeat, job.ForSilence}

// stopped is a job whose runner says that it waits for somebody's word.
func stopped(b *bench, s session, waitFor job.WaitFor) *runner {
	b.t.Helper()
	s.mustSpawn("01", `{"prompt":"x","budget_usd":1,"timeout_sec":60}`)
	r := b.begun()
	if r.spec.BudgetUSD != 1 || r.spec.TimeoutSec != 60 {
		b.t.Fatalf("its runner is asked for %+v", r.spec)
	}
	r.stop(waitFor)
	return r
}

func (r *runner) stop(waitFor job.WaitFor) {
	r.b.t.Helper()
	state := r.state(job.Waiting)
	state.Wait = &job.Wait{For: waitFor, ID: "stop-1"}
	r.report(api.RunnerReport{State: state})
}

// TestJOB_17_AStoppedJobWaitsForAWord: it is shown as waiting, also after a restart, and
// goes on or ends on the word of its supervisor or of the owner; other words wait.
func TestJOB_17_AStoppedJobWaitsForAWord(t *testing.T) {
	type says func(b *bench, s session) error
	words := map[string]struct {
		say  says
		want api.OrderKind
	}{
		"the supervisor lets it go on": {func(_ *bench, s session) error { _, err := s.tell("go", job.MessageArgs{}); return err }, api.OrderGoOn},
		"the owner lets it go on": {func(b *bench, _ session) error {
			_, err := b.jobs.Say("go", job.Control{Job: first, Message: job.GoOn})
			return err
		}, api.OrderGoOn},
		"the supervisor cancels it": {func(_ *bench, s session) error {
			_, err := s.JobCancel(s.b.t.Context(), api.JobArgs{Job: first})
			return err
		}, api.OrderCancel},
		"the owner cancels it": {func(b *bench, _ session) error { _, err := b.jobs.Cancel(first); return err }, api.OrderCancel},
	}
	for _, stop := range stops {
		for who, word := range words {
			t.Run(fmt.Sprintf("JOB-17 %s, %s", stop, who), func(t *testing.T) {
				b := newBench(t)
				s, other := b.join("boss", "s1"), b.join("other", "s2")
				r := stopped(b, s, stop)
				if got := s.shown(); got.Status != job.Waiting || got.Wait == nil || got.Wait.For != stop {
					t.Fatalf("it is shown as %+v", got)
				}
				held := job.InLine
				if stop == job.ForSilence {
					held = job.ToRunning // nothing of it was stopped
				}
				if result, err := s.tell("words", job.MessageArgs{Message: "look here"}); err != nil || *result.Delivery != held {
					t.Errorf("other words: %+v, %v; want %s", result, err, held)
				}
				_, err := other.tell("x", job.MessageArgs{})
				wantCode(t, "another session lets it go on", err, bridge.Denied)
				if err := word.say(b, s); err != nil {
					t.Fatal(err)
				}
				b.down() // before its runner has heard of it
				b.up()
				r.connect(api.RunnerReport{})
				r.stop(stop)
				orders := r.orders()
				if len(orders) != 2 || orders[0].Kind != api.OrderMessage || orders[0].Text != "look here" || orders[1].Kind != word.want {
					t.Errorf("its runner is told %+v", orders)
				}
				if got := b.state(first); got != job.Waiting {
					t.Errorf("before its runner says so it is %s", got)
				}
				s = b.join("boss", "s1")
				if word.want == api.OrderGoOn {
					r.work()
					if got := s.shown(); got.Status != job.Running || got.Wait != nil {
						t.Errorf("it is shown as %+v", got)
					}
					return
				}
				r.report(r.end(job.Outcome{State: job.Cancelled, Ended: job.EndedCancelled}, ""))
				if got := s.shown(); got.Status != job.Cancelled {
					t.Errorf("it is shown as %+v", got)
				}
				s.mail(1)
			})
		}
	}
}

// TestJOB_16_WhoWaitsForALimitOutlivesTheBroker and goes on once, or not where somebody
// was quicker, or where the owner allows no jobs.
func TestJOB_16_WhoWaitsForALimitOutlivesTheBroker(t *testing.T) {
	for what, test := range map[string]struct {
		meanwhile func(b *bench, s session) error
		runs      int
	}{
		"nothing happens":             {func(*bench, session) error { return nil }, 2},
		"its supervisor continued it": {func(_ *bench, s session) error { _, err := s.say(first, "more"); return err }, 2},
		"its supervisor cancelled it": {func(_ *bench, s session) error {
			_, err := s.JobCancel(s.b.t.Context(), api.JobArgs{Job: first})
			return err
		}, 1},
		"the owner has landed its work": {func(b *bench, _ session) error {
			b.down()
			b.rewrite(first, func(e map[string]any) {
				e["landing"] = job.Landing{Finish: job.Finish{Action: "merge", State: job.LandingDone, Run: 1}}
			})
			b.up()
			return nil
		}, 1},
		"the owner allows no jobs": {func(b *bench, _ session) error {
			b.allow(func(o *config.Jobs) { o.Enabled = false })
			return nil
		}, 1},
		"the owner allows less than it has": {func(b *bench, _ session) error {
			b.allow(func(o *config.Jobs) { o.MaxAccess = job.AccessRead })
			return nil
		}, 1},
	} {
		t.Run("JOB-16 "+what, func(t *testing.T) {
			b := newBench(t)
			b.allow(func(o *config.Jobs) { o.ResumeAtReset = true })
			s := b.join("boss", "s1")
			s.mustSpawn("01", `{"prompt":"x","access":"edit"}`)
			r := b.begun()
			until := time.Now().Add(time.Hour).Truncate(time.Millisecond)
			r.report(r.end(job.Outcome{State: job.Limit, Ended: job.EndLimit, Until: until}, ""))
			wantText(t, s.mail(1)[0].Body, until.UTC().Format("2006-01-02T15:04"))
			if err := test.meanwhile(b, s); err != nil {
				t.Fatal(err)
			}
			b.down()
			b.up()
			if b.jobs.look(); test.runs == 2 && what == "nothing happens" && b.state(first) != job.Limit {
				t.Fatalf("before that it is %s", b.state(first))
			}
			b.down()
			b.setNow(func() time.Time { return until })
			b.up()
			b.jobs.look()
			b.jobs.look()
			if test.runs == 1 {
				if got := b.state(first); got != job.Limit || len(b.starts) != 0 {
					t.Errorf("it is %s", got)
				}
				return
			}
			next := b.started()
			if next.spec.Run != 2 || next.spec.Session != "thread-"+first || len(b.starts) != 0 {
				t.Errorf("it goes on with %+v, and %d beside it", next.spec, len(b.starts))
			}
		})
	}
}

// TestJOB_22_AQuestionGoesUpLevelByLevel: each who has it is told at once, and its runner
// hears of each step.
func TestJOB_22_AQuestionGoesUpLevelByLevel(t *testing.T) {
	b := prepared(t)
	b.allow(func(o *config.Jobs) { o.MaxDelegateDepth = 3 })
	b.look = time.Hour
	b.up()
	f := newFamily(b)
	f.inChild.mustSpawn("05", `{"prompt":"x","access":"ask"}`)
	r := b.begun()
	r.asks("q1")
	f.inChild.mail(1)
	if err := f.inChild.decide(r.spec.Job, "q1", "pass_up"); err != nil {
		t.Fatal(err)
	}
	f.inJob.mail(1)
	if err := f.inJob.decide(r.spec.Job, "q1", "pass_up"); err != nil {
		t.Fatal(err)
	}
	f.boss.mail(1)
	if got := r.orders(); len(got) != 2 || got[0].By != jobName || got[1].By != "boss" {
		t.Errorf("its runner is told %+v", got)
	}
	f.job.asks("q2")
	f.boss.mail(1)
	if _, err := f.boss.handOff("h1", "other", jobName); err != nil {
		t.Fatal(err)
	}
	wantText(t, bodies(f.other.mail(3)), "has handed 1 job over", `"q1"`, `"q2"`)
}

func bodies(messages []api.InboxMessage) (all string) {
	for _, message := range messages {
		all += message.Body + "\n"
	}
	return all
}

// TestJOB_22_EachUnreadResultGoesUp: those of all runs, also where the parent is taken
// out of the line.
func TestJOB_22_EachUnreadResultGoesUp(t *testing.T) {
	b := prepared(t)
	b.allow(func(o *config.Jobs) { o.MaxJobs = 2 })
	b.up()
	boss := b.join("boss", "s1")
	boss.mustSpawn("01", `{"prompt":"x"}`)
	parent := b.begun()
	inside := parent.inside()
	inside.mustSpawn("02", `{"prompt":"y"}`)
	b.begun().finish("the first answer")
	if _, err := inside.say(childName, "more"); err != nil {
		t.Fatal(err)
	}
	child := b.begun()
	parent.finish("done")
	wantText(t, bodies(boss.mail(2)), "done", "the first answer")
	boss.mustSpawn("03", `{"prompt":"z"}`)
	b.begun()
	boss.mustSpawn("04", `{"prompt":"z"}`)
	if result, err := boss.say(jobName, "go on"); err != nil || *result.Delivery != job.InLine {
		t.Fatalf("%+v, %v", result, err)
	}
	child.finish("the second answer")
	b.begun()
	boss.mail(0)
	if got, err := boss.JobCancel(t.Context(), api.JobArgs{Job: jobName}); err != nil || got.Status != job.Cancelled {
		t.Fatalf("%+v, %v", got, err)
	}
	wantText(t, bodies(boss.mail(1)), "the second answer")
}

// TestJOB_22_TheResultsOfAllRunsGoUp that nobody has read.
func TestJOB_22_TheResultsOfAllRunsGoUp(t *testing.T) {
	b := newBench(t)
	f := newFamily(b)
	f.child.finish("the first answer")
	if _, err := f.inJob.say(childName, "more"); err != nil {
		t.Fatal(err)
	}
	b.begun().finish("the second answer")
	f.job.finish("done")
	wantText(t, bodies(f.boss.mail(3)), "the first answer", "the second answer", "done")
}

// TestJOB_23_AHandOffIsItsOwnersAlone: its id tells nobody else of it, a native child
// makes none, one that could not be recorded did not happen, and it is told once.
func TestJOB_23_AHandOffIsItsOwnersAlone(t *testing.T) {
	b := newBench(t)
	boss, heir, other := b.join("boss", "s1"), b.join("heir", "s2"), b.join("other", "s3")
	boss.mustSpawn("01", `{"prompt":"x"}`)
	b.begun()
	eventually(t, "its start to be recorded", func() bool {
		b.jobs.mu.Lock()
		defer b.jobs.mu.Unlock()
		return !b.jobs.runs[first].launching
	})
	_, err := boss.HandOff(t.Context(), api.HandoffArgs{
		Caller: api.Caller{SessionID: "s1", ChildID: "c1"}, ID: "h0", Handoff: job.Handoff{To: "heir", All: true},
	})
	wantCode(t, "by a native child", err, bridge.Denied)
	path, aside := filepath.Join(b.home.Dir(), "jobs.json"), filepath.Join(t.TempDir(), "jobs.json")
	if err = os.Rename(path, aside); err == nil {
		err = os.Mkdir(path, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = boss.handOff("h1", "heir")
	wantCode(t, "on a disk that takes nothing", err, bridge.Storage)
	if err = os.Remove(path); err == nil {
		err = os.Rename(aside, path)
	}
	if err != nil {
		t.Fatal(err)
	}
	heir.mail(0)
	if moved, err := boss.handOff("h1", "heir"); err != nil || len(moved) != 1 || b.entry(first)["owner"] != "heir" {
		t.Fatalf("asked again: %q, %v; it belongs to %v", moved, err, b.entry(first)["owner"])
	}
	_, err = other.handOff("h1", "heir")
	wantCode(t, "another session with its id", err, bridge.NotFound)
	b.jobs.sendHandoffs()
	heir.mail(1)
	b.jobs.sendHandoffs()
	heir.mail(0)
}

// TestJOB_23_AResultThatCrossesAHandOff goes to the new supervisor, once.
func TestJOB_23_AResultThatCrossesAHandOff(t *testing.T) {
	b := newBench(t)
	boss, heir := b.join("boss", "s1"), b.join("heir", "s2")
	boss.mustSpawn("01", `{"prompt":"x"}`)
	r := b.begun()
	handOver := func() {
		if _, err := boss.handOff("h1", "heir"); err != nil {
			t.Error(err)
		}
	}
	b.stored.Store(&handOver)
	r.finish("the answer")
	wantText(t, bodies(heir.mail(2)), "has handed 1 job over", "the answer")
	boss.mail(0)
	heir.mail(0)
}

// TestJOB_07_AnAnswerNamesTheJobThatAsks: one that names another decides nothing.
func TestJOB_07_AnAnswerNamesTheJobThatAsks(t *testing.T) {
	b := newBench(t)
	f := newFamily(b)
	f.job.asks("q1")
	for _, decision := range []string{"allow", "deny", "pass_up"} {
		wantCode(t, decision, f.boss.decide(siblingName, "q1", decision), bridge.NotFound)
	}
	if got := b.jobs.Approvals(); len(got) != 1 || got[0].State != job.ApprovalAsked || len(got[0].PassedUp) != 0 {
		t.Errorf("it is %+v", got)
	}
}

// TestJOB_22_TheFolderOfAWorktreeJobIsItsWorktree: what it hands on works there, and
// changes nothing beside it.
func TestJOB_22_TheFolderOfAWorktreeJobIsItsWorktree(t *testing.T) {
	b := newBench(t)
	f := newFamily(b)
	own, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b.down()
	b.rewrite(jobName, func(e map[string]any) {
		e["worktree"] = map[string]any{"repoRoot": b.home.Dir(), "path": own, "cwd": own, "branch": "bridge/" + jobName}
	})
	b.up()
	f.job.connect(api.RunnerReport{})
	inside := f.job.inside()
	if got := inside.mustSpawn("05", `{"prompt":"x","access":"ask"}`); got.Workdir != own {
		t.Errorf("it works in %s, want %s", got.Workdir, own)
	}
	_, err = inside.spawn("06", `{"prompt":"x","access":"ask","cwd":"`+b.home.Dir()+`"}`)
	wantCode(t, "changes where the worktree is of", err, bridge.Denied)
}
