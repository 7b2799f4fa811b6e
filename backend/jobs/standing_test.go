package jobs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/rule"
	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc/api"
)

// wants has the job's runner ask to run a command, under that id.
func (r *runner) wants(id, command string) {
	r.b.t.Helper()
	r.tells(job.NewApproval(job.Approval{
		ID: id, Job: r.spec.Job, Run: r.spec.Run, Agent: "codex", By: "boss", Kind: "command", What: "shell", Detail: command, Cwd: r.spec.Folder,
	}, r.b.clock()))
}

// tells reports an approval as it is, and writes its file as a runner does.
func (r *runner) tells(approval job.Approval) {
	r.b.t.Helper()
	data, err := json.Marshal(approval)
	path := r.b.jobs.files.Approval(approval.ID)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = disk.WriteAtomic(path, data, disk.PrivateFile)
	}
	if err != nil {
		r.b.t.Fatal(err)
	}
	r.report(api.RunnerReport{Approvals: []job.Approval{approval}})
}

func (b *bench) approval(id string) job.Approval {
	b.t.Helper()
	list := b.jobs.Approvals()
	at := slices.IndexFunc(list, func(a job.Approval) bool { return a.ID == id })
	if at < 0 {
		b.t.Fatalf("there is no approval %s: %+v", id, list)
	}
	return list[at]
}

func (b *bench) live() []rule.Rule {
	b.t.Helper()
	list, err := b.rules.(interface{ Live() ([]rule.Rule, error) }).Live()
	if err != nil {
		b.t.Fatal(err)
	}
	return list
}

// working is a job whose runner is connected.
func working(b *bench, s session) *runner {
	b.t.Helper()
	s.mustSpawn("01", `{"prompt":"x","access":"ask"}`)
	r := b.started()
	r.connect(api.RunnerReport{})
	r.work()
	return r
}

var prefixWish = rule.Wish{Match: rule.Prefix, Words: []string{"go", "test"}, Folder: "this"}

func TestNED_04_FromNowOnIsAnsweredBeforeAnybodyIsAsked(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	r := working(b, s)
	r.wants("q1", "go test ./a")
	s.mail(1)
	approval, err := b.jobs.AnswerFromNowOn("q1", prefixWish)
	if err != nil || approval.State != job.ApprovalAnswered || approval.AnsweredBy != bridge.OwnerName || approval.Decision != job.Allow {
		t.Fatalf("from now on: %+v, %v", approval, err)
	}
	made := b.live()
	if len(made) != 1 || made[0].Folder != r.spec.Folder || made[0].Uses != 0 {
		t.Fatalf("the rules are %+v", made)
	}
	r.wants("q2", "go test ./b")
	r.wants("q3", "go vet ./b")
	got := b.approval("q2")
	if got.State != job.ApprovalAnswered || got.Decision != job.Allow || got.AnsweredBy != "rule:"+made[0].ID || !strings.Contains(got.Reason, `"go test"`) {
		t.Errorf("what the rule allows: %+v", got)
	}
	if got := b.approval("q3"); got.State != job.ApprovalAsked {
		t.Errorf("what it does not: %+v", got)
	}
	wantText(t, s.mail(1)[0].Body, "go vet ./b") // of q2 nobody was told
	orders := r.orders()
	at := slices.IndexFunc(orders, func(o api.Order) bool { return o.Approval == "q2" })
	if at < 0 || orders[at].Kind != api.OrderAnswer || orders[at].Decision != job.Allow || orders[at].By != "rule:"+made[0].ID {
		t.Errorf("the runner is told %+v", orders)
	}
	if used := b.live()[0]; used.Uses != 1 || used.LastFor != r.spec.Job || used.LastUse == 0 {
		t.Errorf("its use: %+v", used)
	}
	r.wants("q2", "go test ./b") // said again, it is the same
	if used := b.live()[0]; used.Uses != 1 {
		t.Errorf("counted %d times", used.Uses)
	}
}

