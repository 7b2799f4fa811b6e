package maintain

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/proc"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/maintain/lease"
)

func TestSTO_09_LiveWritersRefuseFixAndRestoreAndDeadOnesDoNot(t *testing.T) {
	own, err := proc.Identity(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	boot, _, _ := strings.Cut(own, ":")
	tests := []struct {
		name    string
		lease   string
		content string
		blocks  bool
	}{
		{"this process", fmt.Sprintf("%d-a", os.Getpid()), fmt.Sprintf(`{"pid":%d,"identity":%q,"program":"bridge serve"}`, os.Getpid(), own), true},
		{"a number that another process got", fmt.Sprintf("%d-a", os.Getpid()), fmt.Sprintf(`{"pid":%d,"identity":"%s:1"}`, os.Getpid(), boot), false},
		{"a number from before the restart", fmt.Sprintf("%d-a", os.Getpid()), fmt.Sprintf(`{"pid":%d,"identity":"another boot:1"}`, os.Getpid()), false},
		{"a live process that says no more", fmt.Sprintf("%d-a", os.Getpid()), `{}`, true},
		{"a process that is gone", "999999-a", `{}`, false},
		{"nobody can tell whose", "whose", `{}`, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newHome(t)
			made := mustBackup(t, c)
			write(t, c.Home.Dir(), ".storage-users/"+tt.lease, tt.content)
			_, fixErr := c.Archive().Fix(context.Background())
			if tt.blocks != (bridge.CodeOf(fixErr) == bridge.Denied) || !tt.blocks && fixErr != nil {
				t.Errorf("Fix = %v", fixErr)
			}
			_, restoreErr := c.Restores().Restore(context.Background(), made.Path)
			if tt.blocks != (bridge.CodeOf(restoreErr) == bridge.Denied) || !tt.blocks && restoreErr != nil {
				t.Errorf("Restore = %v", restoreErr)
			}
			if _, err := os.Lstat(c.Home.MaintenanceLock()); !inventory.IsGone(err) {
				t.Errorf("the lock was left: %v", err)
			}
			if _, err := c.Snapshots().Backup(context.Background()); err != nil {
				t.Errorf("a backup runs beside writers, but: %v", err)
			}
		})
	}
}

func TestSTO_09_AnOldLeaseOfALiveProcessStillCounts(t *testing.T) {
	c := newHome(t)
	held, err := c.Worker().Register()
	if err != nil {
		t.Fatal(err)
	}
	long := c.Now().AddDate(-20, 0, 0)
	writers, err := lease.Writers(c.Home)
	if err != nil || len(writers) != 1 {
		t.Fatalf("leases: %+v, %v", writers, err)
	}
	if err := os.Chtimes(writers[0].Path, long, long); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Archive().Fix(context.Background()); bridge.CodeOf(err) != bridge.Denied || !strings.Contains(err.Error(), "a test (process ") {
		t.Errorf("Fix = %v", err)
	}
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Archive().Fix(context.Background()); err != nil {
		t.Errorf("Fix after the release = %v", err)
	}
}

func TestSTO_09_ALeftLockIsNamedAndNotRemoved(t *testing.T) {
	c := newHome(t)
	made := mustBackup(t, c)
	const left = `{"pid":999999,"identity":"gone:1","program":"bridge doctor","what":"restore"}`
	write(t, c.Home.Dir(), ".maintenance-lock", left)
	for name, run := range map[string]func() error{
		"fix":     func() error { _, err := c.Archive().Fix(context.Background()); return err },
		"restore": func() error { _, err := c.Restores().Restore(context.Background(), made.Path); return err },
		"a new writer": func() error {
			_, err := c.Worker().Register()
			return err
		},
	} {
		if err := run(); bridge.CodeOf(err) != bridge.Denied || !strings.Contains(err.Error(), ".maintenance-lock") {
			t.Errorf("%s = %v", name, err)
		}
	}
	if data, err := os.ReadFile(c.Home.MaintenanceLock()); err != nil || string(data) != left {
		t.Errorf("the lock: %q, %v", data, err)
	}
	if found := findings(report(t, c)); !has(found, "lock-left .maintenance-lock") {
		t.Errorf("found %v", found)
	}
	entries, err := os.ReadDir(c.Home.StorageUsers())
	if err != nil || len(entries) > 0 {
		t.Errorf("a refused writer left %v, %v", entries, err)
	}
}

