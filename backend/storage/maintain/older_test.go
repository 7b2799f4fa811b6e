package maintain

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
	"bridge/backend/platform/proc"
	"bridge/backend/storage/maintain/lease"
)

func TestVER_04_OlderProgramsAreThoseThatLiveAndKnowLess(t *testing.T) {
	parent := os.Getppid() // a live process that is not this one
	identity, err := proc.Identity(parent)
	if err != nil {
		t.Fatal(err)
	}
	record := fmt.Sprintf("storage-capabilities/%d.json", parent)
	held := fmt.Sprintf(".storage-users/%d-a", parent)
	tests := []struct {
		name, path, text string
		schema, json     int
		who              string
	}{
		{"nobody", "", "", 0, 0, ""},
		{"a record of the field", record, fmt.Sprintf(`{"schemaVersion":1,"json":3,"sqlite":7,"pid":%d,"name":"tool","version":"0.29.12","processIdentity":%q}`, parent, identity), 7, 3, "tool 0.29.12 (process "},
		{"a record without an identity", record, `{"json":4,"sqlite":7}`, 7, 4, "a program (process "},
		{"a record of another process with this number", record, `{"json":4,"sqlite":7,"processIdentity":"another boot:1"}`, 0, 0, ""},
		{"a record of a process that is gone", "storage-capabilities/999999.json", `{"json":4,"sqlite":7}`, 0, 0, ""},
		{"one that cannot be read of a process that is gone", "storage-capabilities/999999.json", `{"json":`, 0, 0, ""},
		{"a record that cannot be read", record, `{"json":`, 1, 1, "cannot be read"},
		{"a record of the field that knows the newest schema", record, `{"json":4,"sqlite":9}`, 0, 4, "a program"},
		{"a record that knows the newest JSON stores", record, `{"json":5,"sqlite":8}`, 8, 0, "a program"},
		{"a record that knows all", record, `{"json":5,"sqlite":9}`, 0, 0, ""},
		{"a stranger's file", "storage-capabilities/notes.json", `{"sqlite":1}`, 0, 0, ""},
		{"a stranger's file with a number", fmt.Sprintf("storage-capabilities/%d", parent), `{"sqlite":1}`, 0, 0, ""},
		{"a lease of an older build", held, fmt.Sprintf(`{"pid":%d,"identity":%q,"program":"bridge","schema":8,"json":4}`, parent, identity), 8, 4, "bridge (process "},
		{"a lease of a build that named none", held, fmt.Sprintf(`{"pid":%d,"identity":%q,"program":"bridge"}`, parent, identity), 0, 0, ""},
		{"a lease of a process that is gone", ".storage-users/999999-a", `{"pid":999999,"identity":"gone:1","program":"bridge","schema":8,"json":4}`, 0, 0, ""},
		{"this very process", fmt.Sprintf("storage-capabilities/%d.json", os.Getpid()), `{"json":1,"sqlite":1}`, 0, 0, ""},
		{"this very process's lease", fmt.Sprintf(".storage-users/%d-a", os.Getpid()), fmt.Sprintf(`{"pid":%d,"program":"bridge","schema":8,"json":4}`, os.Getpid()), 0, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newHome(t)
			if tt.path != "" {
				write(t, c.Home.Dir(), tt.path, tt.text)
			}
			older, err := lease.OlderPrograms(c.Home)
			if err != nil || older.Schema != tt.schema || older.JSON != tt.json || (len(older.Programs) > 0) != (tt.schema+tt.json > 0) {
				t.Errorf("Older = %+v, %v", older, err)
			}
			if who := strings.Join(older.Programs, ", "); !strings.Contains(who, tt.who) {
				t.Errorf("they are %q, want %q", who, tt.who)
			}
		})
	}
}

func TestVER_04_TheOldestOfSeveralProgramsCounts(t *testing.T) {
	for _, versions := range [][2]int{{7, 8}, {8, 7}} {
		c := newHome(t)
		write(t, c.Home.Dir(), fmt.Sprintf(".storage-users/%d-a", os.Getppid()), fmt.Sprintf(`{"pid":%d,"program":"bridge","schema":%d,"json":%d}`, os.Getppid(), versions[0], versions[0]-4))
		write(t, c.Home.Dir(), fmt.Sprintf("storage-capabilities/%d.json", os.Getppid()), fmt.Sprintf(`{"sqlite":%d,"json":%d}`, versions[1], versions[1]-4))
		older, err := lease.OlderPrograms(c.Home)
		if err != nil || older.Schema != 7 || older.JSON != 3 || len(older.Programs) != 2 {
			t.Errorf("%v: Older = %+v, %v", versions, older, err)
		}
	}
}

