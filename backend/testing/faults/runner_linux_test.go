//go:build amd64 || arm64

package faults

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/doors/worker"
	"bridge/backend/testing/testkit"
)

const runnersJob = "claude-job-0000000b"

// homeWithJob is a home in which a broker served and died as it started a job: its
// agent does something, once, and answers.
func homeWithJob(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	script := "#!/bin/sh\nexec '" + self + "' standin \"$@\"\n"
	if err := testkit.WriteProgram(filepath.Join(bin, "claude"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	home := servedHome(t)
	put(t, home, "config.json", `{"version": 1, "jobs": {"enabled": true, "allowToolLevelOnly": true}}`)
	return home
}

// giveJob puts the job into the home, with a folder to work in.
func giveJob(t *testing.T, home string) (work string) {
	t.Helper()
	work = t.TempDir()
	prompt := "do echo once >>'" + work + "/done'\nsay the answer"
	spec := runs.SpecFile{
		Job: runnersJob, Run: 1, Kind: bridge.Claude, PromptID: "0a1b2c3d-0000-4000-8000-000000000001", Prompt: prompt, Folder: work,
		Access: job.AccessEdit, TimeoutSec: 86_400, Supervisor: "alice", Depth: 1, Token: "secret" + strings.ReplaceAll(home, "/", "-"), Restrictions: runs.Restrictions{ToolOnly: true},
	}
	text, err := spec.Encode()
	if err != nil {
		t.Fatal(err)
	}
	entry := job.Job{
		Name: runnersJob, Agent: bridge.Claude, Prompt: prompt, Owner: "alice", Supervisor: "nobody", State: job.Starting, Run: 1, Access: job.AccessEdit,
		Host: &job.Host{PID: os.Getpid(), Identity: "ended"}, Workdir: work,
	}
	registry, err := job.File{Jobs: []job.Job{entry}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(home, "jobs", runnersJob), 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, home, "jobs/"+runnersJob+"/spec.json", string(text))
	put(t, home, "jobs.json", string(registry))
	return work
}

// few is how many calls in a row fail before the disk does again.
const few = 6

// TestJOB_03_FaultsUnderARunner lets each write and each sync of a runner fail. The
// agent does its work once at most, what it answered is in the result, and the result
// comes once; where the run failed it says so in one sentence.
func TestJOB_03_FaultsUnderARunner(t *testing.T) {
	made := homeWithJob(t)
	every := stride(t, 31)
	for i, p := range plans() {
		t.Run(p.name, func(t *testing.T) {
			ran, answers := 0, 0
			for n := 1 + i%every; ; n += every {
				met, answered := runUnder(t, p, n, copyOf(t, made))
				if !met {
					break
				}
				ran++
				if answered {
					answers++
				}
			}
			t.Logf("%d times, %d with an answer", ran, answers)
			if ran == 0 {
				t.Error("never")
			}
		})
	}
}

func runUnder(t *testing.T, p *plan, n int, home string) (met, answered bool) {
	t.Helper()
	work := giveJob(t, home)
	folder := filepath.Join(home, "jobs", runnersJob)
	failed := []string{}
	p.arm(n)
	output := &ready{said: make(chan struct{})}
	runner := startOf(t, filepath.Join(filepath.Dir(program), worker.RunnerName), home, func(c call) verdict {
		if !ofRunner(home, c.path) {
			return verdict{}
		}
		v := p.judge(c)
		if v != (verdict{}) {
			if failed = append(failed, plainName(home, c.path)); len(failed) == few {
				p.arm(0) // the disk does again
			}
		}
		return v
	}, output, output, "run-job", folder, "--home", home)
	deadline, tick := time.After(testkit.Patience), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for told := false; ; {
		select {
		case <-tick.C:
			if envelope, err := os.ReadFile(filepath.Join(folder, "envelope.json")); err == nil && len(envelope) > 0 && !told {
				told = true
				runner.signal(unix.SIGTERM) // nobody is there to take it
			}
			continue
		case <-runner.ended:
		case <-deadline:
			t.Fatalf("%s at %d (%v): it hangs: %s", p.name, n, failed, &output.text)
		}
		break
	}
	p.arm(0)
	what := p.name + " at " + strings.Join(failed, ", ")
	if code, text := runner.status.ExitStatus(), output.text.String(); code != 0 && (code != 1 || strings.Count(text, "\n") != 1) {
		t.Errorf("%s: exit %d, %q", what, code, text)
	}
	return len(failed) > 0, checkRun(t, what, home, work)
}

// ofRunner reports whether a file is one that a runner keeps of its job.
func ofRunner(home, path string) bool {
	for _, folder := range []string{"/jobs", "/runs", "/approvals"} {
		if strings.HasPrefix(path, home+folder) {
			return true
		}
	}
	return false
}

// checkRun has the next broker take up what the runner left.
func checkRun(t *testing.T, what, home, work string) (answered bool) {
	t.Helper()
	id := runs.ResultID(runnersJob, 1)
	for range 2 {
		b := serve(t, home, func(call) verdict { return verdict{} })
		deadline, tick := time.After(testkit.Patience), time.NewTicker(5*time.Millisecond)
		for closed := false; !closed; {
			select {
			case <-tick.C:
				registry, err := os.ReadFile(filepath.Join(home, "jobs.json"))
				closed = err == nil && strings.Contains(string(registry), `"delivered":true`)
			case <-deadline:
				t.Fatalf("%s: the books are not closed", what)
			}
		}
		tick.Stop()
		b.terminate()
		if times := stored(t, home)[id]; times != 1 {
			t.Errorf("%s: its result came %d times", what, times)
		}
	}
	data, err := os.ReadFile(filepath.Join(home, "jobs", runnersJob, "envelope.json"))
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := runs.DecodeEnvelope(data, runnersJob)
	if err != nil {
		t.Fatal(err)
	}
	done, err := os.ReadFile(filepath.Join(work, "done"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	times := strings.Count(string(done), "once")
	answered = envelope.State == job.Finished
	if answered && (envelope.Result != "the answer" || times != 1) || !answered && (times != 0 || strings.Contains(envelope.Error, "\n")) {
		t.Errorf("%s: it is %s with %q and error %q, and the agent did its work %d times", what, envelope.State, envelope.Result, envelope.Error, times)
	}
	if said, err := os.ReadFile(filepath.Join(home, "runs", runnersJob+".jsonl")); answered && (err != nil || strings.Count(string(said), `"text":"the answer"`) != 1) {
		t.Errorf("%s: the transcript has %s, %v", what, said, err)
	}
	sound(t, home)
	return answered
}
