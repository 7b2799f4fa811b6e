package run

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/sandbox"
	"bridge/backend/testing/testkit"
)

// TestMain makes this program `bridge sandbox-exec` as well.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "test-sandbox-exec" {
		fmt.Fprintln(os.Stderr, sandbox.Main(os.Args[2:], os.Environ()))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestRMT_09_AFolderThatIsSwappedForALinkGainsNothing has a thread swap the allowed
// folder for a link to another one, again and again, while jobs are started in it: none
// writes in the other one, with a floor or without.
func TestRMT_09_AFolderThatIsSwappedForALinkGainsNothing(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, spec := range map[string]job.Spec{
		"without a floor": {Access: job.AccessAsk},
		"under the floor": {Access: job.AccessEdit, Sandbox: []string{self, "test-sandbox-exec"}},
	} {
		t.Run(name, func(t *testing.T) {
			if len(spec.Sandbox) > 0 {
				if err := sandbox.Available(); err != nil {
					t.Skipf("SKIPPED, no floor was tried: %v", err)
				}
			}
			root := t.TempDir()
			outside, place, link := filepath.Join(root, "outside"), filepath.Join(root, "place"), filepath.Join(root, "link")
			for _, folder := range []string{outside, place} {
				if err := os.Mkdir(folder, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(outside, link); err != nil {
				t.Fatal(err)
			}
			stop := make(chan struct{})
			var once sync.Once
			var swapping sync.WaitGroup
			end := func() {
				once.Do(func() { close(stop) })
				swapping.Wait()
			}
			t.Cleanup(end)
			swapping.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					if err := unix.Renameat2(unix.AT_FDCWD, place, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE); err != nil {
						t.Errorf("swap: %v", err)
						return
					}
				}
			})
			spec.Folder, spec.Unlinked, spec.StateFolder = place, true, t.TempDir()
			began, refused := 0, 0
			// Many are refused, for the link is there half of the time; both have to be seen.
			for deadline := time.Now().Add(testkit.Patience); began < 40 || refused == 0; {
				// It writes where it is, and where its folder's name leads.
				if launched(t, spec, "echo x > made; echo x > "+place+"/named") {
					began++
				} else {
					refused++
				}
				if time.Now().After(deadline) {
					t.Fatalf("%d have begun, %d were refused", began, refused)
				}
			}
			end()
			if _, err := os.Stat(filepath.Join(outside, "made")); err == nil {
				t.Error("a job was started in the other folder")
			}
			if _, err := os.Stat(filepath.Join(outside, "named")); err == nil && len(spec.Sandbox) > 0 {
				t.Error("the floor let a job write in the other folder")
			}
		})
	}
}

// TestRMT_09_TheFloorTakesFoldersAsTheyWereAllowed: what an edit job writes is named to
// the floor as folders to which no link may lead.
func TestRMT_09_TheFloorTakesFoldersAsTheyWereAllowed(t *testing.T) {
	folder, git := t.TempDir(), t.TempDir()
	for _, unlinked := range []bool{true, false} {
		spec := job.Spec{Access: job.AccessEdit, Folder: folder, Writable: []string{git}, Unlinked: unlinked, StateFolder: t.TempDir(), Sandbox: []string{"/bin/echo"}}
		p, err := Launch(spec, Command{Argv: []string{"/bin/sh"}, Env: Environment(spec), Floor: job.FloorSandbox})
		if err != nil {
			t.Fatal(err)
		}
		line, _ := io.ReadAll(p.stdout) // it may be closed under us
		<-p.Ended()
		for _, own := range []string{folder, git} {
			if got := strings.Contains(string(line), "--writable-unlinked="+own); got != unlinked {
				t.Errorf("unlinked %t: %s", unlinked, line)
			}
			if got := strings.Contains(string(line), "--writable="+own); got == unlinked {
				t.Errorf("unlinked %t: %s", unlinked, line)
			}
		}
	}
}

// launched starts a shell as a job and waits for its end; false where it was refused.
func launched(t *testing.T, spec job.Spec, script string) bool {
	t.Helper()
	floor := job.FloorNone
	if len(spec.Sandbox) > 0 {
		floor = job.FloorSandbox
	}
	p, err := Launch(spec, Command{Argv: []string{"/bin/sh", "-c", script}, Env: Environment(spec), Floor: floor})
	if bridge.CodeOf(err) == bridge.Denied {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, p.stdout) //nolint:errcheck // it ends with the process
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	select {
	case <-p.Ended():
	case <-ctx.Done():
		t.Fatal("it did not end")
	}
	return true
}
