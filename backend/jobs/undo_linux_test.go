package jobs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/jobs/gitwork"
)

// A process that is killed at any of the last gits of an undo leaves the landing, or its undo.
func TestPGE_11_ABrokerThatDiesInAnUndoLosesNothing(t *testing.T) {
	y := newYard(t)
	y.give("01", y.mend)
	if _, err := y.finish(first, gitwork.Squash); err != nil {
		t.Fatal(err)
	}
	y.reclaimed(first)
	landed := y.run(y.main, "rev-parse", "HEAD")
	calls := y.dieInUndo(t, 0, false)
	if tree := y.run(y.main, "diff", "--name-only", landed+"~1"); tree != "" {
		t.Fatalf("the undo leaves %q", tree)
	}
	for back := range 3 {
		for _, before := range []bool{true, false} {
			what := fmt.Sprintf("%d gits before the end, before it %t", back, before)
			if got, err := y.finish(first, gitwork.Squash); err != nil || !got.Done {
				t.Fatalf("%s: landed again: %+v, %v", what, got, err)
			}
			head := y.run(y.main, "rev-parse", "HEAD")
			y.dieInUndo(t, calls-back, before)
			entry, _ := y.jobs.get(first)
			status, moved := y.run(y.main, "status", "--porcelain"), y.run(y.main, "rev-parse", "HEAD") != head
			want := job.LandingFailed
			switch {
			case moved:
				want = job.LandingDone
			case status != "":
				want = job.LandingStaged
			}
			if entry.Landing.State != want || (y.landed() == nil) != moved || status != "" && status != "M  a.txt\nD  new.txt" {
				t.Errorf("%s: the book has %+v, the checkout %q", what, entry.Landing.Finish, status)
			}
			if _, err := y.finish(first, gitwork.Undo); moved && bridge.CodeOf(err) != bridge.Conflict || !moved && err != nil {
				t.Errorf("%s: the undo again: %v", what, err)
			}
			if left := y.run(y.main, "status", "--porcelain") + y.run(y.main, "diff", "--name-only", landed+"~1"); left != "" {
				t.Errorf("%s: it leaves %q", what, left)
			}
		}
	}
}

// dieInUndo has another process undo the landing and die at its nth git, and waits for the next
// broker to say what became of it. It returns how many gits there were.
func (y *yard) dieInUndo(t *testing.T, n int, before bool) (calls int) {
	t.Helper()
	y.down()
	path, count := deadly(t, n, before)
	cmd := exec.Command(os.Args[0], "test-finish", y.home.Dir(), first, "undo")
	cmd.Env = append(os.Environ(), "PATH="+path, y.env[1])
	out, err := cmd.CombinedOutput()
	if status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus); (err != nil) != (n > 0) || err != nil && status.Signal() != syscall.SIGKILL {
		t.Fatalf("at git %d: %v: %s", n, err, out)
	}
	if _, err := fmt.Sscan(y.read(filepath.Dir(count), "count"), &calls); err != nil {
		t.Fatal(err)
	}
	y.up()
	eventually(t, "somebody to say what became of it", func() bool {
		entry, _ := y.jobs.get(first)
		return entry.Landing.State != job.LandingBegun
	})
	return calls
}

func TestPGE_11_AFullDiskInAnUndoChangesNothing(t *testing.T) {
	const page = 4 << 10
	big := noise(300 << 10)
	dir := t.TempDir()
	fill, free := mounted(t, dir, 8<<20)
	y := yardIn(t, dir)
	y.write(y.main, "big.txt", big)
	y.run(y.main, "add", "-A")
	y.run(y.main, "commit", "-qm", "big")
	y.give("01", func(tree string) { y.write(tree, "big.txt", "small\n"); y.write(tree, "a.txt", "mine\n") })
	if _, err := y.finish(first, gitwork.Squash); err != nil {
		t.Fatal(err)
	}
	y.reclaimed(first)
	head := y.run(y.main, "rev-parse", "HEAD")
	for _, left := range []int64{0, 10 * page, 60 * page} {
		fill(left)
		got, err := y.finish(first, gitwork.Undo)
		free()
		if bridge.CodeOf(err) != bridge.Storage || got.Done || strings.Contains(err.Error(), "\n") {
			t.Errorf("with %d KiB left: %+v, %v", left>>10, got, err)
		}
		if status := y.run(y.main, "status", "--porcelain"); status != "" || y.run(y.main, "rev-parse", "HEAD") != head || y.landed() == nil {
			t.Fatalf("with %d KiB left the checkout has %q; %+v can be undone", left>>10, status, y.landed())
		}
	}
	if got, err := y.finish(first, gitwork.Undo); err != nil || !got.Done || y.read(y.main, "big.txt") != big {
		t.Errorf("with room again: %+v, %v", got, err)
	}
}
