//go:build unix

package maintain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/store"
)

// operation is a piece of maintenance that a crash may meet at any step.
type operation struct {
	// prepare makes the home that it runs on.
	prepare func(t testing.TB) Maintenance
	run     func(ctx context.Context, c Maintenance) error
	// check looks at the home after a crash; before is the managed files' bytes
	// from before the operation.
	check func(t *testing.T, c Maintenance, before map[string]string)
}

var operations = map[string]operation{
	"backup": {
		prepare: newHomeTB,
		run:     func(ctx context.Context, c Maintenance) error { _, err := c.Snapshots().Backup(ctx); return err },
		check: func(t *testing.T, c Maintenance, before map[string]string) {
			sameFiles(t, before, managedBytes(t, c))
			wholeSnapshots(t, c, c.Home.Backups())
		},
	},
	"rotate": {
		prepare: func(t testing.TB) Maintenance {
			c := newHome(t)
			for range 3 {
				mustBackup(t, c)
			}
			return c
		},
		run: func(_ context.Context, c Maintenance) error {
			c.Retention = 1
			_, err := c.Snapshots().Rotate()
			return err
		},
		check: func(t *testing.T, c Maintenance, _ map[string]string) {
			n := wholeSnapshots(t, c, c.Home.Backups()) + wholeSnapshots(t, c, filepath.Join(c.Home.Backups(), "archive"))
			if n != 3 {
				t.Errorf("%d of 3 snapshots are left", n)
			}
		},
	},
	"restore": {
		prepare: func(t testing.TB) Maintenance {
			c := newHome(t)
			mustBackup(t, c)
			change(t, c)
			return c
		},
		run: func(ctx context.Context, c Maintenance) error {
			snapshot, err := inventory.FindSnapshot(c.Home, "")
			if err != nil {
				return err
			}
			_, err = c.Restores().Restore(ctx, snapshot)
			return err
		},
		check: checkAfterRestore,
	},
	"fix": {
		prepare: func(t testing.TB) Maintenance {
			c := newHome(t)
			write(t, c.Home.Dir(), ".jobs.json.bridge-tmp-ABCDEF", "half")
			write(t, c.Home.Dir(), "jobs/.7.json.bridge-tmp-GHIJKL", "another half")
			return c
		},
		run: func(ctx context.Context, c Maintenance) error { _, err := c.Archive().Fix(ctx); return err },
		check: func(t *testing.T, c Maintenance, before map[string]string) {
			sameFiles(t, before, managedBytes(t, c))
			bytesExist(t, c, "half", "another half")
		},
	},
	"archive": {
		prepare: func(t testing.TB) Maintenance {
			c := newHome(t)
			db := openStore(t, c)
			for n := range 20 {
				mark := mail.Mark{MessageID: fmt.Sprintf("m%d", n), Recipient: "bob", At: 2000, Evidence: "a test"}
				if err := db.Record(context.Background(), bridge.StageConsumed, []mail.Mark{mark}); err != nil {
					t.Fatal(err)
				}
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			return c
		},
		run: func(ctx context.Context, c Maintenance) error {
			c.ArchiveAge = 24 * time.Hour
			_, err := c.Archive().Messages(ctx)
			return err
		},
		check: func(t *testing.T, c Maintenance, _ map[string]string) {
			reader, err := store.OpenReader(context.Background(), c.Home.DB())
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			if rows, err := reader.Recent(context.Background(), 100); err != nil || len(rows) != 40 {
				t.Errorf("%d of 40 messages are left: %v", len(rows), err)
			}
		},
	},
	"merge": {
		prepare: lossyHome,
		run:     func(ctx context.Context, c Maintenance) error { _, err := c.Restores().Merge(ctx, ""); return err },
		check: func(t *testing.T, c Maintenance, before map[string]string) {
			checkAfterRestore(t, c, before)
			if n := storedMessages(t, c); n != 20 && n != 40 {
				t.Errorf("the merge is half done: %d messages", n)
			}
		},
	},
	"apply": {
		prepare: func(t testing.TB) Maintenance {
			c := newHome(t)
			write(t, c.Home.Dir(), "auto-wake.json", `{"peers": {"x": true}}`)
			shared := config.Shared{Home: c.Home, Now: c.Now, Hold: true}
			for _, on := range []bool{true, false} {
				if err := shared.Write("auto-wake.json", map[string]any{"sessions": map[string]bool{"a": on}}); err != nil {
					t.Fatal(err)
				}
			}
			return c
		},
		run: func(_ context.Context, c Maintenance) error { _, err := c.Worker().ApplyPending(); return err },
		check: func(t *testing.T, c Maintenance, _ map[string]string) {
			var now struct{ Peers, Sessions map[string]bool }
			if err := (config.Shared{Home: c.Home}).Read("auto-wake.json", &now); err != nil || !now.Peers["x"] || now.Sessions["a"] || len(now.Sessions) != 1 {
				t.Errorf("the store with what waits is %+v, %v", now, err)
			}
		},
	},
	"replace": {
		prepare: lostHome,
		run: func(ctx context.Context, c Maintenance) error {
			if _, err := c.Restores().Replace(ctx); err != nil {
				return err
			}
			db, err := store.Open(ctx, c.Home.DB(), store.Options{Now: c.Now, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				return err
			}
			return db.Close()
		},
		check: func(t *testing.T, c Maintenance, before map[string]string) {
			checkAfterRestore(t, c, before)
			if _, err := check.HasStore(context.Background(), c.Home); err != nil && !errors.Is(err, check.ErrLost) && inventory.IsMissing(c.Home.MaintenanceLock()) {
				t.Errorf("the home has neither a store nor lost one: %v", err)
			}
		},
	},
	"drill": {
		prepare: func(t testing.TB) Maintenance {
			c := newHome(t)
			mustBackup(t, c)
			return c
		},
		run: func(ctx context.Context, c Maintenance) error { _, err := c.Restores().Test(ctx, ""); return err },
		check: func(t *testing.T, c Maintenance, before map[string]string) {
			sameFiles(t, before, managedBytes(t, c))
			wholeSnapshots(t, c, c.Home.Backups())
		},
	},
}

func newHomeTB(t testing.TB) Maintenance { return newHome(t) }

// wholeSnapshots fails for a published set that is not verified, and counts.
func wholeSnapshots(t *testing.T, c Maintenance, dir string) int {
	t.Helper()
	found, err := inventory.Sets(dir, inventory.SnapshotName)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range found {
		path := filepath.Join(dir, set.Path)
		manifest, err := inventory.ReadManifest(path)
		if err == nil {
			err = manifest.CheckSums(context.Background(), path, c.Worker().ProgressOf(""))
		}
		if err == nil {
			_, err = check.VerifyDatabase(context.Background(), inventory.JoinHome(path, inventory.Primary))
		}
		if err != nil {
			t.Errorf("a published snapshot is not whole: %v", err)
		}
	}
	return len(found)
}

// bytesExist looks for files with exactly these bytes anywhere in the home.
func bytesExist(t *testing.T, c Maintenance, wanted ...string) {
	t.Helper()
	sums := map[string]bool{}
	for _, described := range listing(t, c.Home.Dir()) {
		sums[described[strings.LastIndexByte(described, ' ')+1:]] = true
	}
	for _, want := range wanted {
		if !sums[sumOf([]byte(want))[:16]] {
			t.Errorf("no copy of %.40q is left", want)
		}
	}
}

// checkAfterRestore wants every byte from before either in its place or in a
// published recovery set, and the snapshot whole.
func checkAfterRestore(t *testing.T, c Maintenance, before map[string]string) {
	t.Helper()
	wholeSnapshots(t, c, c.Home.Backups())
	now := managedBytes(t, c)
	saved, err := inventory.Sets(c.Home.Backups(), inventory.RecoveryName)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range before {
		found := now[path] == want
		for _, set := range saved {
			data, err := os.ReadFile(inventory.JoinHome(filepath.Join(c.Home.Backups(), set.Path, inventory.DisplacedDir), path))
			found = found || err == nil && string(data) == want
		}
		if !found {
			t.Errorf("neither copy of %s is left", path)
		}
	}
}

func init() {
	// crash: operation, home, step from 1 on. It kills itself before that step.
	parts["crash"] = func(args []string) error {
		c, err := maintenanceOf(args[1])
		if err != nil {
			return err
		}
		at, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		count := 0
		c.step = func(name string) error {
			if count++; count == at {
				fmt.Println(name)
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				waitToBeKilled()
			}
			return nil
		}
		return operations[args[0]].run(context.Background(), c)
	}
}

// crash runs the operation in another process that kills itself before step n.
// killed is false when the operation has fewer steps.
func crash(t *testing.T, name, home string, n int) (step string, killed bool) {
	t.Helper()
	child := exec.Command(os.Args[0], name, home, strconv.Itoa(n))
	child.Env = append(os.Environ(), partEnv+"=crash")
	child.Stderr = os.Stderr
	out, err := child.Output()
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return strings.TrimSpace(string(out)), true
	}
	if err != nil {
		t.Fatalf("%s to step %d: %v", name, n, err)
	}
	return "", false
}

// walkSteps crashes an operation at the steps that it has.
func walkSteps(t *testing.T, name string, least int) {
	op := operations[name]
	total := 0
	prepared := op.prepare(t)
	counting := copied(t, prepared)
	counting.step = func(string) error { total++; return nil }
	if err := op.run(context.Background(), counting); err != nil || total < least {
		t.Fatalf("%s has %d steps: %v", name, total, err)
	}
	for _, n := range someOf(t, total) {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			crashAt(t, name, copied(t, prepared), n)
		})
	}
}

