package maintain

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/storage/maintain/inventory"
)

const jobToken = "JOB-TOKEN-THAT-MUST-NOT-LEAVE-3"

// jobName gives the names of jobs by their last digits.
func jobName(hex string) string { return "codex-job-000000" + hex }

// runJob writes what a job leaves in a home whose run is in that state; an ended one
// has its envelope.
func runJob(t testing.TB, c Maintenance, hex string, state job.State) job.Job {
	t.Helper()
	name, dir := jobName(hex), c.Home.Dir()
	at := job.Millis(1_700_000_000_000)
	entry := job.Job{
		Name: name, Agent: bridge.Codex, Prompt: "do " + hex, Owner: "boss", Supervisor: "boss-id", Status: state.FieldStatus(), State: state,
		Run: 1, StartedAt: at, Workdir: dir,
	}
	spec := runs.SpecFile{
		Job: name, Run: 1, Kind: bridge.Codex, PromptID: "p", Prompt: "do " + hex, Folder: dir, Access: job.AccessRead, TimeoutSec: 60, Supervisor: "boss", Depth: 1,
		Token: jobToken + hex,
	}
	runner := job.Process{PID: 1 << 22, Identity: "gone", Role: "runner"} // above every process number
	left := runs.StateFile{Job: name, Run: 1, State: state, Runner: runner, Tokens: 12_345}
	write(t, dir, "jobs/"+name+"/spec.json", encoded(t, spec.Encode))
	write(t, dir, "jobs/"+name+"/run-1.json", fmt.Sprintf(`{"runner": {"pid": 4194304, "identity": "gone"}, "token": %q}`, spec.Token))
	write(t, dir, "jobs/"+name+"/journal.jsonl", `{"at":1,"run":1,"kind":"prompt","id":"p","text":"do it"}`+"\n")
	write(t, dir, "jobs/"+name+"/orders.json", `{"run": 1, "orders": []}`)
	write(t, dir, "jobs/"+name+"/tmp/half.json", "{")
	write(t, dir, "runs/"+name+".log", logText)
	write(t, dir, "runs/"+name+".jsonl", `{"kind": "text", "text": "`+logText+`"}`)
	if state.IsEnded() {
		entry.FinishedAt, entry.ResultSent, entry.Ended = at+1, true, job.EndAnswer
		envelope := runs.NewEnvelope(name, 1, job.Outcome{State: state, Ended: job.EndAnswer}, "the answer", runs.Evidence{Tokens: 12_345}, at.Time())
		write(t, dir, "jobs/"+name+"/envelope.json", encoded(t, envelope.Encode))
	}
	write(t, dir, "jobs/"+name+"/state.json", encoded(t, left.Encode))
	return entry
}

