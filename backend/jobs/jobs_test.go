package jobs

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/bridge"
	"bridge/backend/ipc/api"
	"bridge/backend/job"
	"bridge/backend/proc"
)

const first, second = "codex-job-00000001", "codex-job-00000002"

func TestJOB_01_ASpawnIsDurableBeforeItIsAnswered(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	spawned := s.mustSpawn("01", `{"prompt":"Count the files.\nAll of them.","title":"Count","access":"edit","model":"gpt-x"}`)
	entry := b.entry(first)
	if spawned.Job != first || spawned.Title != "Count" || spawned.Workdir != b.home.Dir() || entry["owner"] != "boss" || entry["status"] != "running" {
		t.Errorf("it answers %+v and jobs.json has %v", spawned, entry)
	}
	r := b.started()
	if r.spec.Prompt != "Count the files.\nAll of them." || r.spec.Access != job.AccessEdit || r.spec.Model != "gpt-x" || r.spec.Folder != b.home.Dir() || r.spec.TimeoutSec != 86400 || r.spec.Run != 1 {
		t.Errorf("its runner is asked for %+v", r.spec)
	}
	again := s.mustSpawn("01", `{"prompt":"Count the files."}`)
	if again.Job != first || len(b.jobs.Views()) != 1 || len(b.starts) != 0 {
		t.Errorf("asked again it answers %+v, with %d jobs", again, len(b.jobs.Views()))
	}
}

func TestJOB_01_WhatCannotBeDoneIsRefusedAndLeavesNothing(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	for args, code := range map[string]bridge.Code{
		`{"prompt":""}`:                                     bridge.Invalid,
		`{"prompt":"x","colour":"red"}`:                     bridge.Invalid,
		`{"prompt":"x","timeout_sec":9}`:                    bridge.Invalid,
		`{"prompt":"x","timeout_sec":86401}`:                bridge.Invalid,
		`{"prompt":"x","cwd":"here"}`:                       bridge.Invalid,
		`{"prompt":"x","worktree":true}`:                    bridge.Unsupported,
		`{"prompt":"x","host":"laptop","cwd":"/x"}`:         bridge.Unsupported,
		`{"prompt":"x","send_to":["*"]}`:                    bridge.Invalid,
		`{"prompt":"x","access":"full"}`:                    bridge.Invalid,
		`{"prompt":"` + strings.Repeat("x", 100_001) + `"}`: bridge.TooLarge,
	} {
		_, err := s.spawn("01", args)
		wantCode(t, args[:min(40, len(args))], err, code)
	}
	_, err := s.Spawn(t.Context(), api.SpawnArgs{Kind: bridge.Claude, Name: first, Args: json.RawMessage(`{"prompt":"x"}`)})
	wantCode(t, "a name of another kind", err, bridge.Invalid)
	if len(b.jobs.Views()) != 0 || len(b.starts) != 0 {
		t.Errorf("%d jobs are left", len(b.jobs.Views()))
	}
}

func TestJOB_02_WhatARunnerTellsIsShown(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x","title":"Count"}`)
	r := b.started()
	r.connect(api.RunnerReport{})
	r.work()
	jobs, err := s.Jobs(t.Context(), api.Caller{})
	if err != nil || len(jobs.Jobs) != 1 {
		t.Fatalf("%+v, %v", jobs, err)
	}
	got := jobs.Jobs[0]
	if got.Status != job.Running || got.Session != "thread-"+first || got.Model != "gpt" || got.Step != "reads" || got.Tokens != 7 || got.By != "boss" || got.StartedAt == 0 {
		t.Errorf("it is shown as %+v", got)
	}
	if entry := b.entry(first); entry["sessionId"] != "thread-"+first || entry["state"] != "running" {
		t.Errorf("jobs.json has %v", entry)
	}
	r.report(api.RunnerReport{State: &job.StateFile{Job: first, Run: 1, State: job.Waiting, Wait: &job.Wait{For: job.ForRetry, Until: 5}}})
	if one, _ := b.jobs.View(first); one.Status != job.Waiting || one.Wait.For != job.ForRetry {
		t.Errorf("while it waits it is %+v", one)
	}
	r.work()
	if got := b.state(first); got != job.Running {
		t.Errorf("it is %s again", got)
	}
}

