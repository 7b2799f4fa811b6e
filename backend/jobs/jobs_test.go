package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/core/search"
	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/orphans"
	"bridge/backend/platform/proc"
	"bridge/backend/storage/store"
)

const first, second = "codex-job-00000001", "codex-job-00000002"

func TestJOB_01_ASpawnIsDurableBeforeItIsAnswered(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	spawned := s.mustSpawn("01", `{"prompt":"Count the files.\nAll of them.","title":"Count","access":"edit","model":"gpt-x"}`)
	entry := b.entry(first)
	if spawned.Job != first || spawned.Title != "Count" || spawned.Workdir != b.work() || entry["owner"] != "boss" || entry["status"] != "running" {
		t.Errorf("it answers %+v and jobs.json has %v", spawned, entry)
	}
	r := b.started()
	if r.spec.Prompt != "Count the files.\nAll of them." || r.spec.Access != job.AccessEdit || r.spec.Model != "gpt-x" || r.spec.Folder != b.work() || r.spec.TimeoutSec != 86400 || r.spec.Run != 1 {
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
		`{"prompt":"x","cwd":"/no/such/folder"}`:            bridge.NotFound,
		`{"prompt":"x","cwd":"/dev/null"}`:                  bridge.NotFound,
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
	r.report(api.RunnerReport{State: &runs.StateFile{Job: first, Run: 1, State: job.Waiting, Wait: &job.Wait{For: job.ForRetry, Until: 5}}})
	if view, _ := b.jobs.View(first); view.Status != job.Waiting || view.Wait.For != job.ForRetry {
		t.Errorf("while it waits it is %+v", view)
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
			eventually(t, "the books to be closed", func() bool { entry, _ := b.jobs.get(first); return entry.ResultSent })
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
	for _, item := range file["jobs"].([]any) {
		if entry := item.(map[string]any); entry["name"] == name {
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
	entry, _ := b.jobs.get(first)
	b.jobs.results.checkRunner(entry)
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
			eventually(t, "its process to be known", func() bool { entry, _ := b.jobs.get(first); return entry.Host != nil })
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
			result, err := s.say(first, "Go on.")
			if err != nil || *result.Delivery != job.Continued {
				t.Fatalf("continued: %+v, %v", result, err)
			}
			if r := b.started(); r.spec.Run != 2 || !strings.HasSuffix(r.spec.Prompt, "Go on.") {
				t.Errorf("its next run is asked for %+v", r.spec)
			}
		})
	}
}

// A look at a job from before its runner was noted does not end the run: what counts
// is how the job stands once nobody is starting it.
func TestJOB_02_AnOldLookAtAJobEndsNoRun(t *testing.T) {
	b := prepared(t)
	dead, end := sleeper(t)
	before, err := proc.Identity(dead)
	if err != nil {
		t.Skip("processes have no identity here:", err)
	}
	end()
	pid, _ := sleeper(t)
	b.start = func(folder string) (int, error) { b.starts <- folder; return pid, nil }
	b.up()
	b.join("boss", "s1").mustSpawn("01", `{"prompt":"x"}`)
	b.started()
	var old job.Job
	eventually(t, "its process to be known", func() bool { old, _ = b.jobs.get(first); return old.Host != nil })
	old.Host = &job.Host{PID: dead, Identity: before}
	b.jobs.results.checkRunner(old)
	if state := b.state(first); !state.IsActive() {
		t.Errorf("it is %s", state)
	}
}

// A run that ended as interrupted is begun by no runner that comes late, and one that
// a runner has just begun is not ended.
func TestJOB_02_ARunThatEndedIsBegunByNobody(t *testing.T) {
	b := prepared(t)
	pid, end := sleeper(t)
	b.start = func(folder string) (int, error) { b.starts <- folder; return pid, nil }
	b.up()
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x"}`)
	b.started()
	eventually(t, "its process to be known", func() bool { entry, _ := b.jobs.get(first); return entry.Host != nil })
	end()
	wantText(t, s.mail(1)[0].Body, first+" was interrupted")
	if err := orphans.Bar(filepath.Join(b.home.Dir(), "jobs", first), 1); !errors.Is(err, fs.ErrExist) {
		t.Errorf("its run can still be claimed: %v", err)
	}

	late, _ := sleeper(t)
	identity, err := proc.Identity(late)
	if err != nil {
		t.Skip("processes have no identity here:", err)
	}
	claim, err := json.Marshal(orphans.Claim{Runner: job.Process{PID: late, Identity: identity}, Token: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(orphans.ClaimFile(filepath.Join(b.home.Dir(), "jobs", first), 2), claim, 0o600); err != nil {
		t.Fatal(err)
	}
	if b.jobs.results.bar(job.Job{Name: first, Run: 2}) {
		t.Error("a run that has just been begun may be ended")
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
		state := runs.StateFile{Job: filepath.Base(folder), Run: 1, State: job.Running, Processes: []job.Process{
			{PID: left, Identity: identity, Role: "cli"}, {PID: stranger, Identity: "-:1", Role: "helper"},
		}}
		data, err := state.Encode()
		if err == nil {
			err = disk.WriteAtomic(filepath.Join(folder, "state.json"), data, disk.PrivateFile)
		}
		return pid, err
	}
	b.up()
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x"}`)
	eventually(t, "its process to be known", func() bool { entry, _ := b.jobs.get(first); return entry.Host != nil })
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
}

// Where a turn takes no words, the answer says that they wait.
func TestJOB_24_WordsWaitForTheTurnsEndWhereTheAgentTakesNone(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x"}`)
	r := b.started()
	r.connect(api.RunnerReport{})
	r.report(api.RunnerReport{State: &runs.StateFile{Job: first, Run: 1, State: job.Running, NextTurn: true}})
	result, err := s.say(first, "look here")
	if err != nil || result.Delivery == nil || *result.Delivery != job.InLine {
		t.Fatalf("%+v, %v", result, err)
	}
	if got := r.orders(); len(got) != 1 || got[0].Text != "look here" {
		t.Errorf("its orders are %+v", got)
	}
}

// small is an agent that has no model huge.
type small struct{}

func (small) Check(_ context.Context, r job.Request) error {
	if r.Model == "huge" {
		return bridge.Errorf(bridge.NotFound, "codex has no model huge")
	}
	return nil
}

func (small) Models(_ context.Context, kind bridge.AgentKind) (api.ModelsResult, error) {
	return api.ModelsResult{Agents: []api.AgentModels{{Agent: kind, AsOf: 7, Models: []api.Model{{ID: "small"}}}}}, nil
}

func (small) CachedUsage() []api.AgentUsage { return nil }

func (small) Usage(_ context.Context, kind bridge.AgentKind) (api.UsageResult, error) {
	return api.UsageResult{Agents: []api.AgentUsage{{Agent: kind, AsOf: 7, Limits: []api.Limit{}, Note: "not told by this CLI"}}}, nil
}

// What the agents of this PC cannot do is refused, and nothing is started.
func TestJOB_21_WhatIsNotOfferedStartsNothing(t *testing.T) {
	b := newBench(t)
	b.agents = small{}
	b.down()
	b.up()
	s := b.join("boss", "s1")
	if _, err := s.spawn("01", `{"prompt":"x","model":"huge"}`); bridge.CodeOf(err) != bridge.NotFound || err.Error() != "codex has no model huge" {
		t.Errorf("spawn: %v", err)
	}
	if jobs := b.jobs.Views(); len(jobs) != 0 {
		t.Errorf("there is %+v", jobs)
	}
	s.mustSpawn("02", `{"prompt":"x","model":"small"}`)
	models, err := s.Models(t.Context(), api.AgentArgs{Agent: bridge.Codex})
	if err != nil || len(models.Agents) != 1 || models.Agents[0].AsOf != 7 || models.Agents[0].Models[0].ID != "small" {
		t.Errorf("models: %+v, %v", models, err)
	}
	usage, err := s.Usage(t.Context(), api.AgentArgs{})
	if err != nil || usage.Agents[0].Note != "not told by this CLI" {
		t.Errorf("usage: %+v, %v", usage, err)
	}
}

func TestJOB_05_WordsReachARunningJobOnce(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x"}`)
	r := b.started()
	r.connect(api.RunnerReport{})
	r.work()
	result, err := s.say(first, "look here")
	if err != nil || result.Delivery == nil || *result.Delivery != job.ToRunning {
		t.Fatalf("%+v, %v", result, err)
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

// A result that cannot be stored is tried again by whoever looks, also by several at
// once; then it comes once.
func TestJOB_03_SeveralSendAResultAtOnce(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x"}`)
	r := b.started()
	r.connect(api.RunnerReport{})
	r.work()
	if _, err := s.say(first, "late words"); err != nil {
		t.Fatal(err)
	}
	b.fails.Store(true)
	_, _ = r.RunnerReport(t.Context(), r.end(answered, "12")) // its result is on the disk, and not stored
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			for range 50 {
				if err := b.jobs.results.send(t.Context(), first); err == nil {
					t.Error("it was sent although nothing can be stored")
				}
			}
		})
	}
	senders.Wait()
	b.fails.Store(false)
	wantText(t, s.mail(1)[0].Body, "12")
	if next := b.started(); next.spec.Run != 2 || next.spec.Prompt != "late words" {
		t.Errorf("its next run is asked for %+v", next.spec)
	}
}

func TestJOB_05_SettingsCountFromTheNextTurn(t *testing.T) {
	for name, running := range map[string]bool{"of a job that has ended": false, "of one that goes on, whose agent tells its own": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := b.join("boss", "s1")
			s.mustSpawn("01", `{"prompt":"x","access":"edit"}`)
			r := b.started()
			r.connect(api.RunnerReport{})
			r.work()
			if !running {
				r.finish("12")
			}
			result, err := s.JobMessage(t.Context(), api.JobMessageArgs{ID: "a", Args: job.MessageArgs{Job: first, Title: "better", Model: "big", Access: "read"}})
			if err != nil || result.Delivery != nil {
				t.Fatalf("%+v, %v", result, err)
			}
			if running {
				before := r.state(job.Running)
				before.Title = "x" // the order was not carried out yet
				r.report(api.RunnerReport{State: before})
				r.finish("12")
			}
			if _, err := s.say(first, "more"); err != nil {
				t.Fatal(err)
			}
			if next := b.started(); next.spec.Model != "big" || next.spec.Title != "better" || next.spec.Access != job.AccessRead {
				t.Errorf("its next run is asked for %+v", next.spec)
			}
		})
	}
}