func encoded(t testing.TB, encode func() ([]byte, error)) string {
	t.Helper()
	data, err := encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// keepJobs writes the registry.
func keepJobs(t testing.TB, c Maintenance, jobs ...job.Job) {
	t.Helper()
	write(t, c.Home.Dir(), "jobs.json", encoded(t, job.File{Jobs: jobs}.Encode))
}

// jobsOf reads the registry.
func jobsOf(t testing.TB, c Maintenance) map[string]job.Job {
	t.Helper()
	file, err := job.DecodeFile(read(t, c.Home.Dir(), "jobs.json"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]job.Job{}
	for _, entry := range file.Jobs {
		found[entry.Name] = entry
	}
	return found
}

func TestSTO_04_ASnapshotHoldsJobsWithoutSecretsTextOrAgentsFiles(t *testing.T) {
	c := newHome(t)
	keepJobs(t, c, runJob(t, c, "01", job.Finished))
	runJob(t, c, "02", job.Finished)
	write(t, c.Home.Dir(), "archive/runs/x.log", logText)
	rename(t, c, "jobs/"+jobName("02"), "archive/jobs/"+jobName("02"))
	rename(t, c, "runs/"+jobName("02")+".jsonl", "archive/runs/"+jobName("02")+".jsonl")
	write(t, c.Home.Dir(), "worktrees/repository-"+jobName("01")+"/package.json", `{"name": "of the repository"}`)
	write(t, c.Home.Dir(), "jobs/7.spec.json", `{"home": "/h", "token": "`+jobToken+`7", "job": {"name": "build"}}`)
	made := mustBackup(t, c)
	manifest := manifestOf(t, made.Path)
	for _, folder := range []string{"jobs/" + jobName("01"), "archive/jobs/" + jobName("02")} {
		for _, file := range []string{"spec.json", "run-1.json", "journal.jsonl", "state.json", "envelope.json", "orders.json"} {
			if !manifest.Has(folder + "/" + file) {
				t.Errorf("the snapshot lacks %s/%s", folder, file)
			}
		}
	}
	for _, file := range manifest.Files {
		if strings.HasPrefix(file.Path, "worktrees/") || strings.Contains(file.Path, "/tmp/") || strings.HasSuffix(file.Path, ".log") || strings.Contains(file.Path, "runs/codex") {
			t.Errorf("the snapshot has %s", file.Path)
		}
	}
	for _, text := range []string{jobToken, logText} {
		if found := holding(t, c.Home.Backups(), text); len(found) > 0 {
			t.Errorf("%q is in %v", text, found)
		}
	}
	var spec map[string]any
	if err := json.Unmarshal(read(t, made.Path, "jobs/"+jobName("01")+"/spec.json"), &spec); err != nil || spec["prompt"] != "do 01" {
		t.Errorf("the copied spec is %v, %v", spec, err)
	}
	if text := string(read(t, made.Path, "jobs/"+jobName("01")+"/state.json")); !strings.Contains(text, "12345") {
		t.Errorf("how many tokens it has used is gone from %s", text)
	}
	if result, err := c.Restores().Test(t.Context(), made.Path); err != nil || !result.OK {
		t.Errorf("drill: %+v, %v", result, err)
	}
}

func TestSTO_08_JobsComeBackOnARestoreAndNoneAsRunning(t *testing.T) {
	c := newHome(t)
	running, ended, entry := runJob(t, c, "01", job.Running), runJob(t, c, "02", job.Finished), runJob(t, c, "03", job.Finished)
	entry.State, entry.Status, entry.ResultSent, entry.FinishedAt = job.Waiting, "running", false, 0 // its envelope was quicker than the registry
	queued := job.Job{Name: jobName("04"), Agent: bridge.Codex, Prompt: "later", Owner: "boss", State: job.Queued, QueuedAt: 5}
	remote := job.Job{Name: jobName("05"), Agent: bridge.Codex, Prompt: "there", Owner: "boss", State: job.Running, Run: 1, Remote: &job.Remote{Host: "desk", Name: "x"}}
	keepJobs(t, c, running, ended, entry, queued, remote)
	before := string(read(t, c.Home.Dir(), "jobs/"+jobName("01")+"/journal.jsonl"))
	made := mustBackup(t, c)
	later := runJob(t, c, "06", job.Failed) // after the snapshot
	keepJobs(t, c, later)
	remove(t, c, "jobs/"+jobName("01")+"/journal.jsonl")
	write(t, c.Home.Dir(), "worktrees/w/package.json", `{"name": "mine"}`)
	done, err := c.Restores().Restore(t.Context(), made.Path)
	if err != nil {
		t.Fatal(err)
	}
	jobs := jobsOf(t, c)
	for hex, want := range map[string]job.State{"01": job.Interrupted, "02": job.Finished, "03": job.Finished, "04": job.Interrupted, "05": job.Running} {
		if got := jobs[jobName(hex)]; got.State != want || want.IsEnded() && got.FinishedAt == 0 {
			t.Errorf("%s came back as %s, ended %d, want %s", got.Name, got.State, got.FinishedAt, want)
		}
	}
	if len(jobs) != 5 || jobs[jobName("01")].Ended != job.EndedRunnerGone || jobs[jobName("01")].ResultSent || !jobs[jobName("04")].ResultSent {
		t.Errorf("the jobs are %+v", jobs)
	}
	if now := string(read(t, c.Home.Dir(), "jobs/"+jobName("01")+"/journal.jsonl")); now != before {
		t.Errorf("the journal is %q", now)
	}
	for _, path := range []string{"jobs/" + later.Name + "/spec.json", "jobs/" + later.Name + "/envelope.json"} {
		if !inventory.IsMissing(inventory.JoinHome(c.Home.Dir(), path)) {
			t.Errorf("%s came after the snapshot and is still there", path)
		}
		if inventory.IsMissing(filepath.Join(done.Recovery, inventory.DisplacedDir, path)) {
			t.Errorf("the recovery set lacks %s", path)
		}
	}
	for _, path := range []string{"worktrees/w/package.json", "runs/" + later.Name + ".log", "runs/" + later.Name + ".jsonl"} {
		if inventory.IsMissing(inventory.JoinHome(c.Home.Dir(), path)) {
			t.Errorf("%s is gone", path)
		}
	}
	if found := holding(t, c.Home.Backups(), jobToken); len(found) > 0 {
		t.Errorf("tokens of jobs in %v", found)
	}
}

func TestSTO_08_WhatMayHoldASecretAndCannotBeReadStays(t *testing.T) {
	c := newHome(t)
	keepJobs(t, c, runJob(t, c, "01", job.Finished))
	made := mustBackup(t, c)
	spec := "jobs/" + jobName("01") + "/spec.json"
	write(t, c.Home.Dir(), spec, `{"token": "`+jobToken)
	if _, err := c.Restores().Restore(t.Context(), made.Path); err != nil {
		t.Fatal(err)
	}
	if text := string(read(t, c.Home.Dir(), spec)); text != `{"token": "`+jobToken {
		t.Errorf("the spec is %q", text)
	}
}

func TestSTO_09_ARestoreWaitsForRunners(t *testing.T) {
	c := newHome(t)
	made := mustBackup(t, c)
	runner := c.Worker()
	runner.Program = "bridge run-job"
	held, err := runner.Register()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Restores().Restore(t.Context(), made.Path); bridge.CodeOf(err) != bridge.Denied || !strings.Contains(err.Error(), "bridge run-job") {
		t.Errorf("a restore beside a runner: %v", err)
	}
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
}

// A merge brings messages back: jobs of this home stay as they are, by name.
func TestSTO_16_AMergeLeavesJobsAsTheyAre(t *testing.T) {
	c := newHome(t)
	keepJobs(t, c, runJob(t, c, "01", job.Running))
	made, err := c.Snapshots().BackupMessages(t.Context(), func(ctx context.Context) error { return ctx.Err() })
	if err != nil {
		t.Fatal(err)
	}
	keepJobs(t, c, runJob(t, c, "01", job.Finished), runJob(t, c, "02", job.Finished))
	before := managedBytes(t, c)
	if _, err := c.Restores().Merge(t.Context(), made.Path); err != nil {
		t.Fatal(err)
	}
	for path, text := range managedBytes(t, c) {
		if strings.HasPrefix(path, "jobs") && text != before[path] {
			t.Errorf("%s changed", path)
		}
	}
}

// jobDamages are the ways in which a home's jobs may be damaged or contradict each
// other, each on a home with job 01 running and 02 finished, and what the doctor must
// say, and nothing else.
var jobDamages = []struct {
	name string
	want []string
	do   func(t *testing.T, c Maintenance)
}{
	{"nothing", nil, func(*testing.T, Maintenance) {}},
	{"no name", []string{"error job-damaged jobs.json"}, func(t *testing.T, c Maintenance) {
		spoil(t, c, "jobs.json", func(data []byte) []byte {
			return []byte(strings.Replace(string(data), `"jobs":[`, `"jobs":[{"status":"done"},`, 1))
		})
	}},
	{"twice", []string{"error job-damaged jobs.json"}, func(t *testing.T, c Maintenance) {
		keepJobs(t, c, jobsOf(t, c)[jobName("01")], jobsOf(t, c)[jobName("02")], jobsOf(t, c)[jobName("02")])
	}},
	{"spec", []string{"error job-damaged jobs/02/spec.json"}, func(t *testing.T, c Maintenance) {
		spoil(t, c, "jobs/"+jobName("02")+"/spec.json", func(data []byte) []byte { return []byte(strings.Replace(string(data), `"read"`, `"all"`, 1)) })
	}},
	{"torn spec", []string{"error json-damaged jobs/02/spec.json"}, func(t *testing.T, c Maintenance) { write(t, c.Home.Dir(), "jobs/"+jobName("02")+"/spec.json", `{"job`) }},
	{"state", []string{"error job-damaged jobs/02/state.json"}, func(t *testing.T, c Maintenance) {
		write(t, c.Home.Dir(), "jobs/"+jobName("02")+"/state.json", `{"job": "another", "run": 1}`)
	}},
	{"orders", []string{"error job-damaged jobs/02/orders.json"}, func(t *testing.T, c Maintenance) {
		write(t, c.Home.Dir(), "jobs/"+jobName("02")+"/orders.json", `{"run": 1, "orders": {"a": 1}}`)
	}},
	{"journal", []string{"error job-damaged jobs/02/journal.jsonl"}, func(t *testing.T, c Maintenance) {
		write(t, c.Home.Dir(), "jobs/"+jobName("02")+"/journal.jsonl", `{"run":1,"kind":"prompt"}`+"\n{\"run\n{}\n")
	}},
	{"torn journal", nil, func(t *testing.T, c Maintenance) {
		write(t, c.Home.Dir(), "jobs/"+jobName("02")+"/journal.jsonl", `{"run":1,"kind":"prompt"}`+"\n"+`{"run"`)
	}},
	{"envelope", []string{"error job-damaged jobs/02/envelope.json"}, func(t *testing.T, c Maintenance) {
		spoil(t, c, "jobs/"+jobName("02")+"/envelope.json", func(data []byte) []byte { return []byte(strings.Replace(string(data), "the answer", "", 1)) })
	}},
	{"no envelope", []string{"error result-missing jobs/02/envelope.json"}, func(t *testing.T, c Maintenance) { remove(t, c, "jobs/"+jobName("02")+"/envelope.json") }},
	{"no folder", []string{"error result-missing jobs/02"}, func(t *testing.T, c Maintenance) { rename(t, c, "jobs/"+jobName("02"), "archive/jobs/away") }},
	{"another end", []string{"warning job-contradiction jobs/02"}, func(t *testing.T, c Maintenance) {
		entry := jobsOf(t, c)[jobName("02")]
		entry.State, entry.Status = job.Failed, "failed"
		keepJobs(t, c, jobsOf(t, c)[jobName("01")], entry)
	}},
	{"an old registry", []string{"warning job-contradiction jobs/01"}, func(t *testing.T, c Maintenance) {
		spoil(t, c, "jobs/"+jobName("01")+"/state.json", func(data []byte) []byte { return []byte(strings.Replace(string(data), `"run": 1`, `"run": 2`, 1)) })
	}},
	{"not sent", []string{"warning result-unsent jobs/02"}, func(t *testing.T, c Maintenance) {
		entry := jobsOf(t, c)[jobName("02")]
		entry.ResultSent = false
		keepJobs(t, c, jobsOf(t, c)[jobName("01")], entry)
	}},
	{"no log", []string{"warning run-log-missing runs"}, func(t *testing.T, c Maintenance) { remove(t, c, "runs/"+jobName("02")+".log") }},
	{"nobody's folder", []string{"warning job-unknown jobs/03", "warning job-unknown runs/03.log"}, func(t *testing.T, c Maintenance) { runJob(t, c, "03", job.Finished) }},
	{"nobody's question", []string{"warning job-unknown approvals/q.json"}, func(t *testing.T, c Maintenance) {
		write(t, c.Home.Dir(), "approvals/q.json", `{"id": "q", "job": "`+jobName("03")+`", "state": "applied"}`)
	}},
	{"an archived job's question", nil, func(t *testing.T, c Maintenance) {
		write(t, c.Home.Dir(), "archive/jobs/"+jobName("03")+".json", `{"name": "`+jobName("03")+`"}`)
		write(t, c.Home.Dir(), "approvals/q.json", `{"id": "q", "job": "`+jobName("03")+`", "state": "applied"}`)
	}},
	{"a left question", []string{"warning approval-left approvals/q.json"}, func(t *testing.T, c Maintenance) {
		write(t, c.Home.Dir(), "approvals/q.json", `{"id": "q", "job": "`+jobName("02")+`", "run": 1, "state": "asked"}`)
	}},
	{"an open question", nil, func(t *testing.T, c Maintenance) {
		write(t, c.Home.Dir(), "approvals/q.json", `{"id": "q", "job": "`+jobName("01")+`", "run": 1, "state": "asked"}`)
	}},
	{"nobody's worktree", []string{"warning job-unknown worktrees/repository-03"}, func(t *testing.T, c Maintenance) {
		write(t, c.Home.Dir(), "worktrees/repository-"+jobName("03")+"/.x.json.tmp", "the repository's")
		write(t, c.Home.Dir(), "worktrees/repository-"+jobName("01")+"/x", "")
	}},
	{"a worktree that is gone", []string{"warning worktree-missing jobs.json"}, func(t *testing.T, c Maintenance) {
		entry := jobsOf(t, c)[jobName("02")]
		entry.Worktree = &job.Worktree{Path: c.Home.Dir() + "/worktrees/gone", Branch: "bridge/x", RepoRoot: "/repository"}
		keepJobs(t, c, jobsOf(t, c)[jobName("01")], entry)
	}},
	{"a held lock", []string{"warning registry-lock-left jobs.json.lock"}, func(t *testing.T, c Maintenance) { write(t, c.Home.Dir(), "jobs.json.lock", "") }},
	{"JOB-04 a large result", []string{"warning result-manual jobs/02/envelope.json"}, func(t *testing.T, c Maintenance) {
		grow(t, c, "jobs/"+jobName("02")+"/envelope.json", 32<<20+1)
	}},
	{"JOB-04 a result of the largest size that is read", []string{"error json-damaged jobs/02/envelope.json"}, func(t *testing.T, c Maintenance) {
		grow(t, c, "jobs/"+jobName("02")+"/envelope.json", 32<<20) // of zeros at its end
	}},
	{"JOB-04 a very large receipt", []string{"warning result-manual pending-job-writes/v1/0b5f/receipt.json"}, func(t *testing.T, c Maintenance) {
		grow(t, c, "pending-job-writes/v1/0b5f/receipt.json", 65<<20)
	}},
}

// grow gives a file a size, by zeros that take no room on the disk.
func grow(t *testing.T, c Maintenance, name string, size int64) {
	t.Helper()
	if inventory.IsMissing(inventory.JoinHome(c.Home.Dir(), name)) {
		write(t, c.Home.Dir(), name, "")
	}
	if err := os.Truncate(inventory.JoinHome(c.Home.Dir(), name), size); err != nil {
		t.Fatal(err)
	}
}

func TestSTO_01_TheDoctorKnowsJobs(t *testing.T) {
	for _, tt := range jobDamages {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newHome(t)
			keepJobs(t, c, runJob(t, c, "01", job.Running), runJob(t, c, "02", job.Finished))
			tt.do(t, c)
			before := listing(t, c.Home.Dir())
			c.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
			got := []string{}
			for _, f := range report(t, c).Findings {
				got = append(got, strings.ReplaceAll(fmt.Sprint(f.Severity, " ", f.Code, " ", f.Path), "codex-job-000000", ""))
				if f.Fixable || !strings.HasPrefix(f.Path, "runs") && strings.Contains(f.Detail, "  ") {
					t.Errorf("the finding %+v", f)
				}
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, listing(t, c.Home.Dir())); diff != "" {
				t.Errorf("the look changed the home:\n%s", diff)
			}
		})
	}
}

