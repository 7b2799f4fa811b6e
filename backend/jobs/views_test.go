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
	"bridge/backend/core/job/runs"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
)

// shelve puts an ended job into the archive, and says that this was a while ago.
func (b *bench) shelve(name string, ended int64, ago time.Duration) {
	b.t.Helper()
	folder := filepath.Dir(b.jobs.files.Entry("x"))
	data, err := json.Marshal(job.Job{Name: name, Agent: bridge.Codex, State: job.Finished, Owner: "boss", Prompt: "x", FinishedAt: job.Millis(ended)})
	if err == nil {
		err = os.MkdirAll(folder, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name+".json"), data, 0o600)
	}
	if err == nil {
		at := time.Now().Add(-ago)
		err = os.Chtimes(folder, at, at)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func names(views []api.JobView) (names []string) {
	for _, view := range views {
		names = append(names, view.Job[len("codex-job-"):])
	}
	return names
}

func TestJOB_02_RecentJobsAreThoseThatGoOnAndThoseThatEndedLastArchivedOrNot(t *testing.T) {
	b := newBench(t)
	b.allow(func(o *config.Jobs) { o.MaxJobs = 2 })
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"x"}`)
	r := b.started()
	r.connect(api.RunnerReport{})
	r.finish("There are 12.")
	s.mustSpawn("02", `{"prompt":"x"}`)
	b.started().connect(api.RunnerReport{})
	want := func(what string, most int, want ...string) {
		t.Helper()
		if got := names(b.jobs.Recent(most)); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	want("without an archive", 5, "00000002", "00000001")
	b.shelve("codex-job-0000000a", 10, time.Hour)
	b.shelve("codex-job-0000000b", 20, time.Hour)
	want("with an archive", 5, "00000002", "00000001", "0000000b", "0000000a")
	want("bounded", 2, "00000002", "00000001", "0000000b")
	want("unchanged", 2, "00000002", "00000001", "0000000b")
	b.shelve("codex-job-0000000c", 30, time.Minute)
	want("with another one", 5, "00000002", "00000001", "0000000c", "0000000b", "0000000a")
	if err := os.Remove(b.jobs.files.Entry("codex-job-0000000c")); err != nil {
		t.Fatal(err)
	}
	want("with one less", 5, "00000002", "00000001", "0000000b", "0000000a")
	b.shelve("codex-job-00000001", 40, time.Second)
	want("while one moves", 5, "00000002", "00000001", "0000000b", "0000000a")
}

func TestJOB_02_ADetailHasWhatWasAskedAndWhatCameOfIt(t *testing.T) {
	b := newBench(t)
	s := b.join("boss", "s1")
	s.mustSpawn("01", `{"prompt":"Count."}`)
	r := b.started()
	r.connect(api.RunnerReport{})
	if got, err := b.jobs.Detail(first); err != nil || got.Prompt != "Count." || got.Result != nil || got.Problem != "" {
		t.Errorf("while it goes on it is %+v, %v", got, err)
	}
	r.finish("There are 12.")
	if got, err := b.jobs.Detail(first); err != nil || got.Result == nil || got.Result.Result != "There are 12." || got.Status != job.Finished || got.Ended != job.EndAnswer {
		t.Errorf("ended it is %+v, %v", got, err)
	}
	if err := os.Truncate(filepath.Join(r.folder, "envelope.json"), 3); err != nil {
		t.Fatal(err)
	}
	if got, err := b.jobs.Detail(first); err != nil || got.Result != nil || got.Problem == "" {
		t.Errorf("damaged it is %+v, %v", got, err)
	}
	if err := os.Truncate(filepath.Join(r.folder, "envelope.json"), runs.MaxEnvelopeBytes+1); err != nil {
		t.Fatal(err)
	}
	got, err := b.jobs.Detail(first)
	if err != nil || got.Result != nil {
		t.Errorf("too large it is %+v, %v", got, err)
	}
	wantText(t, got.Problem, "32 MiB", filepath.Join(r.folder, "envelope.json"))
	_, err = b.jobs.Detail("codex-job-ffffffff")
	wantCode(t, "no such job", err, bridge.NotFound)
}

func TestJOB_05_AJobInTheArchiveIsReadOnly(t *testing.T) {
	b := newBench(t)
	b.shelve("codex-job-0000000a", 10, time.Hour)
	if got, err := b.jobs.Detail("codex-job-0000000a"); err != nil || got.Status != job.Finished {
		t.Errorf("it is %+v, %v", got, err)
	}
	_, err := b.jobs.Say("m1", job.Control{Job: "codex-job-0000000a", Message: "Go on."})
	wantCode(t, "words", err, bridge.Conflict)
	_, err = b.jobs.Cancel("codex-job-0000000a")
	wantCode(t, "an end", err, bridge.Conflict)
	_, err = b.jobs.Cancel("codex-job-ffffffff")
	wantCode(t, "an end of nothing", err, bridge.NotFound)
}

func TestJOB_02_WhoOnlyReadsWaitsForNobodyWhoWrites(t *testing.T) {
	b := newBench(t)
	r := asking(b, b.join("boss", "s1"))
	r.ask(job.ApprovalAsked)
	b.jobs.mu.Lock()
	defer b.jobs.mu.Unlock()
	if got := b.jobs.Recent(5); len(got) != 1 || got[0].Step != "reads" {
		t.Errorf("it is shown as %+v", got)
	}
	if got := b.jobs.Approvals(); len(got) != 1 {
		t.Errorf("the questions are %+v", got)
	}
}

func TestJOB_05_AModelForTheNextRunIsNotTakenBackByTheRunThatGoesOn(t *testing.T) {
	b := newBench(t)
	b.join("boss", "s1").mustSpawn("01", `{"prompt":"x"}`)
	r := b.started()
	r.connect(api.RunnerReport{})
	r.work()
	if _, err := b.jobs.Say("m1", job.Control{Job: first, Settings: job.Settings{Model: "gpt-next", Title: "Other"}}); err != nil {
		t.Fatal(err)
	}
	r.work()
	if got, _ := b.jobs.View(first); got.Model != "gpt" || got.Title != "Other" {
		t.Errorf("while it works with gpt it is shown as %+v", got)
	}
	r.finish("Done.")
	if _, err := b.jobs.Say("m2", job.Control{Job: first, Message: "More."}); err != nil {
		t.Fatal(err)
	}
	if next := b.started(); next.spec.Run != 2 || next.spec.Model != "gpt-next" {
		t.Errorf("its next run is asked for %+v", next.spec)
	}
}
