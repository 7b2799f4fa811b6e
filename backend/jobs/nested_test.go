package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
)

// inside is the session of a job that runs.
func (r *runner) inside() session {
	r.b.t.Helper()
	s := session{Client: r.b.dial(api.RoleSession), b: r.b}
	var err error
	s.Registered, err = s.Register(r.b.t.Context(), api.Register{
		Kind: bridge.Codex, Name: r.spec.Job, SessionID: "thread-" + r.spec.Job, Runner: true, JobToken: r.spec.Token, Cwd: "/",
	})
	if err != nil {
		r.b.t.Fatal(err)
	}
	return s
}

// begun is the runner of a job that was just given, at work.
func (b *bench) begun() *runner {
	b.t.Helper()
	r := b.started()
	r.connect(api.RunnerReport{})
	r.work()
	return r
}

// family is a job of boss, one that it gave itself, and one of that.
type family struct {
	boss            session
	job, child      *runner
	inJob, inChild  session
	other, sibling  session
	otherR, brother *runner
}

const (
	jobName     = "codex-job-00000001"
	childName   = "codex-job-00000002"
	siblingName = "codex-job-00000003"
	otherName   = "codex-job-00000004"
)

func newFamily(b *bench) family {
	f := family{boss: b.join("boss", "s1"), other: b.join("other", "s2")}
	f.boss.mustSpawn("01", `{"prompt":"x","access":"ask"}`)
	f.job = b.begun()
	f.inJob = f.job.inside()
	f.inJob.mustSpawn("02", `{"prompt":"y","access":"ask"}`)
	f.child = b.begun()
	f.inChild = f.child.inside()
	f.boss.mustSpawn("03", `{"prompt":"z"}`)
	f.brother = b.begun()
	f.sibling = f.brother.inside()
	f.other.mustSpawn("04", `{"prompt":"z"}`)
	f.otherR = b.begun()
	return f
}

func TestJOB_22_AJobHandsOnWorkWithinItsBounds(t *testing.T) {
	b := newBench(t)
	f := newFamily(b)
	if e := b.entry(childName); e["parentJob"] != jobName || e["owner"] != jobName || e["depth"] != 2.0 || e["rootName"] != "boss" || e["workdir"] != b.entry(jobName)["workdir"] {
		t.Errorf("the nested job is %v", e)
	}
	own := b.work()
	outside := t.TempDir()
	link := filepath.Join(own, "link")
	if err := errors.Join(os.Symlink(outside, link), os.Mkdir(filepath.Join(own, "jobs"), 0o700)); err != nil {
		t.Fatal(err)
	}
	ofChild := api.Caller{SessionID: "thread-" + jobName, ChildID: "c1"}
	for _, test := range []struct {
		what, name, args string
		by               session
		caller           api.Caller
		code             bridge.Code
	}{
		{"a third level", "codex-job-00000011", `{"prompt":"x"}`, f.inChild, api.Caller{}, bridge.Denied},
		{"more access than its own", "codex-job-00000012", `{"prompt":"x","access":"edit"}`, f.inJob, api.Caller{}, bridge.Denied},
		{"changes in another folder", "codex-job-00000013", `{"prompt":"x","access":"ask","cwd":"` + outside + `"}`, f.inJob, api.Caller{}, bridge.Denied},
		{"changes through a link", "codex-job-00000014", `{"prompt":"x","access":"ask","cwd":"` + link + `"}`, f.inJob, api.Caller{}, bridge.Denied},
		{"changes above its folder", "codex-job-00000015", `{"prompt":"x","access":"ask","cwd":"` + own + `/.."}`, f.inJob, api.Caller{}, bridge.Denied},
		{"words to whom it may not write", "codex-job-00000016", `{"prompt":"x","send_to":["other"]}`, f.inJob, api.Caller{}, bridge.Denied},
		{"a native child of it", "codex-job-00000017", `{"prompt":"x"}`, f.inJob, ofChild, bridge.Denied},
		{"the name of another's job", otherName, `{"prompt":"x"}`, f.inJob, api.Caller{}, bridge.Conflict},
		{"reading in another folder", "codex-job-00000018", `{"prompt":"x","cwd":"` + outside + `"}`, f.inJob, api.Caller{}, ""},
		{"changes in a folder of its own", "codex-job-00000019", `{"prompt":"x","access":"ask","cwd":"` + filepath.Join(own, "jobs") + `"}`, f.inJob, api.Caller{}, ""},
		{"words to whoever it works for", "codex-job-0000001a", `{"prompt":"x","send_to":["boss"]}`, f.inJob, api.Caller{}, ""},
		{"an ask while a place is free", "codex-ask-0000001b", `{"prompt":"x"}`, f.inJob, api.Caller{}, ""},
	} {
		_, err := test.by.Spawn(t.Context(), api.SpawnArgs{Caller: test.caller, Kind: bridge.Codex, Name: test.name, Args: json.RawMessage(test.args)})
		wantCode(t, test.what, err, test.code)
		if has := b.entry(test.name) != nil; has != (err == nil) && test.code != bridge.Conflict {
			t.Errorf("%s: it is there: %t", test.what, has)
		}
	}
	_, err := f.inJob.JobSlots(t.Context(), api.JobSlotsArgs{})
	wantCode(t, "slots of its own", err, bridge.Denied)
	_, err = f.inJob.HandOff(t.Context(), api.HandoffArgs{ID: "h", Handoff: job.Handoff{To: "other", All: true}})
	wantCode(t, "a hand-off", err, bridge.Denied)
}