// What an agent makes in its worktree or among its temporary files is no matter of
// the doctor's.
func TestSTO_01_WhatAgentsMakeIsPassedOver(t *testing.T) {
	c := newHome(t)
	keepJobs(t, c, runJob(t, c, "01", job.Running))
	for _, folder := range []string{"worktrees/repository-" + jobName("01"), "jobs/" + jobName("01") + "/tmp"} {
		for _, name := range []string{".x.json.bridge-tmp-ABCDEF", "x.json.tmp", "jobs.json", "\xff.json"} {
			write(t, c.Home.Dir(), folder+"/"+name, "{")
		}
		if err := os.Symlink("/nowhere", inventory.JoinHome(c.Home.Dir(), folder+"/link")); err != nil {
			t.Fatal(err)
		}
	}
	if r := report(t, c); len(r.Findings) > 0 {
		t.Errorf("findings = %+v", r.Findings)
	}
	made := mustBackup(t, c)
	if result, err := c.Restores().Test(t.Context(), made.Path); err != nil || !result.OK {
		t.Errorf("drill: %+v, %v", result, err)
	}
}

func TestJOB_04_ALargeResultIsInASnapshotAsItIs(t *testing.T) {
	c := newHome(t)
	keepJobs(t, c, runJob(t, c, "01", job.Finished))
	name := "jobs/" + jobName("01") + "/envelope.json"
	grow(t, c, name, 65<<20)
	made := mustBackup(t, c)
	remove(t, c, name)
	if _, err := c.Restores().Restore(t.Context(), made.Path); err != nil {
		t.Fatal(err)
	}
	if size := inventory.SizeOf(inventory.JoinHome(c.Home.Dir(), name)); size != 65<<20 {
		t.Errorf("it came back with %d bytes", size)
	}
}
