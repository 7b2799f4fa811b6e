package maintain

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/needs"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/testing/testkit"
)

func look(t *testing.T, c Maintenance) check.QuickStatus {
	t.Helper()
	before := listing(t, c.Home.Dir())
	quick, err := c.Doctor().QuickCheck(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, listing(t, c.Home.Dir())); diff != "" {
		t.Errorf("the look changed the home:\n%s", diff)
	}
	return quick
}

func TestSTO_01_ALookTellsBackupsAndProofsApart(t *testing.T) {
	c := newHome(t)
	if got := look(t, c); !got.OK || got.LastBackup != nil || got.LastSnapshot != nil || got.LastMessages != nil || got.LastTest != nil {
		t.Errorf("a home without backups: %+v", got)
	}
	full, messages := mustBackup(t, c), mustBackupMessages(t, c)
	if _, err := c.Restores().Test(t.Context(), full.Path); err != nil {
		t.Fatal(err)
	}
	got := look(t, c)
	if filepath.Base(got.LastSnapshot.Path) != filepath.Base(full.Path) || filepath.Base(got.LastMessages.Path) != filepath.Base(messages.Path) {
		t.Errorf("the sets: %+v and %+v", got.LastSnapshot, got.LastMessages)
	}
	if *got.LastBackup != got.LastMessages.CreatedAt {
		t.Errorf("the newest of both is of %d", *got.LastBackup)
	}
	if got.LastTest == nil || got.LastTest.Snapshot != filepath.Base(full.Path) {
		t.Errorf("the proof: %+v", got.LastTest)
	}
	if diff := cmp.Diff(report(t, c).Summary(), got.Summary); diff != "" {
		t.Errorf("the look and the doctor differ:\n%s", diff)
	}
}

// A quick look reads no database whole; what it says of it must still be true.
func TestSTO_01_ALookSeesVersionsAndShapes(t *testing.T) {
	c := newHome(t)
	makeDatabase(t, c, "bridge.db", "PRAGMA user_version = 77")
	write(t, c.Home.Dir(), "jobs.json", "{")
	if got := look(t, c); got.OK || got.Errors != 2 {
		t.Errorf("%+v", got)
	}
}

func TestSTO_10_ADrillProvesASetOfMessages(t *testing.T) {
	c := newHome(t)
	made := mustBackupMessages(t, c)
	result, err := c.Restores().Test(t.Context(), made.Path)
	if err != nil || !result.OK || result.Rows != 40 || result.Snapshot != filepath.Base(made.Path) {
		t.Errorf("Test = %+v, %v", result, err)
	}
	if last, ok := inventory.LastPassed(c.Home.Backups()); !ok || last != result {
		t.Errorf("the last proof is %+v", last)
	}

	path := filepath.Join(made.Path, inventory.MessagesFile)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if result, err := c.Restores().Test(t.Context(), made.Path); err == nil || result.OK {
		t.Errorf("a damaged set: %+v, %v", result, err)
	}
	folder := "message-backups/" + filepath.Base(made.Path)
	if found := findings(report(t, c)); !has(found, "drill-failed "+folder) || !has(found, "snapshot-damaged "+folder) {
		t.Errorf("found %v", found)
	}
	if got := look(t, c); got.OK {
		t.Error("a quick look does not tell the failed drill")
	}

	// A set that is found whole later is no finding any more.
	data[len(data)/2] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Restores().Test(t.Context(), made.Path); err != nil {
		t.Error(err)
	}
	if got := report(t, c); !got.OK {
		t.Errorf("found %v", got.Findings)
	}
}

func TestSTO_01_ALookNamesTheNewestSetOfEachKind(t *testing.T) {
	c := newHome(t)
	mustBackup(t, c)
	mustBackupMessages(t, c)
	full, messages := mustBackup(t, c), mustBackupMessages(t, c)
	got := look(t, c)
	if filepath.Base(got.LastSnapshot.Path) != filepath.Base(full.Path) || filepath.Base(got.LastMessages.Path) != filepath.Base(messages.Path) {
		t.Errorf("the sets: %+v and %+v", got.LastSnapshot, got.LastMessages)
	}
}