// TestJOB_22_NoWordsRaiseAJobAboveTheOneThatGaveIt: what a job may not give at first it
// may not give by a later word either. Whoever is no job is bounded by the owner alone.
func TestJOB_22_NoWordsRaiseAJobAboveTheOneThatGaveIt(t *testing.T) {
	const fartherName = "codex-job-00000005"
	b := newBench(t)
	f := newFamily(b)
	f.inJob.mustSpawn("05", `{"prompt":"x","cwd":"`+t.TempDir()+`"}`)
	f.child.finish("done")
	for i, test := range []struct {
		what, name, words string
		by                session
		access            job.Access
		code              bridge.Code
	}{
		{"more than its own", childName, "", f.inJob, job.AccessEdit, bridge.Denied},
		{"more than its own with words", childName, "go on", f.inJob, job.AccessEdit, bridge.Denied},
		{"changes in another folder", fartherName, "", f.inJob, job.AccessAsk, bridge.Denied},
		{"reading in another folder", fartherName, "", f.inJob, job.AccessRead, ""},
		{"a session gives it less", jobName, "", f.boss, job.AccessRead, ""},
		{"words begin a turn with more", childName, "go on", f.inJob, "", bridge.Denied},
		{"a session gives it as much as before", jobName, "", f.boss, job.AccessAsk, ""},
		{"less than its own", childName, "", f.inJob, job.AccessRead, ""},
		{"as much as its own again", childName, "go on", f.inJob, job.AccessAsk, ""},
		{"more by a session", jobName, "", f.boss, job.AccessEdit, ""},
	} {
		before := b.entry(test.name)["access"]
		_, err := test.by.JobMessage(t.Context(), api.JobMessageArgs{
			ID: fmt.Sprintf("words-%d", i), Args: job.MessageArgs{Job: test.name, Message: test.words, Access: string(test.access)},
		})
		wantCode(t, test.what, err, test.code)
		want := any(string(test.access))
		if test.code != "" || test.access == "" {
			want = before
		}
		if got := b.entry(test.name)["access"]; got != want {
			t.Errorf("%s: its access is %v, want %v", test.what, got, want)
		}
	}
}

// TestJOB_22_ATreeSharesItsPlaces: whoever waits keeps its own, so that no job waits in
// ask_* for one that waits for a place.
func TestJOB_22_ATreeSharesItsPlaces(t *testing.T) {
	b := prepared(t)
	b.allow(func(allowed *config.Jobs) { allowed.MaxJobs = 2 })
	b.up()
	boss := b.join("boss", "s1")
	boss.mustSpawn("01", `{"prompt":"x"}`)
	parent := b.begun()
	inside := parent.inside()
	inside.mustSpawn("02", `{"prompt":"x"}`)
	child := b.begun()
	_, err := inside.Spawn(t.Context(), api.SpawnArgs{Kind: bridge.Codex, Name: "codex-ask-00000003", Args: json.RawMessage(`{"prompt":"x"}`)})
	wantCode(t, "an ask while all places are taken", err, bridge.Busy)
	if b.entry("codex-ask-00000003") != nil {
		t.Error("the refused ask stands in line")
	}
	inside.mustSpawn("04", `{"prompt":"x"}`)
	if got, err := boss.JobSlots(t.Context(), api.JobSlotsArgs{}); err != nil || got.Limit != 2 || got.Running != 2 || got.Queued != 1 {
		t.Errorf("the tree has %+v, %v", got, err)
	}
	child.finish("done")
	if r := b.started(); r.spec.Job != "codex-job-00000004" || r.spec.Depth != 2 {
		t.Errorf("%s was started, at depth %d", r.spec.Job, r.spec.Depth)
	}
}

