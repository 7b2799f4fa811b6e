package jobs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/jobs/jobfiles"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
)

// asking is a job that waits for an answer to the approval "q1".
func asking(b *bench, s session) *runner {
	b.t.Helper()
	s.mustSpawn("01", `{"prompt":"x","access":"ask"}`)
	r := b.started()
	r.connect(api.RunnerReport{})
	r.work()
	r.ask(job.ApprovalAsked)
	return r
}

// ask reports the approval "q1" in that state, and writes its file as a runner does.
func (r *runner) ask(state job.ApprovalState) {
	r.b.t.Helper()
	approval := job.NewApproval(job.Approval{ID: "q1", Job: r.spec.Job, Run: 1, By: "boss", Kind: "command", What: "shell", Detail: "rm -rf build"}, time.Now())
	approval.State = state
	r.tells(approval)
}

// askOutside asks as ask does, for a step that may leave the sandbox.
func (r *runner) askOutside() {
	r.b.t.Helper()
	r.tells(job.NewApproval(job.Approval{
		ID: "q1", Job: r.spec.Job, Run: 1, By: "boss", Kind: "command", What: "shell, outside the sandbox", Detail: "rm -rf build", LeavesSandbox: true,
	}, time.Now()))
}

// A step that may leave the sandbox is put to nobody but the owner of this PC, and nobody
// else can allow it. Whoever the job answers to can still deny it.
func TestSEC_03_OnlyTheOwnerAllowsWhatLeavesTheSandbox(t *testing.T) {
	for name, answer := range map[string]func(b *bench, s session) error{
		"the owner": func(b *bench, _ session) error {
			_, err := b.jobs.Answer("q1", job.Allow, "")
			return err
		},
		"its supervisor denies": func(_ *bench, s session) error {
			_, err := s.answer("deny")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := b.join("boss", "s1")
			s.mustSpawn("01", `{"prompt":"x","access":"ask"}`)
			r := b.started()
			r.connect(api.RunnerReport{})
			r.work()
			r.askOutside()
			if got := b.jobs.Approvals(); len(got) != 1 || !got[0].LeavesSandbox {
				t.Fatalf("the owner is shown %+v", got)
			}
			_, err := s.answer("allow")
			wantCode(t, "its supervisor allows", err, bridge.Denied)
			address := bridge.Address{ID: "s-1", Name: "laptop/s-1"}
			wantCode(t, "a paired PC allows", b.jobs.AnswerAs(address, "q1", job.Allow, ""), bridge.Denied)
			if got := b.jobs.Approvals(); got[0].State != job.ApprovalAsked {
				t.Errorf("after these it is %s", got[0].State)
			}
			if err := answer(b, s); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			s.mail(0) // nobody has asked it
		})
	}
}

func (s session) answer(decision string) (api.JobMessaged, error) {
	return s.JobMessage(s.b.t.Context(), api.JobMessageArgs{Args: job.MessageArgs{Job: first, ApprovalID: "q1", Decision: decision, Reason: "too much"}})
}

func TestJOB_07_TheFirstAnswerWinsAndIsDoneWhenTheRunnerSaysSo(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	r := asking(b, s)
	r.ask(job.ApprovalAsked)
	wantText(t, s.mail(1)[0].Body, first, "rm -rf build", "q1", "message_subagent")
	if result, err := s.say(first, "allow"); err != nil || *result.Delivery != job.ToRunning {
		t.Errorf("plain words: %+v, %v", result, err)
	}
	if got := b.jobs.Approvals(); len(got) != 1 || got[0].State != job.ApprovalAsked {
		t.Fatalf("after plain words the approvals are %+v", got)
	}
	if result, err := s.answer("deny"); err != nil || *result.Delivery != job.AnswerDone {
		t.Fatalf("the answer: %+v, %v", result, err)
	}
	present, err := b.jobs.Answer("q1", job.Allow, "")
	wantCode(t, "a second answer", err, bridge.Conflict)
	if present.State != job.ApprovalAnswered || present.Decision != job.Deny || present.AnsweredBy != "boss" {
		t.Errorf("beside it stands %+v", present)
	}
	orders := r.orders()
	last := orders[len(orders)-1]
	if last.Kind != api.OrderAnswer || last.Approval != "q1" || last.Decision != job.Deny || last.Reason != "too much" || last.By != "boss" {
		t.Errorf("the runner is told %+v", last)
	}
	for _, state := range []job.ApprovalState{job.ApprovalDelivered, job.ApprovalApplied} {
		r.ask(state)
		if got := b.jobs.Approvals(); got[0].State != state {
			t.Errorf("it is shown as %s, want %s", got[0].State, state)
		}
	}
}