// crashAt crashes the operation before step n, looks, does it again, and looks
// once more.
func crashAt(t *testing.T, name string, c Maintenance, n int) {
	op := operations[name]
	before := managedBytes(t, c)
	step, killed := crash(t, name, c.Home.Dir(), n)
	if !killed {
		t.Fatalf("%s has no step %d", name, n)
	}
	op.check(t, c, before)
	// The owner reads what the doctor says, and removes the lock by hand.
	if _, err := os.Lstat(c.Home.MaintenanceLock()); err == nil {
		if !has(findings(report(t, c)), "lock-left .maintenance-lock") {
			t.Error("the left lock is not named")
		}
		if err := os.Remove(c.Home.MaintenanceLock()); err != nil {
			t.Fatal(err)
		}
	}
	if err := op.run(context.Background(), c); err != nil {
		t.Errorf("%s again: %v", name, err)
	}
	op.check(t, c, before)
	if r := report(t, c); r.Count(check.Error) > 0 {
		t.Errorf("after doing it again: %v", r.Findings)
	}
	if t.Failed() {
		t.Logf("%s was killed before step %d: %s", name, n, step)
	}
}

func TestSTO_05_ACrashAtAnyStepOfASnapshotPublishesNothingUnverified(t *testing.T) {
	walkSteps(t, "backup", 30)
}

