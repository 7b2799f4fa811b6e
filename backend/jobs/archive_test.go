package jobs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// left writes what a job leaves, and is its entry.
func (b *bench) left(i int, state job.State, finished time.Time) job.Job {
	b.t.Helper()
	name := fmt.Sprintf("codex-job-%08x", i)
	for path, text := range map[string]string{
		"jobs/" + name + "/spec.json": "{}", "jobs/" + name + "/tmp/x": "x", "runs/" + name + ".log": "log of " + name, "runs/" + name + ".jsonl": "",
		"approvals/q" + name + ".json": `{"id": "q` + name + `", "job": "` + name + `", "run": 1, "state": "applied"}`,
	} {
		path = filepath.Join(b.home.Dir(), path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			b.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
	entry := job.Job{Name: name, Agent: bridge.Codex, Prompt: "x", Owner: "boss", State: state, Run: 1, ResultSent: true, Line: int64(i)}
	if !finished.IsZero() {
		entry.FinishedAt = job.Millis(finished.UnixMilli())
	}
	return entry
}

func (b *bench) register(jobs ...job.Job) {
	b.t.Helper()
	data, err := job.File{Jobs: jobs}.Encode()
	if err == nil {
		err = os.WriteFile(filepath.Join(b.home.Dir(), "jobs.json"), data, 0o600)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) has(path string) bool {
	_, err := os.Lstat(filepath.Join(b.home.Dir(), path))
	return err == nil
}

func TestSTO_07_OldJobsGoToTheArchiveWithAllThatIsTheirs(t *testing.T) {
	b := prepared(t)
	b.archiveAge = time.Hour
	now := time.Now()
	old, young := now.Add(-61*time.Minute), now.Add(-59*time.Minute)
	interrupted, running := b.left(3, job.Interrupted, old), b.left(5, job.Running, time.Time{})
	running.Host = &job.Host{PID: os.Getpid()}
	b.register(b.left(1, job.Finished, old), b.left(2, job.Failed, young), interrupted, running, b.left(6, job.Finished, time.Time{}))
	b.up()
	moved := fmt.Sprintf("codex-job-%08x", 1)
	eventually(t, "the old job to be in the archive", func() bool {
		return b.has("archive/jobs/"+moved+"/spec.json") && b.has("archive/runs/"+moved+".jsonl")
	})
	for _, path := range []string{"archive/jobs/" + moved + ".json", "archive/jobs/" + moved + "/approval-q" + moved + ".json", "archive/jobs/" + moved + "/tmp/x", "archive/runs/" + moved + ".log"} {
		if !b.has(path) {
			t.Errorf("%s is not there", path)
		}
	}
	for _, path := range []string{"jobs/" + moved, "runs/" + moved + ".log", "approvals/q" + moved + ".json"} {
		if b.has(path) {
			t.Errorf("%s is still there", path)
		}
	}
	if log, err := b.jobs.ReadLog(moved, 4); err != nil || log.Text != "of "+moved {
		t.Errorf("its log reads as %+v, %v", log, err)
	}
	for _, i := range []int{2, 3, 5, 6} {
		name := fmt.Sprintf("codex-job-%08x", i)
		if b.entry(name) == nil || !b.has("jobs/"+name+"/spec.json") || !b.has("runs/"+name+".log") || b.has("archive/jobs/"+name+".json") {
			t.Errorf("%s was moved", name)
		}
	}
}

func TestSTO_07_AnArchivingThatWasInterruptedGoesOn(t *testing.T) {
	b := prepared(t)
	entry := b.left(1, job.Finished, time.Now())
	text, err := entry.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{"archive/jobs/" + entry.Name + ".json": string(text), "archive/runs/" + entry.Name + ".log": "log of " + entry.Name} {
		path = filepath.Join(b.home.Dir(), path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.register()
	b.up()
	eventually(t, "the rest to follow", func() bool { return !b.has("jobs/" + entry.Name) })
	if !b.has("archive/runs/"+entry.Name+".jsonl") || b.has("runs/"+entry.Name+".log") || !b.has("archive/jobs/"+entry.Name+"/spec.json") {
		t.Error("something is left")
	}
}

func TestSTO_07_AnotherJobOfTheSameNameStopsIt(t *testing.T) {
	b := prepared(t)
	b.archiveAge = time.Hour
	entry, next := b.left(1, job.Finished, time.Now().Add(-3*time.Hour)), b.left(2, job.Finished, time.Now().Add(-2*time.Hour))
	other := entry
	other.Prompt = "another"
	text, err := other.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(b.home.ArchiveDir(), "jobs", entry.Name+".json")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	b.register(entry, next)
	b.up()
	eventually(t, "the next one to go", func() bool { return b.has("archive/jobs/" + next.Name + "/spec.json") })
	if now, err := os.ReadFile(path); err != nil || string(now) != string(text) || b.entry(entry.Name) == nil || !b.has("jobs/"+entry.Name) {
		t.Errorf("one of the two is gone: %s, %v", now, err)
	}
}

// A thousand jobs leave 200 folders, logs and questions in their places.
func TestJOB_09_AThousandJobsLeaveNoGrowth(t *testing.T) {
	b := prepared(t)
	var jobs []job.Job
	for i := range 1000 {
		jobs = append(jobs, b.left(i, job.Finished, time.Now().Add(time.Duration(i)*time.Second-time.Hour)))
	}
	b.register(jobs...)
	b.up()
	for folder, most := range map[string]int{"jobs": 200, "approvals": 200, "runs": 400} {
		eventually(t, folder+" to be bounded", func() bool {
			entries, err := os.ReadDir(filepath.Join(b.home.Dir(), folder))
			return err == nil && len(entries) == most
		})
	}
	if len(b.jobs.Views()) != 200 {
		t.Errorf("the registry has %d", len(b.jobs.Views()))
	}
}