func TestJOB_11_JOB_22_AJobSteersItsOwnChildrenAlone(t *testing.T) {
	b := newBench(t)
	f := newFamily(b)
	who := map[string]session{"boss": f.boss, "job": f.inJob, "child": f.inChild, "sibling": f.sibling, "another session": f.other}
	may := map[string]string{jobName: "boss", siblingName: "boss", childName: "job", otherName: "another session"}
	for name, steers := range may {
		for by, s := range who {
			want := bridge.Denied
			if by == steers {
				want = ""
			}
			_, err := s.say(name, "words of "+by)
			wantCode(t, by+" says something to "+name, err, want)
			_, err = s.JobResult(t.Context(), api.JobArgs{Job: name})
			wantCode(t, by+" asks for the result of "+name, err, want)
			_, err = s.JobMessage(t.Context(), api.JobMessageArgs{ID: "t", Args: job.MessageArgs{Job: name, Title: "mine"}})
			wantCode(t, by+" gives a title to "+name, err, want)
			if by != steers {
				_, err = s.JobCancel(t.Context(), api.JobArgs{Job: name})
				wantCode(t, by+" cancels "+name, err, want)
			}
		}
	}
	for by, want := range map[string][]string{"boss": {siblingName, jobName}, "job": {childName}, "child": {}, "sibling": {}, "another session": {otherName}} {
		got, err := who[by].Jobs(t.Context(), api.Caller{})
		names := []string{}
		for _, view := range got.Jobs {
			names = append(names, view.Job)
		}
		if err != nil || !slices.Equal(names, want) {
			t.Errorf("%s sees %q, %v; want %q", by, names, err, want)
		}
	}
	for to, code := range map[string]bridge.Code{jobName: "", "boss": bridge.Denied, siblingName: bridge.Denied, "other": bridge.Denied, "*": bridge.Denied} {
		_, err := f.inChild.Send(t.Context(), api.SendArgs{To: to, Body: "hello"})
		wantCode(t, "the nested job writes to "+to, err, code)
	}
}

func TestJOB_22_AResultGoesToTheDirectParentOrUpOnce(t *testing.T) {
	for what, test := range map[string]struct {
		end     func(b *bench, f family)
		inJob   int // messages with the result that the job reads
		atBoss  int // messages with it that boss has
		others  int // messages of others that boss has
		restart bool
	}{
		"the parent reads it": {func(b *bench, f family) {
			f.child.finish("the nested answer")
			f.inJob.mail(1)
			f.job.finish("the answer")
		}, 1, 0, 1, false},
		"the parent ends before it reads it": {func(b *bench, f family) {
			f.child.finish("the nested answer")
			f.job.finish("the answer")
		}, 0, 1, 1, false},
		"the parent has ended before it comes": {func(b *bench, f family) {
			f.job.finish("the answer")
			f.child.finish("the nested answer")
		}, 0, 1, 1, false},
		"the broker dies between the end of the parent and its mail": {func(b *bench, f family) {
			f.child.finish("the nested answer")
			b.down()
			f.job.end(answered, "the answer")
			b.rewrite(jobName, func(e map[string]any) {
				e["status"], e["state"], e["ended"], e["finishedAt"] = "done", "finished", "answer", 1
			})
			b.up()
		}, 0, 1, 1, true},
	} {
		t.Run("JOB-22 "+what, func(t *testing.T) {
			b := newBench(t)
			f := newFamily(b)
			boss := f.boss
			test.end(b, f)
			if test.restart {
				boss = b.join("boss", "s1")
			}
			found := 0
			for _, message := range boss.mail(test.atBoss + test.others) {
				if message.From.Name == childName {
					found++
					wantText(t, message.Body, "the nested answer")
				}
			}
			if found != test.atBoss {
				t.Errorf("boss has it %d times, want %d", found, test.atBoss)
			}
			boss.mail(0)
		})
	}
}