func TestJOB_07_AnAnswerOutlivesTheBroker(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	r := asking(b, s)
	s.mail(1)
	if _, err := b.jobs.Answer("q1", job.Allow, ""); err != nil {
		t.Fatal(err)
	}
	b.down()
	b.up()
	r.connect(api.RunnerReport{})
	r.ask(job.ApprovalAsked)
	if got := b.jobs.Approvals(); len(got) != 1 || got[0].State != job.ApprovalAnswered || got[0].AnsweredBy != bridge.OwnerName {
		t.Errorf("after a restart it is %+v", got)
	}
	if got := r.orders(); len(got) != 1 || got[0].Decision != job.Allow {
		t.Errorf("the runner is told %+v", got)
	}
	b.join("boss", "s1").mail(0) // nobody is asked twice
}

func TestJOB_07_TheQuestionOfADeadRunnerIsWithdrawn(t *testing.T) {
	b := newBench(t)
	r := asking(b, b.join("boss", "s1"))
	b.down()
	b.rewrite(first, func(e map[string]any) { e["host"] = map[string]any{"pid": 1 << 22, "identity": "-:1"} })
	b.up()
	eventually(t, "the question to be withdrawn", func() bool {
		approval, err := b.jobs.files.ReadApproval("q1")
		return err == nil && approval.State == job.ApprovalWithdrawn
	})
	present, err := b.jobs.Answer("q1", job.Allow, "")
	wantCode(t, "an answer", err, bridge.Conflict)
	if present.State != job.ApprovalWithdrawn {
		t.Errorf("beside it stands %+v", present)
	}
	eventually(t, "nobody to be asked any more", func() bool { return len(b.jobs.Approvals()) == 0 })
	_, err = b.jobs.Answer("q2", job.Allow, "")
	wantCode(t, "an answer to nothing", err, bridge.NotFound)
	if r.spec.Run != 1 {
		t.Error("it went on")
	}
}

// While a runner lives its questions are its own to close, also behind its result.
func TestJOB_07_TheQuestionOfALivingRunnerIsItsOwn(t *testing.T) {
	b := newBench(t)
	r := working(b, b.join("boss", "s1"))
	r.wants("q1", "make")
	r.finish("done")
	if got, err := b.jobs.files.ReadApproval("q1"); err != nil || got.State != job.ApprovalAsked {
		t.Errorf("it is %s, %v", got.State, err)
	}
}

func TestJOB_11_NobodyElseSteersAJob(t *testing.T) {
	b := newBench(t)
	boss := b.join("boss", "s1")
	r := asking(b, boss)
	boss.mail(1)
	boss.Close()
	eventually(t, "boss to leave", func() bool { peers, _ := b.broker.Peers(t.Context()); return len(peers) == 0 })
	other := b.join("other", "s2")
	thief := b.join("boss", "s3") // it takes the name, and is another session
	for who, s := range map[string]session{"another session": other, "whoever took the name": thief} {
		for what, call := range map[string]func() error{
			"message": func() error { _, err := s.say(first, "stop"); return err },
			"answer":  func() error { _, err := s.answer("allow"); return err },
			"cancel":  func() error { _, err := s.JobCancel(t.Context(), api.JobArgs{Job: first}); return err },
			"result":  func() error { _, err := s.JobResult(t.Context(), api.JobArgs{Job: first}); return err },
			"spawn":   func() error { _, err := s.spawn("01", `{"prompt":"y"}`); return err },
		} {
			want := bridge.Denied
			if what == "spawn" {
				want = bridge.Conflict
			}
			wantCode(t, who+": "+what, call(), want)
		}
		if got, err := s.Jobs(t.Context(), api.Caller{}); err != nil || len(got.Jobs) != 0 {
			t.Errorf("%s sees %+v, %v", who, got, err)
		}
	}
	for what, call := range map[string]func(api.Caller) error{
		"spawn": func(c api.Caller) error {
			_, err := other.Spawn(t.Context(), api.SpawnArgs{Caller: c, Kind: bridge.Codex, Name: second, Args: json.RawMessage(`{"prompt":"x"}`)})
			return err
		},
		"slots": func(c api.Caller) error {
			_, err := other.JobSlots(t.Context(), api.JobSlotsArgs{Caller: c, Limit: 50})
			return err
		},
	} {
		wantCode(t, "a native child: "+what, call(api.Caller{SessionID: "s2", ChildID: "c1"}), bridge.Denied)
	}
	if got := b.jobs.Approvals(); got[0].State != job.ApprovalAsked {
		t.Errorf("the approval is %+v", got[0])
	}
	if back := b.join("boss", "s1"); back.Name == "boss" {
		t.Fatal("the name is free: the test proves nothing")
	} else if _, err := back.answer("deny"); err != nil {
		t.Errorf("the supervisor itself, under another name: %v", err)
	}
	if got := r.orders(); len(got) != 1 || got[0].Decision != job.Deny {
		t.Errorf("the runner is told %+v", got)
	}
}

