package jobs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/jobs/gitwork"
)

// mounted mounts a file system of that many bytes; fill leaves so many of them free, and
// free takes back what it took.
func mounted(t *testing.T, dir string, size int64) (fill func(left int64), free func()) {
	t.Helper()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", size)); err != nil {
		t.Skipf("NOT PROVEN: a full disk needs the right to mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	ballast := filepath.Join(dir, "ballast")
	fill = func(left int64) {
		t.Helper()
		var stat unix.Statfs_t
		if err := unix.Statfs(dir, &stat); err != nil {
			t.Fatal(err)
		}
		err := os.WriteFile(ballast, nil, 0o600)
		if err == nil {
			err = os.WriteFile(ballast, make([]byte, max(0, int64(stat.Bavail)*stat.Bsize-left)), 0o600)
		}
		if err != nil && !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
	}
	return fill, func() {
		t.Helper()
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	}
}

func noise(n int) string {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // no secret
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + r.IntN(26))
	}
	return string(b)
}

// With every amount of room that is left a finish either comes to its end, or says why
// not and leaves the owner's checkout as it was. With room again it comes to its end.
func TestJOB_18_AFullDiskInAFinishLosesNothing(t *testing.T) {
	const page = 4 << 10
	big, other := noise(300<<10), noise(200<<10)
	for _, left := range []int64{0, page, 4 * page, 8 * page, 60 * page, 110 * page} {
		for _, action := range []gitwork.Action{gitwork.Squash, gitwork.Discard} {
			if action == gitwork.Discard && left > 4*page {
				continue // it fits
			}
			t.Run(fmt.Sprintf("JOB-18 %s with %d KiB left", action, left>>10), func(t *testing.T) {
				dir := t.TempDir()
				fill, free := mounted(t, dir, 8<<20)
				y := yardIn(t, dir)
				y.write(y.main, "old.txt", other)
				y.run(y.main, "add", "-A")
				y.run(y.main, "commit", "-qm", "old")
				base := y.run(y.main, "rev-parse", "HEAD")
				y.give("01", func(tree string) {
					y.write(tree, "a.txt", big)
					y.write(tree, "old.txt", strings.ToUpper(other))
					y.write(tree, "sub/new.txt", big)
				})
				entry, _ := y.jobs.get(first)
				y.write(entry.Worktree.Path, "late.txt", "not parked\n")
				fill(left)
				got, err := y.finish(first, action)
				if err == nil && !got.Done {
					t.Fatalf("it says %+v", got)
				}
				if err != nil {
					if bridge.CodeOf(err) != bridge.Storage || strings.Contains(err.Error(), "\n") {
						t.Errorf("it is refused as %q: %v", bridge.CodeOf(err), err)
					}
					free()
					if status := y.run(y.main, "status", "--porcelain"); status != "" || y.run(y.main, "rev-parse", "HEAD") != base || y.read(y.main, "old.txt") != other {
						t.Errorf("the checkout is left with %q", status)
					}
					if y.run(y.main, "show", "bridge/"+first+":a.txt") != big {
						t.Error("the branch has not the work")
					}
					if got, err = y.finish(first, action); err != nil || !got.Done {
						t.Fatalf("with room again: %+v, %v", got, err)
					}
				}
				for name, want := range map[string]string{"a.txt": big, "sub/new.txt": big, "late.txt": "not parked"} {
					if y.run(y.main, "show", got.Commit+":"+name) != want {
						t.Errorf("%s is not in %s", name, got.Commit)
					}
				}
				if status := y.run(y.main, "status", "--porcelain"); status != "" {
					t.Errorf("the checkout has %q", status)
				}
			})
		}
	}
}

// Where the book cannot be written nothing is done, or what was done is known later.
func TestJOB_18_AFullHomeInAFinishLosesNothing(t *testing.T) {
	const page = 4 << 10
	for _, left := range []int64{0, page, 2 * page, 3 * page, 6 * page} {
		t.Run(fmt.Sprintf("JOB-18 %d KiB left", left>>10), func(t *testing.T) {
			dir, err := os.MkdirTemp("", "full-home")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) }) // after the unmount
			fill, free := mounted(t, dir, 32<<20)
			t.Setenv("TMPDIR", dir)
			y := newYard(t)
			base := y.run(y.main, "rev-parse", "HEAD")
			y.give("01", y.mend)
			fill(left)
			got, err := y.finish(first, gitwork.Squash)
			free()
			moved := y.run(y.main, "rev-parse", "HEAD") != base
			if err == nil != (got.Done && moved) || err != nil && (moved || bridge.CodeOf(err) != bridge.Storage) {
				t.Errorf("it says %+v, %v; moved %t", got, err, moved)
			}
			if status := y.run(y.main, "status", "--porcelain"); status != "" {
				t.Errorf("the checkout is left with %q", status)
			}
			y.down()
			y.up()
			eventually(t, "the book to say it", func() bool {
				entry, _ := y.jobs.get(first)
				return (entry.Landing != nil && entry.Landing.State == job.LandingDone) == moved
			})
			if got, err = y.finish(first, gitwork.Squash); err != nil || !got.Done || y.read(y.main, "new.txt") != "not committed\n" {
				t.Errorf("with room again: %+v, %v", got, err)
			}
		})
	}
}