func TestSTO_11_ACrashAtAnyStepOfARotationLosesNoSet(t *testing.T) { walkSteps(t, "rotate", 5) }

func TestSTO_06_ACrashAtAnyStepOfAFixLosesNoByte(t *testing.T) { walkSteps(t, "fix", 8) }

func TestSTO_08_ACrashAtAnyStepOfARestoreLosesNoByte(t *testing.T) { walkSteps(t, "restore", 60) }

func TestSTO_16_ACrashAtAnyStepOfAMergeLeavesAllOrNothing(t *testing.T) { walkSteps(t, "merge", 40) }

func TestVER_05_ACrashAtAnyStepOfThePendingWritesLosesNone(t *testing.T) { walkSteps(t, "apply", 12) }

func TestSTO_07_ACrashAtAnyStepOfTheArchiveLosesNoMessage(t *testing.T) { walkSteps(t, "archive", 6) }

func TestSTO_17_ACrashAtAnyStepOfAReplacementLosesNoByte(t *testing.T) { walkSteps(t, "replace", 60) }

func TestSTO_08_ACrashAtAnyStepOfADrillChangesNothing(t *testing.T) { walkSteps(t, "drill", 20) }

func TestSTO_05_AFailedCaptureStaysPendingAndPublishesNothing(t *testing.T) {
	for _, failAt := range stepsOf(t, "backup") {
		if strings.HasPrefix(failAt, "sync-dir backups") {
			continue // by then it is published
		}
		t.Run(failAt, func(t *testing.T) {
			c := newHome(t)
			failed := errors.New("the disk said no")
			c.step = func(name string) error {
				if name == failAt {
					return failed
				}
				return nil
			}
			if _, err := c.Snapshots().Backup(context.Background()); !errors.Is(err, failed) {
				t.Fatalf("Backup = %v", err)
			}
			found, err := inventory.Sets(c.Home.Backups(), inventory.SnapshotName)
			if err != nil || len(found) > 0 {
				t.Errorf("published: %v, %v", found, err)
			}
			if !slices.ContainsFunc(findings(report(t, c)), func(f string) bool { return strings.HasPrefix(f, "snapshot-unfinished backups/.pending-snapshot-") }) {
				t.Errorf("the attempt is not named: %v", findings(report(t, c)))
			}
		})
	}
}

// stepsOf runs an operation on a fresh home and returns the names of its steps
// that do not vary from run to run.
func stepsOf(t *testing.T, operation string) []string {
	t.Helper()
	c := newHome(t)
	var steps []string
	c.step = func(name string) error {
		_, path, _ := strings.Cut(name, " ")
		varies := disk.IsTemp(path) || strings.Contains(path, "snapshot-")
		if !varies && !slices.Contains(steps, name) {
			steps = append(steps, name)
		}
		return nil
	}
	if err := operations[operation].run(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	return steps
}