func TestJOB_11_ARunnerSpeaksForItsOwnRunAlone(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x"}`)
	r := b.started()
	stranger := b.dial(api.RoleRunner)
	for what, test := range map[string]struct {
		hello api.RunnerHello
		code  bridge.Code
	}{
		"another secret": {api.RunnerHello{Job: first, Run: 1, Token: "guess"}, bridge.Unauthorized},
		"no secret":      {api.RunnerHello{Job: first, Run: 1}, bridge.Unauthorized},
		"another run":    {api.RunnerHello{Job: first, Run: 2, Token: r.spec.Token}, bridge.Conflict},
		"no such job":    {api.RunnerHello{Job: second, Run: 1, Token: r.spec.Token}, bridge.NotFound},
		"another folder": {api.RunnerHello{Job: "../jobs/" + first, Run: 1, Token: r.spec.Token}, bridge.NotFound},
	} {
		_, err := stranger.RunnerHello(t.Context(), test.hello)
		wantCode(t, what, err, test.code)
	}
	_, err := stranger.RunnerReport(t.Context(), r.end(answered, "mine"))
	wantCode(t, "a report without a hello", err, bridge.Denied)
	_, err = stranger.RunnerWait(t.Context())
	wantCode(t, "a wait without a hello", err, bridge.Denied)
	r.connect(api.RunnerReport{})
	r.work()
	later := r.state(job.Waiting)
	later.Run, later.Wait, later.Session = 2, &job.Wait{For: job.ForBudget}, "another"
	if got := r.report(api.RunnerReport{State: later, Result: &api.RunnerResult{Run: 2, State: job.Finished}}); got.Taken {
		t.Error("the result of a run that was not begun is taken")
	}
	if e := b.entry(first); b.state(first) != job.Running || e["sessionId"] != "thread-"+first {
		t.Errorf("after the state of another run it is %v", e)
	}
	s.mail(0)
}

// A runner that comes again is told everything on its new connection, and nothing on the
// one that it had.
func TestJOB_05_OrdersGoToTheLastConnectionAlone(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x"}`)
	r := b.started()
	r.connect(api.RunnerReport{})
	r.work()
	before := r.Client
	r.connect(api.RunnerReport{})
	if _, err := s.say(first, "words"); err != nil {
		t.Fatal(err)
	}
	if got, err := before.RunnerWait(t.Context()); bridge.CodeOf(err) != bridge.Conflict {
		t.Fatalf("its earlier connection is told %+v, %v", got, err)
	}
	if got := r.orders(); len(got) != 1 || got[0].Text != "words" {
		t.Errorf("its orders are %+v", got)
	}
}

