package maintain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/maintain/snapshot"
	"bridge/backend/storage/store/transfer"
)

// freely is a pause that never waits.
func freely(context.Context) error { return nil }

func mustBackupMessages(t testing.TB, c Maintenance) snapshot.Made {
	t.Helper()
	made, err := c.Snapshots().BackupMessages(context.Background(), freely)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func scopedSets(t testing.TB, dir string) []inventory.Set {
	t.Helper()
	found, err := inventory.Sets(dir, inventory.MessagesName)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestSTO_10_ASetHoldsTheMessagesAndNothingElse(t *testing.T) {
	c := newHome(t)
	db := openStore(t, c) // a broker lives
	defer db.Close()
	appendMessages(t, db, 100, 103)
	made := mustBackupMessages(t, c)
	if !inventory.MessagesName.MatchString(filepath.Base(made.Path)) || filepath.Dir(made.Path) != c.Home.MessageBackups() {
		t.Errorf("the set is %s", made.Path)
	}
	entries, err := os.ReadDir(made.Path)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if diff := cmp.Diff([]string{"manifest.json", "messages.db"}, names); diff != "" {
		t.Error(diff)
	}
	counts, err := transfer.Counts(t.Context(), filepath.Join(made.Path, inventory.MessagesFile), false)
	if diff := cmp.Diff(map[string]int{"messages": 43, "archived_messages": 0, "job_delivery_routes": 0}, counts); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if err := check.VerifyMessages(t.Context(), made.Path, c.Worker().ProgressOf("")); err != nil {
		t.Error(err)
	}
}

func TestSTO_10_ASetIsNeverRestoredAsAWhole(t *testing.T) {
	c := newHome(t)
	made := mustBackupMessages(t, c)
	before := managedBytes(t, c)
	if _, err := c.Restores().Restore(t.Context(), made.Path); bridge.CodeOf(err) != bridge.Unsupported {
		t.Errorf("Restore = %v", err)
	}
	sameFiles(t, before, managedBytes(t, c))
}

func TestSTO_10_AFailureStaysPendingAndTheHomeIsUntouched(t *testing.T) {
	broken := errors.New("broken")
	for n := 1; ; n++ {
		c := newHome(t)
		before, step := managedBytes(t, c), 0
		c.step = func(string) error {
			if step++; step == n {
				return broken
			}
			return nil
		}
		_, err := c.Snapshots().BackupMessages(t.Context(), freely)
		if err == nil {
			if n < 8 {
				t.Errorf("only %d steps", n-1)
			}
			return
		}
		if !errors.Is(err, broken) {
			t.Fatal(err)
		}
		sameFiles(t, before, managedBytes(t, c))
		for _, set := range scopedSets(t, c.Home.MessageBackups()) {
			if err := check.VerifyMessages(t.Context(), filepath.Join(c.Home.MessageBackups(), set.Path), c.Worker().ProgressOf("")); err != nil {
				t.Errorf("step %d published what is not whole: %v", n, err)
			}
		}
	}
}

func TestSTO_10_PausesComeBeforeEveryWindowAndEndWithTheirError(t *testing.T) {
	c := newHome(t)
	pauses, steps := 0, []string{}
	c.step = func(name string) error { steps = append(steps, fmt.Sprint(pauses, " ", name)); return nil }
	if _, err := c.Snapshots().BackupMessages(t.Context(), func(context.Context) error { pauses++; return nil }); err != nil {
		t.Fatal(err)
	}
	// The three tables of the store are three batches between copy and verify.
	want := []string{"1 copy messages", "5 verify messages", "6 checksum messages"}
	for _, text := range want {
		if !slices.Contains(steps, text) {
			t.Errorf("no step %q in %q", text, steps)
		}
	}
	stop := errors.New("the worker is to end")
	if _, err := c.Snapshots().BackupMessages(t.Context(), func(context.Context) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("BackupMessages = %v", err)
	}
}

func TestSTO_11_OlderSetsMoveAndNoneIsDeleted(t *testing.T) {
	c := newHome(t)
	c.Retention = 0
	for range 3 {
		mustBackupMessages(t, c)
	}
	if n := len(scopedSets(t, c.Home.MessageBackups())); n != 3 {
		t.Errorf("with retention 0 %d of 3 are left", n)
	}
	c.Retention = 2
	if made := mustBackupMessages(t, c); len(made.Moved) != 2 {
		t.Errorf("moved %q", made.Moved)
	}
	archived := scopedSets(t, filepath.Join(c.Home.MessageBackups(), "archive"))
	if len(archived) != 2 || len(scopedSets(t, c.Home.MessageBackups())) != 2 {
		t.Errorf("archived %v", archived)
	}
}

func TestSTO_11_TheNextSetIsDueAnIntervalAfterTheNewest(t *testing.T) {
	c := newHome(t)
	if next, err := c.Snapshots().NextMessageBackup(time.Hour); err != nil || !next.IsZero() {
		t.Errorf("without a set: %v, %v", next, err)
	}
	mustBackupMessages(t, c)
	newest := scopedSets(t, c.Home.MessageBackups())[0]
	if next, err := c.Snapshots().NextMessageBackup(time.Hour); err != nil || next.UnixMilli() != newest.CreatedAt+time.Hour.Milliseconds() {
		t.Errorf("next %v, %v", next, err)
	}
}

func init() {
	// generation: home. It makes a set, says "pausing" in the middle, and waits.
	parts["generation"] = func(args []string) error {
		c, err := maintenanceOf(args[0])
		if err != nil {
			return err
		}
		_, err = c.Snapshots().BackupMessages(context.Background(), func(context.Context) error {
			fmt.Println("pausing")
			waitToBeKilled()
			return nil
		})
		return err
	}
}

func TestSTO_10_OneGenerationAtATimeAndTheLockDiesWithItsProcess(t *testing.T) {
	c := newHome(t)
	child := exec.Command(os.Args[0], c.Home.Dir())
	child.Env = append(os.Environ(), partEnv+"=generation")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Snapshots().BackupMessages(t.Context(), freely); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("beside another: %v", err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	mustBackupMessages(t, c)
	pending, err := filepath.Glob(filepath.Join(c.Home.MessageBackups(), inventory.PendingPrefix+"*"))
	if err != nil || len(pending) != 1 {
		t.Errorf("the killed attempt: %q, %v", pending, err)
	}
}

// waitToBeKilled waits for ever. A program whose goroutines all do that ends by itself, so
// this one listens for a signal.
func waitToBeKilled() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, os.Interrupt)
	<-ended
}
