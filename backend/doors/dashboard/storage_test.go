package dashboard

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/platform/config"
	"bridge/backend/storage/maintain"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/storage/maintain/inventory"
)

// toldStorage answers with a fixed report and counts the looks.
type toldStorage struct {
	report check.Report
	err    error
	looks  atomic.Int32
}

func (s *toldStorage) Check(context.Context) (check.Report, error) {
	s.looks.Add(1)
	return s.report, s.err
}

func (s *toldStorage) TestResults() ([]inventory.TestResult, error) {
	return []inventory.TestResult{{At: 1772632000000, Snapshot: "snapshot-1772630000000-x", OK: true, Detail: "2 files and 12 rows were restored", Files: 2, Rows: 12}}, nil
}

func sampleStorage() *toldStorage {
	return &toldStorage{report: check.Report{
		CheckedAt: 1772632800000,
		Schema:    []check.Schema{{Path: "bridge.db", Actual: 9, Expected: 9}},
		Findings: []check.Finding{
			{Severity: check.Error, Code: check.JSONDamaged, Path: "jobs.json", Detail: "it is not valid JSON: unexpected end of JSON input"},
			{Severity: check.Warning, Code: check.TempAbandoned, Path: ".jobs.json.bridge-tmp-ABC", Detail: "a write to it was never finished", Fixable: true},
		},
		Sizes:      []check.Size{{Path: "bridge.db", Bytes: 245760}, {Path: "jobs.json", Bytes: 12}},
		TotalBytes: 245772,
		Backups:    []inventory.Set{{Path: "backups/snapshot-1772630000000-x", CreatedAt: 1772630000000}},
	}}
}

func TestSTO_02_TheReportHasTheSpecifiedShape(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Storage = sampleStorage() })
	golden(t, "storage", w.get("/api/storage").body)
	golden(t, "drills", w.get("/api/storage/drills").body)
	if body := w.get("/api/state").body; !strings.Contains(body, `"storage":{"ok":false,"errors":1,"warnings":1,"lastBackup":1772630000000}`) {
		t.Errorf("the state does not sum the report up: %s", body)
	}
}

func TestSTO_03_ManyRequestsLookOnce(t *testing.T) {
	storage := sampleStorage()
	w := newWorld(t, func(o *Options) { o.Storage = storage })
	for range 5 {
		w.get("/api/storage")
		w.get("/api/state")
	}
	if looks := storage.looks.Load(); looks != 1 {
		t.Errorf("looked %d times", looks)
	}
	w.clock.Advance(15 * time.Second)
	w.get("/api/storage")
	if looks := storage.looks.Load(); looks != 2 {
		t.Errorf("after the report grew old: looked %d times", looks)
	}
}

func TestSTO_03_TheRealReportChangesNothing(t *testing.T) {
	var dir string
	w := newWorld(t, func(o *Options) {
		home, err := config.ResolveHome(filepath.Join(t.TempDir(), "home"), func(string) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		if dir = home.Dir(); os.Mkdir(dir, 0o700) != nil {
			t.Fatal(dir)
		}
		o.Storage = maintain.Maintenance{Home: home, Program: "a test", Now: o.Now}.Doctor()
	})
	if got := w.get("/api/storage"); got.status != http.StatusOK || !strings.Contains(got.body, `"ok":true`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := w.get("/api/storage/drills"); got.body != `{"drills":[]}` {
		t.Errorf("%s", got.body)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("the look made %v, %v", entries, err)
	}
}

func TestSTO_03_AFailedLookIsAnErrorAndLeavesTheSumOpen(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Storage = &toldStorage{err: errors.New("no such disk")} })
	if got := w.get("/api/storage"); got.status != http.StatusInternalServerError || strings.Contains(got.body, "disk") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if body := w.get("/api/state").body; !strings.Contains(body, `"storage":{"ok":null,"errors":0,"warnings":0,"lastBackup":null}`) {
		t.Errorf("%s", body)
	}
	none := newWorld(t)
	if got := none.get("/api/storage"); got.status != http.StatusServiceUnavailable {
		t.Errorf("without storage: %d %s", got.status, got.body)
	}
	if diff := cmp.Diff(`{"drills":[]}`, none.get("/api/storage/drills").body); diff != "" {
		t.Error(diff)
	}
}