func TestJOB_03_AResultComesExactlyOnce(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x"}`)
	r := b.started()
	r.connect(api.RunnerReport{})
	r.work()
	r.finish("There are 12.")
	r.finish("There are 12.")
	got := s.mail(1)[0]
	if got.ID != "result-codex-job-00000001-1" || got.From.Name != first || !strings.Contains(got.Body, "There are 12.") {
		t.Errorf("the message is %+v", got)
	}
	b.down()
	b.up()
	again := b.runnerIn(r.folder)
	if !again.connect(r.end(answered, "There are 12.")).Taken {
		t.Error("after a restart its result is not taken")
	}
	b.join("boss", "s1").mail(0)
	if entry := b.entry(first); entry["status"] != "done" || entry["delivered"] != true {
		t.Errorf("jobs.json has %v", entry)
	}
}

func TestJOB_03_ABrokerThatDiesAroundTheResultLosesNothing(t *testing.T) {
	for what, lose := range map[string]func(entry map[string]any){
		"before the registry knew of the end":         func(e map[string]any) { e["status"], e["state"] = "running", "running"; delete(e, "delivered") },
		"before it noted that the message was stored": func(e map[string]any) { delete(e, "delivered") },
	} {
		t.Run("JOB-03 "+what, func(t *testing.T) {
			b := newBench(t)
			s := b.join("boss", "s1")
			s.mustSpawn("01", `{"prompt":"x"}`)
			r := b.started()
			r.connect(api.RunnerReport{})
			r.work()
			r.finish("There are 12.")
			b.down()
			b.rewrite(first, lose)
			b.up()
			again := b.runnerIn(r.folder)
			again.connect(r.end(answered, "There are 12."))
			s = b.join("boss", "s1")
			eventually(t, "the books to be closed", func() bool { one, _ := b.jobs.get(first); return one.ResultSent })
			s.mail(1)
		})
	}
}

// rewrite changes an entry of jobs.json, as an earlier moment would have left it.
func (b *bench) rewrite(name string, change func(map[string]any)) {
	b.t.Helper()
	path := filepath.Join(b.home.Dir(), "jobs.json")
	data, err := os.ReadFile(path)
	var file map[string]any
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	for _, one := range file["jobs"].([]any) {
		if entry := one.(map[string]any); entry["name"] == name {
			change(entry)
		}
	}
	if data, err = json.Marshal(file); err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestJOB_02_ARunnerOutlivesTheBroker(t *testing.T) {
	b := newBench(t)
	b.join("boss", "s1").mustSpawn("01", `{"prompt":"x"}`)
	r := b.started()
	r.connect(api.RunnerReport{})
	r.work()
	b.down()
	report := r.end(answered, "done meanwhile")
	b.up()
	one, _ := b.jobs.get(first)
	b.jobs.results.lookAtRunner(one)
	if b.state(first) != job.Running {
		t.Fatalf("with a living runner it is %s", b.state(first))
	}
	if !r.connect(report).Taken {
		t.Error("its result is not taken")
	}
	wantText(t, b.join("boss", "s1").mail(1)[0].Body, "done meanwhile")
}

// sleeper is a process that stands for a runner, and how it is ended.
func sleeper(t *testing.T) (pid int, end func()) {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Skip("there is no sleep here:", err)
	}
	end = func() {
		_ = cmd.Process.Kill() // again is no harm
		_ = cmd.Wait()
	}
	t.Cleanup(end)
	return cmd.Process.Pid, end
}