func TestVER_04_ALeaseSaysWhatItsProcessKnows(t *testing.T) {
	c := newHome(t)
	held, err := c.Worker().Register()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Release() }()
	writers, err := lease.Writers(c.Home)
	if err != nil || len(writers) != 1 || writers[0].Schema < 9 || writers[0].JSON < 4 {
		t.Errorf("leases: %+v, %v", writers, err)
	}
}

func TestVER_04_TheDoctorSaysWhomAnUpgradeWaitsFor(t *testing.T) {
	c := newHome(t)
	onStore(t, c, "PRAGMA user_version = 8")
	want := []string{"database-older bridge.db"}
	if diff := cmp.Diff(want, findings(report(t, c))); diff != "" {
		t.Error(diff)
	}
	write(t, c.Home.Dir(), fmt.Sprintf("storage-capabilities/%d.json", os.Getppid()), `{"json":4,"sqlite":7,"name":"tool","version":"0.29.13"}`)
	r := report(t, c)
	if diff := cmp.Diff([]string{"upgrade-deferred bridge.db"}, findings(r)); diff != "" {
		t.Error(diff)
	}
	if !r.OK || !strings.Contains(r.Findings[0].Detail, "tool 0.29.13 (process ") {
		t.Errorf("%+v", r)
	}
	c.ArchiveAge = time.Hour
	if _, err := c.Archive().Messages(t.Context()); bridge.CodeOf(err) != bridge.Unsupported || !strings.Contains(err.Error(), "waits until older programs have left: tool 0.29.13") {
		t.Errorf("the archive says %v", err)
	}
}

func TestVER_04_TheDoctorSeesACompatibilityStoreThatWaits(t *testing.T) {
	c := newHome(t)
	onStore(t, c, fmt.Sprintf("ATTACH '%s' AS compat; CREATE TABLE compat.outbox (id); PRAGMA compat.user_version = 1", c.Home.Compat()))
	if err := os.Chmod(c.Home.Compat(), 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"compat-waiting compat.db"}, findings(report(t, c))); diff != "" {
		t.Error(diff)
	}
	onStore(t, c, "PRAGMA user_version = 8")
	if diff := cmp.Diff([]string{"database-older bridge.db"}, findings(report(t, c))); diff != "" {
		t.Error(diff)
	}
	made, err := c.Snapshots().Backup(context.Background()) // it is one of the five databases
	if err != nil || !manifestOf(t, made.Path).Has("compat.db") {
		t.Errorf("Backup = %+v, %v", made, err)
	}
}

func TestVER_05_TheDoctorTellsOfWritesThatWait(t *testing.T) {
	c := newHome(t)
	shared := config.Shared{Home: c.Home, Now: c.Now, Hold: true}
	for _, id := range []string{"a", "b"} {
		if err := shared.Write("auto-wake.json", map[string]any{"sessions": map[string]bool{id: true}}); err != nil {
			t.Fatal(err)
		}
	}
	r := report(t, c)
	if diff := cmp.Diff([]string{"pending-writes pending-job-writes/v1"}, findings(r)); diff != "" || !r.OK {
		t.Error(diff)
	}
	write(t, c.Home.Dir(), "pending-job-writes/v1/jobs.json", `{"version":1,"jobs":[{"job":{"id":"1","name":"codex-job-00000001","agent":"codex","status":"done"}}]}`)
	write(t, c.Home.Dir(), "worktrees/r-codex-job-00000001/a.txt", "its worktree")
	if diff := cmp.Diff([]string{"pending-writes pending-job-writes/v1"}, findings(report(t, c))); diff != "" {
		t.Error(diff)
	}
	write(t, c.Home.Dir(), "pending-job-writes/v1/jobs.json", `{"version":1,"jo`)
	if found := findings(report(t, c)); !has(found, "pending-damaged pending-job-writes/v1/jobs.json") {
		t.Errorf("found %v", found)
	}
	write(t, c.Home.Dir(), "pending-job-writes/v1/jobs.json", `{"version":1,"jobs":[]}`)
	const damaged = "pending-job-writes/v1/000000000009-0b5f0b5f-0b5f-4b5f-8b5f-0b5f0b5f0b5f.json"
	write(t, c.Home.Dir(), damaged, `{"version":1}`)
	if found := findings(report(t, c)); !has(found, "pending-damaged "+damaged) {
		t.Errorf("found %v", found)
	}
	made, err := c.Snapshots().Backup(context.Background()) // the journal is part of a snapshot
	if err != nil || !manifestOf(t, made.Path).Has(damaged) {
		t.Errorf("Backup = %+v, %v", made, err)
	}
}