// What a session has set for its own jobs stays, also where a job of it is refused then.
func TestJOB_09_ARefusedJobTakesNoSlotsAway(t *testing.T) {
	b := prepared(t)
	b.allow(func(o *config.Jobs) { o.MaxJobs, o.MaxAccess = 1, job.AccessRead })
	b.up()
	s := b.join("boss", "s1")
	if _, err := s.JobSlots(t.Context(), api.JobSlotsArgs{Limit: 2}); err != nil {
		t.Fatal(err)
	}
	_, err := s.spawn("03", `{"prompt":"x","access":"edit"}`)
	wantCode(t, "more access than the owner allows", err, bridge.Denied)
	if got, err := s.JobSlots(t.Context(), api.JobSlotsArgs{}); err != nil || got.Limit != 2 {
		t.Fatalf("its slots then are %+v, %v", got, err)
	}
	s.mustSpawn("01", `{"prompt":"x"}`)
	s.mustSpawn("02", `{"prompt":"x"}`)
	b.started()
	b.started()
	if got, err := s.JobSlots(t.Context(), api.JobSlotsArgs{}); err != nil || got.Running != 2 {
		t.Errorf("its slots are %+v, %v", got, err)
	}
}

func TestJOB_09_SlotsAreGivenFirstInFirstOut(t *testing.T) {
	b := prepared(t)
	b.allow(func(o *config.Jobs) { o.MaxJobs = 1 })
	b.up()
	s := b.join("boss", "s1")
	for _, hex := range []string{"01", "02", "03"} {
		s.mustSpawn(hex, `{"prompt":"x"}`)
	}
	if got, err := s.JobSlots(t.Context(), api.JobSlotsArgs{}); err != nil || got.Limit != 1 || got.Running+got.Queued != 3 {
		t.Errorf("slots: %+v, %v", got, err)
	}
	for i := 1; i <= 2; i++ {
		r := b.started()
		if want := fmt.Sprintf("codex-job-0000000%d", i); r.spec.Job != want || len(b.starts) != 0 {
			t.Fatalf("%s was started, and %d beside it; want %s alone", r.spec.Job, len(b.starts), want)
		}
		r.connect(api.RunnerReport{})
		r.finish("done")
	}
	s.mail(2)
	s.mustSpawn("04", `{"prompt":"x"}`)
	b.started()
	for limit, code := range map[int]bridge.Code{51: bridge.Invalid, -1: bridge.Invalid, 50: ""} {
		_, err := s.JobSlots(t.Context(), api.JobSlotsArgs{Limit: limit})
		if bridge.CodeOf(err) != code {
			t.Errorf("limit %d: %v, want code %q", limit, err, code)
		}
	}
	if r := b.started(); r.spec.Job != "codex-job-00000004" {
		t.Errorf("with more slots %s was started", r.spec.Job)
	}
}