func TestSTO_09_AWorkSaysWhatItWouldDo(t *testing.T) {
	home := newHome(t)
	for _, tt := range []struct {
		task   Task
		change func(*Maintenance)
		says   string
	}{
		{TaskArchive, func(c *Maintenance) { c.ArchiveAge = 0 }, "nothing is archived"},
		{TaskArchive, func(c *Maintenance) { c.ArchiveAge = 30 * 24 * time.Hour }, "more than 30 days ago"},
		{TaskBackup, func(c *Maintenance) { c.Retention = 0 }, "All snapshots stay in place."},
		{TaskBackup, func(c *Maintenance) { c.Retention = 7 }, "The newest 7 snapshots stay in place"},
	} {
		c := home
		tt.change(&c)
		if got := c.Explain(tt.task, ""); !strings.Contains(got, tt.says) {
			t.Errorf("%s says %q, not %q", tt.task, got, tt.says)
		}
	}
}

func TestSTO_08_ADrillWaitsForMaintenanceAndRecordsNoBrokenOffOne(t *testing.T) {
	c := newHome(t)
	mustBackup(t, c)
	write(t, c.Home.Dir(), ".maintenance-lock", `{"pid":999999,"identity":"gone:1","program":"bridge doctor","what":"restore"}`)
	if _, err := c.Restores().Test(t.Context(), ""); bridge.CodeOf(err) != bridge.Denied {
		t.Errorf("beside a restore: %v", err)
	}
	if err := os.Remove(c.Home.MaintenanceLock()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c.step = func(string) error { cancel(); return nil }
	if _, err := c.Restores().Test(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("a drill that was broken off: %v", err)
	}
	if results, err := c.Doctor().TestResults(); err != nil || len(results) != 0 {
		t.Errorf("recorded: %+v, %v", results, err)
	}
}

func TestSTO_03_TheSummaryInWords(t *testing.T) {
	for want, sum := range map[string]check.Summary{
		"healthy":                  {OK: true},
		"healthy, with 1 warning":  {OK: true, Warnings: 1},
		"healthy, with 2 warnings": {OK: true, Warnings: 2},
		"1 error":                  {Errors: 1},
		"2 errors and 1 warning":   {Errors: 2, Warnings: 1},
	} {
		if got := sum.Words(); got != want {
			t.Errorf("%+v is %q, want %q", sum, got, want)
		}
	}
}

// TestSTO_18_AQuickLookIsHealthyOnlyForWhatItReads: it reads a page of each table and index,
// so a damaged one is a finding, and the advice names the newest snapshot.
func TestSTO_18_AQuickLookIsHealthyOnlyForWhatItReads(t *testing.T) {
	c := newHome(t)
	made := mustBackup(t, c)
	pool, err := sql.Open("sqlite", c.Home.DB())
	if err != nil {
		t.Fatal(err)
	}
	names, err := sqlitex.Texts(t.Context(), pool, "SELECT name FROM sqlite_schema WHERE rootpage > 0")
	if closeErr := pool.Close(); err != nil || closeErr != nil || len(names) < 20 {
		t.Fatalf("%d tables and indexes: %v, %v", len(names), err, closeErr)
	}
	for _, name := range names {
		t.Run("STO-18 "+name, func(t *testing.T) {
			damaged := copied(t, c)
			testkit.DamagePage(t, damaged.Home.DB(), name, testkit.RootPage)
			quick := look(t, damaged)
			if quick.OK || len(quick.Report.Findings) == 0 || quick.Report.Findings[0].Path != "bridge.db" {
				t.Fatalf("a quick look finds %+v", quick.Report.Findings)
			}
			var facts needs.Facts
			quick.Report.Into(&facts, 1)
			if facts.Storage.Means == "" || !strings.Contains(facts.Storage.Do, "--restore "+filepath.Base(made.Path)) {
				t.Errorf("the advice is %+v", facts.Storage)
			}
		})
	}
}