func TestJOB_22_AnOrphanAnswersToWhoIsAbove(t *testing.T) {
	b := newBench(t)
	f := newFamily(b)
	_, err := f.boss.say(childName, "words")
	wantCode(t, "while its parent goes on", err, bridge.Denied)
	f.job.finish("done")
	f.boss.mail(1)
	if result, err := f.boss.say(childName, "words"); err != nil || *result.Delivery != job.ToRunning {
		t.Errorf("after its parent's end: %+v, %v", result, err)
	}
	if _, err := f.inChild.Send(t.Context(), api.SendArgs{To: "boss", Body: "hello"}); err != nil {
		t.Errorf("it writes to whom it answers to: %v", err)
	}
	f.boss.mail(1)
	if _, err := f.boss.say(jobName, "go on"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the parent to go on", func() bool { return b.state(jobName).IsActive() })
	_, err = f.boss.say(childName, "more")
	wantCode(t, "after its parent has gone on", err, bridge.Denied)
}

func TestJOB_22_ACancelledJobTakesItsTreeAlong(t *testing.T) {
	b := newBench(t)
	f := newFamily(b)
	if _, err := f.boss.JobCancel(t.Context(), api.JobArgs{Job: jobName}); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*runner{f.job, f.child} {
		if got := r.orders(); len(got) != 1 || got[0].Kind != api.OrderCancel {
			t.Errorf("%s is told %+v", r.spec.Job, got)
		}
	}
	for name, asked := range map[string]any{jobName: true, childName: true, siblingName: nil, otherName: nil} {
		if got := b.entry(name)["cancelAsked"]; got != asked {
			t.Errorf("%s is to be cancelled: %v", name, got)
		}
	}
	_, err := f.inJob.spawn("05", `{"prompt":"x"}`)
	wantCode(t, "a job of one that is to end", err, bridge.Denied)
}

func (r *runner) asks(id string) {
	r.b.t.Helper()
	r.report(api.RunnerReport{Approvals: []job.Approval{r.question(id)}})
}

func (r *runner) question(id string) job.Approval {
	return job.NewApproval(job.Approval{ID: id, Job: r.spec.Job, Run: r.spec.Run, By: r.spec.Supervisor, Kind: "command", What: "shell", Detail: "rm -rf build"}, time.Now())
}

func (s session) decide(name, id, decision string) error {
	_, err := s.JobMessage(s.b.t.Context(), api.JobMessageArgs{Args: job.MessageArgs{Job: name, ApprovalID: id, Decision: decision, Reason: "why"}})
	return err
}

func TestJOB_22_AnApprovalIsPassedUp(t *testing.T) {
	b := newBench(t)
	f := newFamily(b)
	f.child.asks("q1")
	wantText(t, f.inJob.mail(1)[0].Body, childName, "rm -rf build", "q1", "pass_up")
	f.boss.mail(0)
	wantCode(t, "the job allows", f.inJob.decide(childName, "q1", "allow"), bridge.Denied)
	for by, s := range map[string]session{"boss": f.boss, "itself": f.inChild, "a sibling of its parent": f.sibling, "another session": f.other} {
		for _, decision := range []string{"allow", "deny", "pass_up"} {
			wantCode(t, by+" says "+decision, s.decide(childName, "q1", decision), bridge.Denied)
		}
	}
	if err := f.inJob.decide(childName, "q1", "pass_up"); err != nil {
		t.Fatal(err)
	}
	wantText(t, f.boss.mail(1)[0].Body, childName, "rm -rf build", "q1", "allow or deny")
	wantCode(t, "the job, which has passed it up", f.inJob.decide(childName, "q1", "deny"), bridge.Denied)
	if got := b.jobs.Approvals(); len(got) != 1 || got[0].By != "boss" || !slices.Equal(got[0].PassedUp, []string{jobName}) || got[0].State != job.ApprovalAsked {
		t.Errorf("it is shown as %+v", got)
	}
	if got := f.child.orders(); len(got) != 1 || got[0].Kind != api.OrderPassUp || got[0].Approval != "q1" || got[0].By != "boss" {
		t.Errorf("its runner is told %+v", got)
	}
	b.down() // before the runner has it
	b.up()
	f.child.connect(api.RunnerReport{Approvals: []job.Approval{f.child.question("q1")}})
	boss := b.join("boss", "s1")
	boss.mail(0)
	wantCode(t, "the job after a restart", f.job.inside().decide(childName, "q1", "deny"), bridge.Denied)
	if err := boss.decide(childName, "q1", "allow"); err != nil {
		t.Fatalf("boss allows: %v", err)
	}
	orders := f.child.orders()
	if last := orders[len(orders)-1]; last.Kind != api.OrderAnswer || last.Decision != job.Allow || last.By != "boss" {
		t.Errorf("its runner is told %+v", orders)
	}
}

func TestJOB_22_AboveASessionIsTheOwner(t *testing.T) {
	b := newBench(t)
	f := newFamily(b)
	f.job.asks("q1")
	f.boss.mail(1)
	if err := f.boss.decide(jobName, "q1", "pass_up"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "boss, who has passed it up", f.boss.decide(jobName, "q1", "allow"), bridge.Denied)
	if got := b.jobs.Approvals(); len(got) != 1 || got[0].By != bridge.OwnerName {
		t.Errorf("it is shown as %+v", got)
	}
	if _, err := b.jobs.Answer("q1", job.Allow, ""); err != nil {
		t.Errorf("the owner: %v", err)
	}
}

// TestJOB_22_AnOpenQuestionGoesUpWhenTheParentEnds: whoever is above is told of it, once.
func TestJOB_22_AnOpenQuestionGoesUpWhenTheParentEnds(t *testing.T) {
	b := newBench(t)
	f := newFamily(b)
	f.child.asks("q1")
	f.inJob.mail(1)
	f.job.finish("done")
	bodies := ""
	for _, message := range f.boss.mail(2) {
		bodies += message.Body
	}
	wantText(t, bodies, "q1", "done")
	if err := f.boss.decide(childName, "q1", "deny"); err != nil {
		t.Error(err)
	}
	f.boss.mail(0)
}