// A rule allows nothing any more to a job that is to end.
func TestNED_04_JOB_06_ACancelledJobIsAllowedNothing(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	r := working(b, s)
	r.wants("q1", "go test ./a")
	if _, err := b.jobs.AnswerFromNowOn("q1", prefixWish); err != nil {
		t.Fatal(err)
	}
	if _, err := s.JobCancel(t.Context(), api.JobArgs{Job: first}); err != nil {
		t.Fatal(err)
	}
	r.wants("q2", "go test ./b")
	if got := b.approval("q2"); got.State != job.ApprovalAsked {
		t.Errorf("what it asks then: %+v", got)
	}
	if slices.ContainsFunc(r.orders(), func(o api.Order) bool { return o.Approval == "q2" }) || b.live()[0].Uses != 0 {
		t.Errorf("its runner has an answer, by %+v", b.live()[0])
	}
}

func TestNED_04_OnceStaysOnceAndALateRuleIsNone(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	r := working(b, s)
	r.wants("q1", "go test ./a")
	if _, err := b.jobs.Answer("q1", job.Allow, ""); err != nil {
		t.Fatal(err)
	}
	_, err := b.jobs.AnswerFromNowOn("q1", prefixWish)
	wantCode(t, "a rule after the answer", err, bridge.Conflict)
	_, err = b.jobs.AnswerFromNowOn("q9", prefixWish)
	wantCode(t, "a rule of nothing", err, bridge.NotFound)
	r.wants("q2", "go test ./b")
	_, err = b.jobs.AnswerFromNowOn("q2", rule.Wish{Match: rule.Prefix, Words: []string{"go"}, Folder: "this"})
	wantCode(t, "a rule of a name alone", err, bridge.Invalid)
	if got := b.approval("q2"); got.State != job.ApprovalAsked || len(b.live()) != 0 {
		t.Errorf("q2 is %+v, the rules %+v", got, b.live())
	}
	later := time.Now().Add(11 * time.Minute)
	b.setNow(func() time.Time { return later })
	_, err = b.jobs.AnswerFromNowOn("q2", prefixWish)
	wantCode(t, "a rule of what has expired", err, bridge.Conflict)
	if len(b.live()) != 0 {
		t.Errorf("the rules are %+v", b.live())
	}
}

func TestNED_04_ARuleAnswersWhatWaitsAndWhatWasAskedWithoutABroker(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	r := working(b, s)
	r.wants("q1", "go test ./a")
	r.wants("q2", "go test ./b")
	if _, err := b.jobs.AnswerFromNowOn("q1", prefixWish); err != nil {
		t.Fatal(err)
	}
	id := b.live()[0].ID
	if got := b.approval("q2"); got.AnsweredBy != "rule:"+id {
		t.Errorf("what waited beside it: %+v", got)
	}
	b.down()
	approval := job.NewApproval(job.Approval{ID: "q3", Job: r.spec.Job, Run: 1, Agent: "codex", By: "boss", Kind: "command", What: "shell", Detail: "go test ./c", Cwd: r.spec.Folder}, time.Now())
	data, err := json.Marshal(approval)
	if err != nil || os.WriteFile(b.jobs.files.Approval("q3"), data, 0o600) != nil {
		t.Fatal(err)
	}
	b.up()
	for _, q := range []string{"q2", "q3"} {
		if got := b.approval(q); got.State != job.ApprovalAnswered || got.AnsweredBy != "rule:"+id {
			t.Errorf("after a restart %s is %+v", q, got)
		}
	}
	if used := b.live()[0]; used.Uses != 2 {
		t.Errorf("counted %d times, want 2", used.Uses)
	}
}