func TestJOB_02_ARunnerThatIsGoneWithoutAnEnvelopeIsInterrupted(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("JOB-02 restart %t", restart), func(t *testing.T) {
			b := prepared(t)
			pid, end := sleeper(t)
			b.start = func(folder string) (int, error) { b.starts <- folder; return pid, nil }
			b.up()
			s := b.join("boss", "s1")
			s.mustSpawn("01", `{"prompt":"x"}`)
			b.started()
			eventually(t, "its process to be known", func() bool { one, _ := b.jobs.get(first); return one.Host != nil })
			if restart {
				b.down()
			}
			end()
			if restart {
				b.up()
				s = b.join("boss", "s1")
			}
			wantText(t, s.mail(1)[0].Body, first+" was interrupted", "message_subagent")
			if entry := b.entry(first); entry["status"] != "interrupted" {
				t.Errorf("jobs.json has %v", entry)
			}
			said, err := s.say(first, "Go on.")
			if err != nil || *said.Delivery != job.Continued {
				t.Fatalf("continued: %+v, %v", said, err)
			}
			if r := b.started(); r.spec.Run != 2 || !strings.HasSuffix(r.spec.Prompt, "Go on.") {
				t.Errorf("its next run is asked for %+v", r.spec)
			}
		})
	}
}

func TestJOB_02_ADeadRunnersEnvelopeCounts(t *testing.T) {
	b := prepared(t)
	pid, end := sleeper(t)
	b.start = func(folder string) (int, error) { b.starts <- folder; return pid, nil }
	b.up()
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x"}`)
	b.started().end(answered, "its last words")
	end()
	wantText(t, s.mail(1)[0].Body, "has finished", "its last words")
	if b.state(first) != job.Finished {
		t.Errorf("it is %s", b.state(first))
	}
}

func TestJOB_06_WhatADeadRunnerLeftIsEndedByIdentity(t *testing.T) {
	b := prepared(t)
	pid, end := sleeper(t)
	left, _ := sleeper(t)
	stranger, _ := sleeper(t)
	b.start = func(folder string) (int, error) {
		identity, err := proc.Identity(left)
		if err != nil {
			t.Error(err)
		}
		state := job.StateFile{Job: filepath.Base(folder), Run: 1, State: job.Running, Processes: []job.Process{
			{PID: left, Identity: identity, Role: "cli"}, {PID: stranger, Identity: "-:1", Role: "helper"},
		}}
		data, err := state.Encode()
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, "state.json"), data, 0o600)
		}
		return pid, err
	}
	b.up()
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x"}`)
	eventually(t, "its process to be known", func() bool { one, _ := b.jobs.get(first); return one.Host != nil })
	end()
	s.mail(1)
	eventually(t, "the process that it left to end", func() bool { return !proc.Alive(left) })
	if !proc.Alive(stranger) {
		t.Error("a process that only has the number of one of its own was ended")
	}
}

func TestAJobThatCannotBeStartedFails(t *testing.T) {
	b := prepared(t)
	b.start = func(string) (int, error) { return 0, errNoProgram }
	b.up()
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x"}`)
	wantText(t, s.mail(1)[0].Body, "could not be started", "no such program")
	if entry := b.entry(first); entry["status"] != "failed" {
		t.Errorf("jobs.json has %v", entry)
	}
	s.mustSpawn("02", `{"prompt":"x","cwd":"/no/such/folder"}`)
	wantText(t, s.mail(1)[0].Body, "could not be started", "/no/such/folder")
}

func TestJOB_05_WordsReachARunningJobOnce(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x"}`)
	r := b.started()
	r.connect(api.RunnerReport{})
	r.work()
	said, err := s.say(first, "look here")
	if err != nil || said.Delivery == nil || *said.Delivery != job.ToRunning {
		t.Fatalf("%+v, %v", said, err)
	}
	if _, err := s.say(first, "look here"); err != nil { // the same id
		t.Fatal(err)
	}
	if got := r.orders(); len(got) != 1 || got[0].Text != "look here" || got[0].Kind != api.OrderMessage {
		t.Errorf("its orders are %+v", got)
	}
	b.down() // before the runner said what became of it
	b.up()
	r.connect(api.RunnerReport{})
	got := r.orders()
	if len(got) != 1 || got[0].ID != "say-l" {
		t.Fatalf("after a restart its orders are %+v", got)
	}
	r.report(api.RunnerReport{Outcomes: []api.OrderOutcome{{ID: "say-l"}}})
	b.down()
	b.up()
	r.connect(api.RunnerReport{})
	s = b.join("boss", "s1")
	if _, err := s.say(first, "and there"); err != nil {
		t.Fatal(err)
	}
	if got := r.orders(); len(got) != 1 || got[0].Text != "and there" {
		t.Errorf("after its outcome its orders are %+v", got)
	}
}