func TestJOB_06_ACancelledJob(t *testing.T) {
	b := prepared(t)
	b.allow(func(o *config.Jobs) { o.MaxJobs = 1 })
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

// Who was to be ended and came to an end of his own goes on with no words, also where
// they came before.
func TestJOB_06_ACancelledJobGoesOnWithNoWords(t *testing.T) {
	for what, outcomes := range map[string][]api.OrderOutcome{
		"the runner says that they came too late": {{ID: "say-l", Error: bridge.Errorf(bridge.Unavailable, "it has ended")}},
		"the runner never heard them":             nil,
	} {
		t.Run("JOB-06 "+what, func(t *testing.T) {
			b := newBench(t)
			s := b.join("boss", "s1")
			s.mustSpawn("01", `{"prompt":"x"}`)
			r := b.started()
			r.connect(api.RunnerReport{})
			r.work()
			if _, err := s.say(first, "late words"); err != nil {
				t.Fatal(err)
			}
			if _, err := s.JobCancel(t.Context(), api.JobArgs{Job: first}); err != nil {
				t.Fatal(err)
			}
			report := r.end(answered, "12")
			report.Outcomes = outcomes
			r.report(report)
			wantText(t, s.mail(1)[0].Body, "12")
			b.jobs.look()
			if got := b.entry(first); b.state(first) != job.Finished || got["run"] != 1.0 || got["delivered"] != true {
				t.Errorf("it is %v", got)
			}
		})
	}
}

// What a restore ended has no envelope: one is written, and the supervisor hears once.
func TestSTO_08_AJobThatARestoreEndedIsToldOnce(t *testing.T) {
	b := newBench(t)
	boss := b.join("boss", "s1")
	spawned := boss.mustSpawn("01", `{"prompt":"p"}`)
	<-b.starts
	eventually(t, "the start", func() bool { present, _ := b.jobs.get(spawned.Job); return present.Host != nil })
	b.down()
	registry := filepath.Join(b.home.Dir(), "jobs.json")
	data, err := os.ReadFile(registry)
	if err != nil {
		t.Fatal(err)
	}
	file, err := job.DecodeFile(data)
	if err != nil || !file.Settle(time.Now(), func(string, int) (job.Outcome, bool) { return job.Outcome{}, false }) {
		t.Fatal(err)
	}
	if data, err = file.Encode(); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(b.home.Dir(), "jobs", spawned.Job, "envelope.json")
	for path, text := range map[string]string{registry: string(data), damaged: "half"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.up()
	boss = b.join("boss", "s1")
	mail := boss.mail(1)
	if !strings.Contains(mail[0].Body, "was interrupted") || mail[0].ID != "result-"+spawned.Job+"-1" {
		t.Errorf("the mail is %+v", mail[0])
	}
	kept, err := filepath.Glob(filepath.Join(filepath.Dir(damaged), "envelope-before-1-*.json"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("what was there is kept as %v, %v", kept, err)
	}
	if text, err := os.ReadFile(kept[0]); err != nil || string(text) != "half" {
		t.Errorf("it was kept as %q, %v", text, err)
	}
	if _, err := boss.say(spawned.Job, "go on"); err != nil {
		t.Errorf("it cannot be continued: %v", err)
	}
	if folder := <-b.starts; filepath.Base(folder) != spawned.Job {
		t.Errorf("%s was started", folder)
	}
}

// What was said in a job's runs is found by search before its supervisor hears of the
// end, once, and also when no broker was there.
func TestJOB_25_SearchFindsAJobsTranscript(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x"}`)
	r := b.started()
	r.connect(api.RunnerReport{})
	r.work()
	path := filepath.Join(b.home.Dir(), "runs", first+".jsonl")
	say := func(texts ...string) {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			line, err := runs.Said{At: 5, Run: 1, Kind: runs.SaidText, Text: text}.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := file.Write(line); err != nil {
				t.Fatal(err)
			}
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	many := make([]string, 600) // more than one piece
	for i := range many {
		many[i] = fmt.Sprintf("the zebra is number%d", i)
	}
	say(many...)
	r.finish("There are 12.")
	s.mail(1)
	find := func(typed string) (bodies []string) {
		words, err := search.Parse(typed)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the index", func() bool {
			hits, behind, err := b.db.SearchWords(t.Context(), store.WordQuery{Words: words, Kinds: []search.Kind{search.Run}, Limit: 1000})
			bodies = nil
			for _, hit := range hits {
				if bodies = append(bodies, hit.Said.Body); hit.Said.Job != first || hit.Said.Agent != bridge.Codex {
					t.Errorf("the hit is %+v", hit)
				}
			}
			return err == nil && behind == 0
		})
		return bodies
	}
	if found := find("zebra"); len(found) != 600 {
		t.Errorf("found %d", len(found))
	}
	if found := find("number599"); len(found) != 1 || found[0] != many[599] {
		t.Errorf("found %v", found)
	}
	b.down()
	say("a giraffe came late")
	b.up()
	eventually(t, "what was said without a broker", func() bool { return len(find("giraffe")) == 1 })
	if found := find("zebra"); len(found) != 600 {
		t.Errorf("after a restart found %d", len(found))
	}
}
