//go:build amd64 || arm64

package faults

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/testing/testkit"
)

// oldJob is a job that goes to the archive as soon as a broker looks.
const oldJob = "codex-job-0000000a"

// places are where each part of the old job may be, from its home to the archive, and
// what it holds.
var places = map[string][]string{
	"the log":        {"runs/" + oldJob + ".log", "archive/runs/" + oldJob + ".log"},
	"the transcript": {"runs/" + oldJob + ".jsonl", "archive/runs/" + oldJob + ".jsonl"},
	"its question":   {"approvals/q1.json", "jobs/" + oldJob + "/approval-q1.json", "archive/jobs/" + oldJob + "/approval-q1.json"},
	"its result":     {"jobs/" + oldJob + "/envelope.json", "archive/jobs/" + oldJob + "/envelope.json"},
	"its own file":   {"jobs/" + oldJob + "/tmp/own", "archive/jobs/" + oldJob + "/tmp/own"},
}

// homeWithOldJob is a home in which a broker served, with a job that ended long ago.
func homeWithOldJob(t *testing.T) string {
	t.Helper()
	home := servedHome(t)
	ended := time.Now().Add(-2 * time.Hour)
	entry := job.Job{
		Name: oldJob, Agent: bridge.Codex, Prompt: "words of the prompt", Owner: "alice", State: job.Finished, Run: 1, ResultSent: true,
		FirstStartedAt: job.Millis(ended.UnixMilli()), FinishedAt: job.Millis(ended.UnixMilli()), Workdir: home,
	}
	registry, err := job.File{Jobs: []job.Job{entry}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := runs.NewEnvelope(oldJob, 1, job.Outcome{State: job.Finished, Ended: job.EndAnswer}, "the answer", runs.Evidence{}, ended).Encode()
	if err != nil {
		t.Fatal(err)
	}
	said, err := runs.Said{At: entry.FinishedAt, Run: 1, Kind: runs.SaidText, Text: "thesewordsaresaidonce"}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"runs", "approvals", "jobs/" + oldJob + "/tmp"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	put(t, home, "jobs.json", string(registry))
	put(t, home, places["the log"][0], "a log\n")
	put(t, home, places["the transcript"][0], string(said))
	put(t, home, places["its question"][0], `{"id":"q1","job":"`+oldJob+`","run":1,"by":"alice","what":"Bash","detail":"ls","state":"applied","askedAt":1}`)
	put(t, home, places["its result"][0], string(envelope))
	put(t, home, places["its own file"][0], "own")
	return home
}

// ofJobs reports whether a file is one that jobs are kept in.
func ofJobs(home, path string) bool {
	name := strings.TrimPrefix(path, home+"/")
	for _, prefix := range []string{"jobs", ".jobs.json", "archive", "runs", "approvals", "bridge.db", "history.db"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return path == home
}

func entryIn(t *testing.T, home, path string) bool {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(home, path))
	if err != nil {
		return false
	}
	if !json.Valid(data) {
		t.Errorf("%s is torn", path)
	}
	return strings.Contains(string(data), "words of the prompt")
}

// archived reports whether all of the old job is in the archive, and nothing elsewhere.
func archived(home string) bool {
	for _, at := range places {
		for i, path := range at {
			if _, err := os.Lstat(filepath.Join(home, path)); (err == nil) != (i == len(at)-1) {
				return false
			}
		}
	}
	data, err := os.ReadFile(filepath.Join(home, "jobs.json"))
	return err == nil && !strings.Contains(string(data), oldJob)
}

// nothingIsGone: each part is somewhere, whole.
func nothingIsGone(t *testing.T, what, made, home string) {
	t.Helper()
	if !entryIn(t, home, "jobs.json") && !entryIn(t, home, "archive/jobs/"+oldJob+".json") {
		t.Errorf("%s: the entry is in neither place", what)
	}
	for part, at := range places {
		want, err := os.ReadFile(filepath.Join(made, at[0]))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, path := range at {
			if data, err := os.ReadFile(filepath.Join(home, path)); err == nil {
				found++
				if string(data) != string(want) {
					t.Errorf("%s: %s of %d bytes has %d", what, path, len(want), len(data))
				}
			}
		}
		if found == 0 {
			t.Errorf("%s: %s is in neither place", what, part)
		}
	}
}

// archiveUnder has a broker archive while judge says what becomes of its calls, and
// returns when all is in the archive, or the broker has ended. Meanwhile it calls each,
// again and again.
func archiveUnder(t *testing.T, home string, judge func(*traced, call) verdict, each func()) {
	t.Helper()
	output := &ready{said: make(chan struct{})}
	var program *traced
	begun := make(chan struct{})
	program = start(t, home, func(c call) verdict {
		<-begun
		if !ofJobs(home, c.path) {
			return verdict{}
		}
		return judge(program, c)
	}, output, output, "serve", "--port", "0", "--home", home)
	close(begun)
	deadline, tick := time.After(testkit.Patience), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !archived(home) {
		select {
		case <-tick.C:
			each()
			continue
		case <-program.ended:
		case <-deadline:
			t.Fatalf("the archive is not made: %s", &output.text)
		}
		break
	}
	program.signal(unix.SIGTERM)
	select {
	case <-program.ended:
	case <-time.After(testkit.Patience):
		t.Fatal("it does not end")
	}
}

func nothing() {}

// thenAll has the next broker bring all into the archive, with what was said once in
// the history.
func thenAll(t *testing.T, what, made, home string) {
	t.Helper()
	archiveUnder(t, home, func(*traced, call) verdict { return verdict{} }, nothing)
	nothingIsGone(t, what+", then again", made, home)
	if !entryIn(t, home, "archive/jobs/"+oldJob+".json") {
		t.Errorf("%s: the archive has no entry", what)
	}
	if n := rowsOf(t, home, "bridge.db", "conversation_records"); n != 1 {
		t.Errorf("%s: what was said is in the history %d times", what, n)
	}
	sound(t, home)
}

// TestSTO_07_ABrokerThatDiesInTheArchiveOfAJob kills it before each write and each sync
// of what jobs keep: at every step there may be two of a thing, and never none.
func TestSTO_07_ABrokerThatDiesInTheArchiveOfAJob(t *testing.T) {
	t.Setenv("BRIDGE_ARCHIVE_AGE_MS", "3600000")
	made := homeWithOldJob(t)
	every, died := stride(t, 11), 0
	touched := map[string]bool{}
	for n := 1; ; n += every {
		home, seen, killed := copyOf(t, made), 0, ""
		archiveUnder(t, home, func(p *traced, c call) verdict {
			if seen++; seen == n {
				killed = c.path
				p.signal(unix.SIGKILL)
			}
			return verdict{}
		}, nothing)
		if killed == "" {
			break
		}
		died++
		what := "dead before " + plainName(home, killed)
		touched[plainName(home, killed)] = true
		nothingIsGone(t, what, made, home)
		thenAll(t, what, made, home)
	}
	t.Logf("it died %d times, before %v", died, touched)
	if died < 2 {
		t.Error("it never died")
	}
}

// TestSTO_07_FaultsInTheArchiveOfAJob lets each of these calls fail instead.
func TestSTO_07_FaultsInTheArchiveOfAJob(t *testing.T) {
	t.Setenv("BRIDGE_ARCHIVE_AGE_MS", "3600000")
	made := homeWithOldJob(t)
	every := stride(t, 41)
	for i, p := range plans() {
		t.Run(p.name, func(t *testing.T) {
			ran := 0
			for n := 1 + i%every; ; n += every {
				home := copyOf(t, made)
				p.arm(n)
				failed := ""
				archiveUnder(t, home, func(_ *traced, c call) verdict {
					v := p.judge(c)
					if v != (verdict{}) && failed == "" {
						failed = c.path
					}
					return v
				}, func() {
					if p.met() > 0 {
						p.arm(0) // the disk does again, and the same broker goes on
					}
				})
				if failed == "" {
					break
				}
				ran++
				what := p.name + " at " + plainName(home, failed)
				nothingIsGone(t, what, made, home)
				thenAll(t, what, made, home)
			}
			t.Logf("%d times", ran)
		})
	}
}