func TestJOB_05_WordsThatCameTooLateContinueTheJob(t *testing.T) {
	for what, outcomes := range map[string][]api.OrderOutcome{
		"the runner says so":     {{ID: "say-l", Error: bridge.Errorf(bridge.Unavailable, "it has ended")}},
		"the runner never heard": nil,
	} {
		t.Run("JOB-05 "+what, func(t *testing.T) {
			b := newBench(t)
			s := b.join("boss", "s1")
			s.mustSpawn("01", `{"prompt":"x","send_to":["friend"]}`)
			r := b.started()
			r.connect(api.RunnerReport{})
			r.work()
			if _, err := s.say(first, "late words"); err != nil {
				t.Fatal(err)
			}
			report := r.end(answered, "12")
			report.Outcomes = outcomes
			r.report(report)
			next := b.started()
			if next.spec.Run != 2 || next.spec.Prompt != "late words" || next.spec.Session != "thread-"+first {
				t.Errorf("its next run is asked for %+v", next.spec)
			}
			if len(next.spec.SendTo) != 1 || next.spec.SendTo[0] != "friend" {
				t.Errorf("JOB-12: its grants are %v", next.spec.SendTo)
			}
			next.connect(api.RunnerReport{})
			next.work()
			next.finish("13")
			got := s.mail(2)
			wantText(t, got[0].Body+got[1].Body, "12", "13")
		})
	}
}

func TestJOB_05_SettingsCountFromTheNextTurn(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x","access":"edit"}`)
	r := b.started()
	r.connect(api.RunnerReport{})
	r.work()
	r.finish("12")
	said, err := s.JobMessage(t.Context(), api.JobMessageArgs{ID: "a", Args: job.MessageArgs{Job: first, Model: "big", Access: "read"}})
	if err != nil || said.Delivery != nil {
		t.Fatalf("%+v, %v", said, err)
	}
	if _, err := s.say(first, "more"); err != nil {
		t.Fatal(err)
	}
	if next := b.started(); next.spec.Model != "big" || next.spec.Access != job.AccessRead {
		t.Errorf("its next run is asked for %+v", next.spec)
	}
}

func TestJOB_06_ACancelledJob(t *testing.T) {
	b := prepared(t)
	b.limits.MaxJobs = 1
	b.up()
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x"}`)
	s.mustSpawn("02", `{"prompt":"y"}`)
	r := b.started()
	r.connect(api.RunnerReport{})
	r.work()
	if got, err := s.JobCancel(t.Context(), api.JobArgs{Job: second}); err != nil || got.Status != job.Cancelled {
		t.Errorf("one in line: %+v, %v", got, err)
	}
	if got, err := s.JobCancel(t.Context(), api.JobArgs{Job: first}); err != nil || got.Status != job.Running {
		t.Errorf("a running one: %+v, %v", got, err)
	}
	b.down()
	b.up()
	r.connect(api.RunnerReport{})
	if got := r.orders(); len(got) != 1 || got[0].Kind != api.OrderCancel {
		t.Fatalf("its orders are %+v", got)
	}
	r.report(r.end(job.Outcome{State: job.Cancelled, Ended: job.EndedCancelled}, ""))
	wantText(t, b.join("boss", "s1").mail(1)[0].Body, first+" was cancelled")
	if len(b.starts) != 0 {
		t.Error("the job in line was started")
	}
}