func TestNED_04_TakenBackAtOnce(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	r := working(b, s)
	r.wants("q1", "go test ./a")
	s.mail(1)
	if _, err := b.jobs.AnswerFromNowOn("q1", prefixWish); err != nil {
		t.Fatal(err)
	}
	made := b.live()[0]
	r.wants("q2", "go test ./b")
	r.orders() // q2 is handed over
	r.wants("q3", "go test ./c")
	r.wants("q4", "go test ./d")
	applied := b.approval("q4")
	applied.State = job.ApprovalApplied
	r.tells(applied)
	_, undone, err := b.rules.Revoke(made.ID)
	if err != nil || !slices.Equal(undone.Asked, []string{"q3"}) || !slices.Equal(undone.Handed, []string{"q2"}) {
		t.Fatalf("taken back: %+v, %v; want q3 asked again and q2 handed over", undone, err)
	}
	if got := b.approval("q3"); got.State != job.ApprovalAsked || got.AnsweredBy != "" || got.Decision != "" || got.Reason != "" {
		t.Errorf("q3 is %+v", got)
	}
	if got := b.approval("q2"); got.State != job.ApprovalAnswered || got.AnsweredBy != "rule:"+made.ID {
		t.Errorf("q2 is %+v", got)
	}
	wantText(t, s.mail(1)[0].Body, "go test ./c")
	if orders := r.orders(); slices.ContainsFunc(orders, func(o api.Order) bool { return o.Approval == "q3" }) {
		t.Errorf("the runner is still told of q3: %+v", orders)
	}
	if told, err := os.ReadFile(b.jobs.ordersPath(r.spec.Job)); err != nil || strings.Contains(string(told), `"q3"`) {
		t.Errorf("on the disk the runner is told %s, %v", told, err)
	}
	r.wants("q5", "go test ./e")
	if got := b.approval("q5"); got.State != job.ApprovalAsked {
		t.Errorf("after that: %+v", got)
	}
	b.down() // what was taken back stays so
	b.up()
	r.connect(api.RunnerReport{})
	if got := b.approval("q3"); got.State != job.ApprovalAsked {
		t.Errorf("after a restart q3 is %+v", got)
	}
	if _, err := b.jobs.Answer("q3", job.Deny, "no"); err != nil {
		t.Fatal(err)
	}
	if got := b.approval("q3"); got.Decision != job.Deny || got.AnsweredBy != bridge.OwnerName {
		t.Errorf("the owner's answer: %+v", got)
	}
}

func TestNED_04_ABrokersDeathInTheMiddleOfTakingBackAllowsNothing(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	r := working(b, s)
	r.wants("q1", "go test ./a")
	if _, err := b.jobs.AnswerFromNowOn("q1", prefixWish); err != nil {
		t.Fatal(err)
	}
	r.wants("q2", "go test ./b")
	b.down()
	// The rule's end is on the disk, and the answer is, too.
	path := filepath.Join(b.home.Dir(), config.RulesStore)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ended := strings.Replace(string(data), `"uses"`, `"takenBack": 1, "uses"`, 1)
	if ended == string(data) || os.WriteFile(path, []byte(ended), 0o600) != nil {
		t.Fatal(ended)
	}
	b.up()
	r.connect(api.RunnerReport{})
	if got := b.approval("q2"); got.State != job.ApprovalAsked {
		t.Errorf("q2 is %+v", got)
	}
	if orders := r.orders(); slices.ContainsFunc(orders, func(o api.Order) bool { return o.Approval == "q2" }) {
		t.Errorf("the runner is told %+v", orders)
	}
}

func TestNED_04_WhatCannotBeRecordedIsAsked(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	r := working(b, s)
	r.wants("q1", "go test ./a")
	s.mail(1)
	if _, err := b.jobs.AnswerFromNowOn("q1", prefixWish); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(b.home.Dir(), config.RulesStore)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil { // nothing can take its place
		t.Fatal(err)
	}
	r.wants("q2", "go test ./b")
	if got := b.approval("q2"); got.State != job.ApprovalAsked {
		t.Errorf("uncounted it is %+v", got)
	}
	wantText(t, s.mail(1)[0].Body, "go test ./b")
	_, err := b.jobs.AnswerFromNowOn("q2", rule.Wish{Match: rule.Exact, Folder: "this"})
	wantCode(t, "a rule that cannot be written", err, bridge.Storage)
	if got := b.approval("q2"); got.State != job.ApprovalAsked {
		t.Errorf("and nothing was answered: %+v", got)
	}
}