func TestJOB_09_TheRegistryKeepsTheLast200(t *testing.T) {
	b := prepared(t)
	file := job.File{}
	for i := range 203 {
		file.Jobs = append(file.Jobs, job.Job{Name: fmt.Sprintf("codex-job-%08x", i), Agent: bridge.Codex, Prompt: "x", State: job.Finished, Run: 1, FinishedAt: job.Millis(i + 1), ResultSent: true, Line: int64(i)})
	}
	data, err := file.Encode()
	if err == nil {
		err = os.WriteFile(filepath.Join(b.home.Dir(), "jobs.json"), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.up()
	eventually(t, "the oldest to be in the archive", func() bool { return len(b.jobs.Views()) == 200 })
	for name, archived := range map[string]bool{"codex-job-00000002": true, "codex-job-00000003": false} {
		if got := b.entry(name) == nil; got != archived {
			t.Errorf("%s is in the archive: %t", name, got)
		}
		if view, err := b.jobs.View(name); err != nil || view.Status != job.Finished {
			t.Errorf("%s: %+v, %v", name, view, err)
		}
	}
}

func TestJOB_10_ALogIsReadByItsBytes(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x"}`)
	if got, err := b.jobs.ReadLog(first, 0); err != nil || got != (jobfiles.Log{}) {
		t.Errorf("before a word: %+v, %v", got, err)
	}
	text := strings.Repeat("a", 128<<10-1) + "ä and the end"
	for _, folder := range []string{b.home.Dir(), b.home.ArchiveDir()} {
		path := filepath.Join(folder, "runs", first+".log")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		log, err := b.jobs.ReadLog(first, 0)
		if err != nil || len(log.Text) != 128<<10-1 || log.Next != 131071 || log.Size != int64(len(text)) {
			t.Errorf("the first piece: %d bytes, next %d, size %d, %v", len(log.Text), log.Next, log.Size, err)
		}
		two, err := b.jobs.ReadLog(first, log.Next)
		if err != nil || two.Text != "ä and the end" || two.Next != two.Size {
			t.Errorf("the second piece: %+v, %v", two, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for _, from := range []int64{-1, 1 << 40} {
		if err := os.WriteFile(filepath.Join(b.home.Dir(), "runs", first+".log"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := b.jobs.ReadLog(first, from)
		wantCode(t, fmt.Sprint(from), err, bridge.Invalid)
	}
	for _, name := range []string{"../jobs", "codex-job-00000009", ""} {
		_, err := b.jobs.ReadLog(name, 0)
		wantCode(t, "the log of "+name, err, bridge.NotFound)
	}
}

func TestJOB_20_AJobSaysHowFarItIs(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x"}`)
	r := b.started()
	percent, minutes := 42.9, 30.0
	args := api.JobProgressArgs{Job: first, Token: r.spec.Token, Args: job.ProgressArgs{Percent: &percent, ETAMinutes: &minutes, Note: "half"}}
	wantCode(t, "from another session that knows its secret", s.JobProgress(t.Context(), args), bridge.Denied)
	inside := b.dial(api.RoleSession)
	if _, err := inside.Register(t.Context(), api.Register{Kind: bridge.Codex, Name: first, Runner: true, JobToken: r.spec.Token, Cwd: b.work()}); err != nil {
		t.Fatal(err)
	}
	if err := inside.JobProgress(t.Context(), args); err != nil {
		t.Fatal(err)
	}
	got, err := b.jobs.View(first)
	if err != nil || got.Progress.Percent == nil || *got.Progress.Percent != 42 || got.Progress.Note != "half" || *got.Progress.ETAMinutes != 30 {
		t.Errorf("it is shown as %+v, %v", got.Progress, err)
	}
	eventually(t, "it to be in the file", func() bool { return b.entry(first)["progressNote"] == "half" })
	args.Token = ""
	wantCode(t, "without its secret", inside.JobProgress(t.Context(), args), bridge.Denied)
	args.Token, args.Job = r.spec.Token, second
	wantCode(t, "for another job", inside.JobProgress(t.Context(), args), bridge.Denied)
}

// Beside older programs jobs are given and end as ever, and jobs.json keeps its bytes;
// when those have left, everything stands in it.
func TestVER_05_JobsBesideOlderProgramsWaitOutsideTheirFile(t *testing.T) {
	b := prepared(t)
	path := filepath.Join(b.home.Dir(), "jobs.json")
	theirs := `{"version":4,"jobs":[{"id":"t1","name":"codex-theirs","agent":"codex","prompt":"p","owner":"o","status":"done","theirs":1}]}`
	if err := os.WriteFile(path, []byte(theirs), 0o600); err != nil {
		t.Fatal(err)
	}
	b.hold = true
	b.up()
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x"}`)
	r := b.started()
	r.connect(api.RunnerReport{})
	r.finish("made")
	s.mail(1)
	b.down()
	b.up()
	if got, err := b.jobs.View(first); err != nil || got.Status != job.Finished {
		t.Errorf("after a restart it is %+v, %v", got, err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != theirs {
		t.Errorf("jobs.json holds %s, %v", data, err)
	}
	b.down()
	b.hold = false
	b.up()
	if got := b.entry(first); got["status"] != "done" || got["delivered"] != true {
		t.Errorf("in jobs.json it is %v", got)
	}
	if got := b.entry("codex-theirs"); got["theirs"] != 1.0 {
		t.Errorf("theirs is %v", got)
	}
	if got, err := b.jobs.View(first); err != nil || got.Status != job.Finished {
		t.Errorf("it is %+v, %v", got, err)
	}
	b.join("boss", "s1").mail(0) // the result came once
}

func TestVER_06_AForeignRegistryStaysAsItIs(t *testing.T) {
	b := newBench(t)
	path := filepath.Join(b.home.Dir(), "jobs.json")
	for what, text := range map[string]string{"newer": `{"version":99,"jobs":[]}`, "damaged": `{"version":4,"jobs":[`, "no list": `{"jobs":{}}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(b.options())
		wantCode(t, what, err, bridge.Unsupported)
		if data, err := os.ReadFile(path); err != nil || string(data) != text {
			t.Errorf("%s: the file holds %q, %v", what, data, err)
		}
	}
}

func TestAJobThatCannotBeRecordedIsNotTakenIn(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	if err := os.Mkdir(filepath.Join(b.home.Dir(), "jobs.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := s.spawn("01", `{"prompt":"x"}`)
	wantCode(t, "a spawn", err, bridge.Storage)
	if len(b.jobs.Views()) != 0 || len(b.starts) != 0 {
		t.Error("the job is there all the same")
	}
}

func TestJOB_12_AJobWritesToWhomItWasGivenAlone(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	b.join("friend", "s2")
	b.join("stranger", "s3")
	s.mustSpawn("01", `{"prompt":"x","send_to":["friend"]}`)
	token := b.started().spec.Token
	inside := b.dial(api.RoleSession)
	if _, err := inside.Register(t.Context(), api.Register{Kind: bridge.Codex, Name: first, Runner: true, JobToken: token, Cwd: b.work()}); err != nil {
		t.Fatal(err)
	}
	for to, code := range map[string]bridge.Code{"boss": "", "friend": "", "stranger": bridge.Denied, "*": bridge.Denied, "claude": bridge.Denied, "Boss": bridge.Denied} {
		_, err := inside.Send(t.Context(), api.SendArgs{To: to, Body: "hello"})
		wantCode(t, "to "+to, err, code)
	}
}

// A native child of the supervisor is in its session, and still no supervisor.
func TestJOB_11_AChildOfTheSupervisorSteersNothing(t *testing.T) {
	b := newBench(t)
	boss := b.join("boss", "s1")
	boss.mustSpawn("01", `{"prompt":"x","access":"ask"}`)
	r := b.begun()
	r.asks("q1")
	child := api.Caller{SessionID: "s1", ChildID: "c1"}
	for _, decision := range []string{"allow", "deny", "pass_up"} {
		_, err := boss.JobMessage(t.Context(), api.JobMessageArgs{Caller: child, Args: job.MessageArgs{Job: first, ApprovalID: "q1", Decision: decision, Reason: "why"}})
		wantCode(t, "the child says "+decision, err, bridge.Denied)
	}
	if got, err := boss.Jobs(t.Context(), child); err != nil || len(got.Jobs) != 0 {
		t.Errorf("the child sees %+v, %v", got, err)
	}
	if got := b.jobs.Approvals(); len(got) != 1 || got[0].State != job.ApprovalAsked || len(got[0].PassedUp) != 0 {
		t.Errorf("it is %+v", got)
	}
	if err := boss.decide(first, "q1", "allow"); err != nil {
		t.Errorf("its session says allow: %v", err)
	}
}

// A runner speaks of its own job alone.
func TestJOB_07_ARunnerReportsNoQuestionOfAnotherJob(t *testing.T) {
	b := newBench(t)
	f := newFamily(b)
	f.brother.report(api.RunnerReport{Approvals: []job.Approval{f.job.question("q1"), f.brother.question("q2")}})
	if got := b.jobs.Approvals(); len(got) != 1 || got[0].ID != "q2" || got[0].Job != siblingName {
		t.Errorf("there is %+v", got)
	}
	wantText(t, f.boss.mail(1)[0].Body, siblingName, "q2")
}

// What a runner wrote before it heard the answer asks nothing anew.
func TestJOB_07_ALateReportAsksNothingAnew(t *testing.T) {
	b := newBench(t)
	boss := b.join("boss", "s1")
	boss.mustSpawn("01", `{"prompt":"x","access":"ask"}`)
	r := b.begun()
	r.asks("q1")
	boss.mail(1)
	if err := boss.decide(first, "q1", "deny"); err != nil {
		t.Fatal(err)
	}
	answer := r.orders()
	if len(answer) != 1 || answer[0].Kind != api.OrderAnswer || answer[0].Decision != job.Deny {
		t.Fatalf("the runner is told %+v", answer)
	}
	r.report(api.RunnerReport{Outcomes: []api.OrderOutcome{{ID: answer[0].ID}}})
	r.asks("q1")
	if got := b.jobs.Approvals(); len(got) != 1 || got[0].State != job.ApprovalAnswered {
		t.Errorf("it is %+v", got)
	}
	boss.mail(0)
	wantCode(t, "another answer", boss.decide(first, "q1", "allow"), bridge.Conflict)
}