func TestSTO_09_ANewWriterClearsTheLeasesOfTheDead(t *testing.T) {
	c := newHome(t)
	write(t, c.Home.Dir(), ".storage-users/999999-a", `{"pid":999999,"identity":"gone:1"}`)
	held, err := c.Worker().Register()
	if err != nil {
		t.Fatal(err)
	}
	if found, err := filepath.Glob(filepath.Join(c.Home.StorageUsers(), "*")); err != nil || len(found) != 1 {
		t.Errorf("leases: %v, %v", found, err)
	}
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestSTO_06_AnUnfinishedWriteOfALiveOlderProgramStays(t *testing.T) {
	c := newHome(t)
	c.Now = time.Now
	write(t, c.Home.Dir(), "jobs.json.tmp", "being written")
	record := fmt.Sprintf(`{"schemaVersion": 1, "json": 4, "sqlite": 8, "pid": %d}`, os.Getppid())
	write(t, c.Home.Dir(), fmt.Sprintf("storage-capabilities/%d.json", os.Getppid()), record)
	if older, err := lease.OlderPrograms(c.Home); err != nil || len(older.Programs) != 1 {
		t.Fatalf("the older program is not seen: %+v, %v", older, err)
	}
	if found := findings(report(t, c)); has(found, "temp-abandoned jobs.json.tmp") || has(found, "unknown-file jobs.json.tmp") {
		t.Errorf("beside an older program: %v", found)
	}
}

func TestSTO_06_AFixPutsAbandonedFilesAwayByteForByte(t *testing.T) {
	c := newHome(t)
	lost := map[string]string{
		".jobs.json.bridge-tmp-ABCDEF":      "half a \x00 job",
		"jobs/.7.json.bridge-tmp-GHIJKL":    "",
		"read-journal/.x.json.bridge-tmp-M": "[",
		".storage-users/999999-a":           `{"pid":999999,"identity":"gone:1"}`,
		// As other programs of the same layout name them.
		"jobs.json.tmp":                      "{\x00",
		".config.json.tmp-123456789":         "half a setting",
		"token.tmp":                          "half-a-secret",
		"jobs/8.json.4711.tmp":               `{"status": "run`,
		"read-state/aa.jsonl.tmp-1-2":        "[\n",
		"runs/2026-01-01-codex-1.log.99.tmp": "text",
	}
	for path, text := range lost {
		write(t, c.Home.Dir(), path, text)
	}
	before := managedBytes(t, c)
	fixed, err := c.Archive().Fix(context.Background())
	moved := fixed.Moved
	if err != nil || len(moved) != len(lost) {
		t.Fatalf("Fix = %v, %v", moved, err)
	}
	for _, move := range moved {
		path, _ := filepath.Rel(c.Home.Dir(), move.From)
		data, err := os.ReadFile(move.To)
		if err != nil || string(data) != lost[filepath.ToSlash(path)] || !strings.HasPrefix(move.To, c.Home.Orphaned()) {
			t.Errorf("%+v holds %q, %v", move, data, err)
		}
		if _, err := os.Lstat(move.From); !inventory.IsGone(err) {
			t.Errorf("%s is still there: %v", move.From, err)
		}
	}
	for path, text := range managedBytes(t, c) {
		if before[path] != text {
			t.Errorf("the fix changed %s", path)
		}
	}
	if r := report(t, c); len(r.Findings) > 0 {
		t.Errorf("after the fix: %v", r.Findings)
	}
	if fixed, err := c.Archive().Fix(context.Background()); err != nil || len(fixed.Moved) > 0 {
		t.Errorf("a second fix = %v, %v", moved, err)
	}
}

func TestSTO_06_AFixPassesOverWhatEndsMeanwhile(t *testing.T) {
	c := newHome(t)
	write(t, c.Home.Dir(), "..maintenance-lock.bridge-tmp-RIVAL", "asking for the lock")
	write(t, c.Home.Dir(), ".jobs.json.bridge-tmp-LEFT", "half")
	c.step = func(name string) error {
		if name == "publish ..maintenance-lock.bridge-tmp-RIVAL" {
			return os.Remove(inventory.JoinHome(c.Home.Dir(), "..maintenance-lock.bridge-tmp-RIVAL"))
		}
		return nil
	}
	fixed, err := c.Archive().Fix(t.Context())
	moved := fixed.Moved
	if err != nil || len(moved) != 1 || filepath.Base(moved[0].From) != ".jobs.json.bridge-tmp-LEFT" {
		t.Errorf("moved %v, %v", moved, err)
	}
}
