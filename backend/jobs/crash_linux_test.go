package jobs

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bridge/backend/core/job"
	"bridge/backend/jobs/gitwork"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/testkit"
)

// noBroker stands where nobody asks and nobody is told anything.
type noBroker struct{ Broker }

func (noBroker) Changed() {}

// testFinish is test-finish HOME JOB ACTION.
func testFinish(folder, name, action string) int {
	home, err := config.ResolveHome(folder, os.Getenv)
	if err != nil {
		panic(err)
	}
	git, err := gitwork.New(os.Environ())
	if err != nil {
		panic(err)
	}
	j, err := Open(Options{Home: home, Broker: noBroker{}, Git: git, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	if _, err := j.Finish(context.Background(), api.JobFinishArgs{Job: name, Action: action}); err != nil {
		println(err.Error())
		return 1
	}
	return 0
}

// deadly puts a git first on the PATH that kills whoever calls it, at the nth call,
// before or after it did its work.
func deadly(t *testing.T, at int, before bool) (path, count string) {
	t.Helper()
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	count = filepath.Join(dir, "count")
	first, then := "", "kill -9 $PPID"
	if before {
		first, then = "kill -9 $PPID; exit 9", ""
	}
	script := fmt.Sprintf("#!/bin/sh\nread n 2>/dev/null <%[1]s || n=0\nn=$((n+1))\necho $n >%[1]s\n[ $n = %[2]d ] && { %[3]s\n}\n%[4]s \"$@\"\ncode=$?\n[ $n = %[2]d ] && { :; %[5]s\n}\nexit $code\n",
		count, at, cmp.Or(first, ":"), real, then)
	if err := testkit.WriteProgram(filepath.Join(dir, "git"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir + ":" + os.Getenv("PATH"), count
}

// A broker that dies at any moment of a finish loses nothing: the next one says what
// became of it, repeats nothing, and the same finish again comes to its end.
func TestJOB_18_ABrokerThatDiesInAFinishLosesNothing(t *testing.T) {
	stride := testkit.Stride(t, 48)
	for _, action := range []gitwork.Action{gitwork.Squash, gitwork.Merge, gitwork.Apply, gitwork.Discard} {
		t.Run("JOB-18 "+string(action), func(t *testing.T) {
			_, calls := dieAndGoOn(t, action, 0, false)
			runs := 0
			for n := calls; n > 0; n-- {
				if back := calls - n; back > 2 && back%stride != 0 { // its last steps always
					continue
				}
				for _, before := range []bool{true, false} {
					if died, _ := dieAndGoOn(t, action, n, before); died {
						runs++
					}
				}
			}
			t.Logf("it died %d times", runs)
			if runs < 6 {
				t.Error("it was to die more often")
			}
		})
	}
}

// dieAndGoOn reports whether the finish died at its nth git, and how many there were.
func dieAndGoOn(t *testing.T, action gitwork.Action, n int, before bool) (died bool, calls int) {
	t.Helper()
	what := fmt.Sprintf("%s, git %d, before it %t", action, n, before)
	y := newYard(t)
	y.write(y.main, "own.log", "ignored, and the owner's\n")
	base := y.run(y.main, "rev-parse", "HEAD")
	y.give("01", y.mend)
	y.down()
	path, count := deadly(t, n, before)
	cmd := exec.Command(os.Args[0], "test-finish", y.home.Dir(), first, string(action))
	cmd.Env = append(os.Environ(), "PATH="+path, y.env[1])
	out, err := cmd.CombinedOutput()
	if err != nil {
		status, isStatus := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if died = isStatus && status.Signal() == syscall.SIGKILL; !died {
			t.Fatalf("%s: %v: %s", what, err, out)
		}
	}
	if _, err := fmt.Sscan(y.read(filepath.Dir(count), "count"), &calls); err != nil {
		t.Fatal(err)
	}
	after := y.run(y.main, "rev-parse", "HEAD")
	status := y.run(y.main, "status", "--porcelain")
	y.up()
	var entry job.Job
	eventually(t, what+": somebody to say what became of it", func() bool {
		entry, _ = y.jobs.get(first)
		return entry.Landing == nil || entry.Landing.State != job.LandingBegun
	})
	y.checkSettled(what, action, entry, base, after, status)
	got, err := y.finish(first, action)
	if err != nil || !got.Done {
		t.Fatalf("%s: finished again it says %+v, %v", what, got, err)
	}
	y.checkFinished(what, action, base)
	y.down()
	return died, calls
}

// checkSettled wants the truth in the book, and the work somewhere.
func (y *yard) checkSettled(what string, action gitwork.Action, entry job.Job, base, after, status string) {
	y.t.Helper()
	if now := y.run(y.main, "rev-parse", "HEAD"); now != after {
		y.t.Errorf("%s: the next broker went on with it by itself", what)
	}
	state := job.LandingFailed
	if entry.Landing != nil {
		state = entry.Landing.State
	}
	dropped := y.run(y.main, "branch", "--list", "bridge/discarded/"+first) != ""
	want := job.LandingFailed
	switch {
	case action == gitwork.Discard && dropped, after != base, action == gitwork.Apply && status != "":
		want = job.LandingDone
	case status != "":
		want = job.LandingStaged
	}
	if state != want {
		y.t.Errorf("%s: the book says %s, want %s (%q, %+v)", what, state, want, status, entry.Landing)
	}
	if status != "" && status != "M  a.txt\nA  new.txt" {
		y.t.Errorf("%s: the checkout is left with %q", what, status)
	}
	branch := "bridge/" + first
	if dropped {
		branch = "bridge/discarded/" + first
	}
	if y.run(y.main, "show", branch+":new.txt") != "not committed" || y.run(y.main, "show", branch+":a.txt") != "one\n2\nthree" {
		y.t.Errorf("%s: %s has not all of the work", what, branch)
	}
}

// checkFinished wants what the finish is for, done once.
func (y *yard) checkFinished(what string, action gitwork.Action, base string) {
	y.t.Helper()
	if y.read(y.main, "own.log") != "ignored, and the owner's\n" {
		y.t.Errorf("%s: the owner's file is gone", what)
	}
	commits := strings.Fields(y.run(y.main, "rev-list", "--first-parent", base+"..HEAD"))
	status := y.run(y.main, "status", "--porcelain")
	switch action {
	case gitwork.Squash, gitwork.Merge:
		if len(commits) != 1 || status != "" || y.read(y.main, "new.txt") != "not committed\n" {
			y.t.Errorf("%s: finished again there are %d commits, and %q", what, len(commits), status)
		}
	case gitwork.Apply:
		if len(commits) != 0 || status != "M  a.txt\nA  new.txt" {
			y.t.Errorf("%s: finished again there are %d commits, and %q", what, len(commits), status)
		}
	case gitwork.Discard, gitwork.Keep:
		if len(commits) != 0 || status != "" || y.run(y.main, "show", "bridge/discarded/"+first+":new.txt") != "not committed" {
			y.t.Errorf("%s: finished again there are %d commits, and %q", what, len(commits), status)
		}
	}
}