func TestNED_04_WithoutItsAnswerThereIsNoRule(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	r := working(b, s)
	r.wants("q1", "go test ./a")
	path := b.jobs.ordersPath(r.spec.Job)
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil { // no answer can be recorded
		t.Fatal(err)
	}
	_, err := b.jobs.AnswerFromNowOn("q1", prefixWish)
	wantCode(t, "an answer that cannot be recorded", err, bridge.Storage)
	if got := b.approval("q1"); got.State != job.ApprovalAsked || len(b.live()) != 0 {
		t.Errorf("q1 is %+v, the rules %+v", got, b.live())
	}
}

// everyRole is every role that a connection may say to have.
var everyRole = []api.Role{api.RoleSession, api.RolePlugin, api.RoleHook, api.RoleMod, api.RoleRunner, api.RoleOwner, api.RoleDashboard}

// TestNED_04_OnlyTheOwnerMakesOrRemovesARule tries the ways that an agent has.
func TestNED_04_OnlyTheOwnerMakesOrRemovesARule(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	r := working(b, s)
	r.wants("q1", "go test ./a")
	for _, op := range []string{"rules", "rule", "make_rule", "take_back_rule", "approve_rule"} {
		for _, role := range everyRole {
			if err := b.dial(role).Call(t.Context(), op, map[string]any{"rule": prefixWish}, nil); err == nil {
				t.Errorf("the operation %s of a connection of the role %s was done", op, role)
			}
		}
	}
	type words = map[string]any
	for name, args := range map[string]words{
		"job_message": {"args": words{"job": first, "approval_id": "q1", "decision": "allow", "rule": prefixWish}},
		"approve":     {"approval": "q1", "decision": "allow", "rule": prefixWish},
	} {
		for _, role := range everyRole {
			if err := b.dial(role).Call(t.Context(), name, args, nil); err == nil {
				t.Errorf("%s with a rule by a connection of the role %s was done", name, role)
			}
		}
		if err := s.Call(t.Context(), name, args, nil); err == nil {
			t.Errorf("%s with a rule by the supervisor was done", name)
		}
	}
	if _, err := job.ParseMessage([]byte(`{"job":"` + first + `","approval_id":"q1","decision":"allow","rule":{"match":"exact"}}`)); err == nil {
		t.Error("the tool takes a rule")
	}
	// A supervisor's own "allow" is for once.
	if _, err := s.answer("allow"); err == nil {
		t.Log("the supervisor gave a reason with an allow")
	}
	r.wants("q2", "go test ./a")
	if got := b.approval("q2"); got.State != job.ApprovalAsked || len(b.live()) != 0 {
		t.Errorf("q2 is %+v, the rules %+v", got, b.live())
	}
}

func TestNED_04_ARuleOfAPairedPCsJobIsMadeThere(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	r := working(b, s)
	r.wants("q1", "go test ./a")
	approval := b.approval("q1")
	offer, folder := b.jobs.FromNowOn(approval)
	if !offer.Exact || offer.Least != 2 || folder != r.spec.Folder {
		t.Errorf("of a job here: %+v in %s", offer, folder)
	}
	b.jobs.mu.Lock()
	b.jobs.noteLocked(first, func(entry *job.Job) { entry.Mirror = &job.Mirror{PC: "other"} })
	b.jobs.publish()
	b.jobs.mu.Unlock()
	if offer, folder := b.jobs.FromNowOn(approval); offer.Exact || len(offer.Words) > 0 || offer.Why == "" || folder != "" {
		t.Errorf("of one on a paired PC: %+v in %s", offer, folder)
	}
}
