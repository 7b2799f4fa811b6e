// Package storage is the part of the dashboard about the home's storage: how it is, and
// work on it when the owner asks for that (rows STO-02, STO-03, DSK-06). What is found
// and what is done is the doctor's and the maintenance's; nothing here writes to the home.
package storage

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/needs"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/httpjson"
	"bridge/backend/platform/lifecycle"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/storage/maintain/inventory"
)

// Doctor is who is asked about the home's storage; check.Doctor is one. Neither method
// changes anything.
type Doctor interface {
	Check(ctx context.Context) (check.Report, error)
	TestResults() ([]inventory.TestResult, error)
}

// How old a doctor's report may be. One that took long is kept for many times
// as long, so that looking costs at most a twentieth of the time.
const (
	reportAge  = 15 * time.Second // of GET /api/storage
	summaryAge = 10 * time.Minute // of the sum in GET /api/state
	reportRest = 20
	// firstLook is how long a page waits for the first report: most homes are
	// looked through in less.
	firstLook = 300 * time.Millisecond
)

// Reports keeps the last report and looks anew when somebody needs it.
type Reports struct {
	of     Doctor
	now    func() time.Time
	wanted lifecycle.Signal // a sum is wanted
	first  chan struct{}    // closed when the first look has ended

	looking sync.Mutex // held by whoever looks
	known   atomic.Pointer[Checked]
}

// Checked is a report, when it was made and how long that took.
type Checked struct {
	report check.Report
	at     time.Time
	took   time.Duration
	// badSince is the first of the looks without a healthy one between that found
	// errors; of a healthy one its own time.
	badSince time.Time
}

// NewReports asks of, nil where nothing can look.
func NewReports(of Doctor, now func() time.Time) *Reports {
	return &Reports{of: of, now: now, wanted: lifecycle.NewSignal(), first: make(chan struct{})}
}

func (c *Checked) fresh(now time.Time, age time.Duration) bool {
	return c != nil && now.Sub(c.at) < max(age, reportRest*c.took)
}

// report returns a report that is at most age old, or several times as old as
// it took. Of many that ask at once one looks.
func (s *Reports) report(ctx context.Context, age time.Duration) (check.Report, error) {
	s.looking.Lock()
	defer s.looking.Unlock()
	if known := s.known.Load(); known.fresh(s.now(), age) {
		return known.report, nil
	}
	return s.lookLocked(ctx)
}

// look looks now, whatever is known.
func (s *Reports) look(ctx context.Context) (check.Report, error) {
	s.looking.Lock()
	defer s.looking.Unlock()
	return s.lookLocked(ctx)
}

func (s *Reports) lookLocked(ctx context.Context) (check.Report, error) {
	began := s.now()
	report, err := s.of.Check(ctx)
	if err != nil {
		return check.Report{}, fmt.Errorf("check the storage: %w", err)
	}
	found := &Checked{report: report, at: s.now(), took: s.now().Sub(began), badSince: s.now()}
	if known := s.known.Load(); known != nil && !known.report.OK && !report.OK {
		found.badSince = known.badSince
	}
	s.known.Store(found)
	return report, nil
}

// Follow looks whenever a sum is wanted, until ctx ends.
func (s *Reports) Follow(ctx context.Context, failed func(error)) {
	ended := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wanted:
		}
		if _, err := s.report(ctx, summaryAge); err != nil && ctx.Err() == nil {
			failed(err)
		}
		if !ended {
			ended = true
			close(s.first)
		}
	}
}

// Latest is what is known without looking, nil before the first look. It asks
// for a new look when that is due, and waits a moment for the first one.
func (s *Reports) Latest(ctx context.Context) *Checked {
	if s.of == nil {
		return nil
	}
	known := s.known.Load()
	if known.fresh(s.now(), summaryAge) {
		return known
	}
	s.want()
	if known != nil {
		return known
	}
	timer := time.NewTimer(firstLook)
	defer timer.Stop()
	select {
	case <-s.first:
	case <-timer.C:
	case <-ctx.Done():
	}
	return s.known.Load()
}

// Sum sums the report up.
func (c *Checked) Sum() dto.StorageSum {
	if c == nil {
		return dto.StorageSum{}
	}
	sum := c.report.Summary()
	return dto.StorageSum{OK: &sum.OK, Errors: sum.Errors, Warnings: sum.Warnings, LastBackup: sum.LastBackup}
}

// Into adds to facts what a look at the home found.
func (c *Checked) Into(facts *needs.Facts, home string) {
	facts.Storage.Home = home
	if c != nil {
		c.report.Into(facts, c.badSince.UnixMilli())
	}
}

// want asks for a look.
func (s *Reports) want() {
	s.wanted.Notify()
}

// Show answers GET /api/storage (STO-03).
func (s *Reports) Show(w http.ResponseWriter, r *http.Request) error {
	if s.of == nil {
		return bridge.Errorf(bridge.Unavailable, "the storage cannot be looked at from here: run `bridge doctor`")
	}
	report, err := s.report(r.Context(), reportAge)
	if err != nil {
		return err
	}
	return httpjson.WriteJSON(w, ReportShape(report))
}

// Drills answers GET /api/storage/drills: which snapshots were proven.
func (s *Reports) Drills(w http.ResponseWriter, _ *http.Request) error {
	if s.of == nil {
		return httpjson.WriteJSON(w, dto.Drills{Drills: []dto.Drill{}})
	}
	results, err := s.of.TestResults()
	if err != nil {
		return fmt.Errorf("read the drills: %w", err)
	}
	return httpjson.WriteJSON(w, dto.Drills{Drills: dto.Each(results, DrillShape)})
}

// DrillShape is what is answered of a drill.
func DrillShape(r inventory.TestResult) dto.Drill {
	return dto.Drill{At: r.At, Snapshot: r.Snapshot, OK: r.OK, Detail: r.Detail, Files: r.Files, Rows: r.Rows}
}

// ReportShape is what is answered of a report.
func ReportShape(r check.Report) dto.Report {
	return dto.Report{
		CheckedAt: r.CheckedAt, OK: r.OK, TotalBytes: r.TotalBytes,
		Schema: dto.Each(r.Schema, func(s check.Schema) dto.Schema {
			return dto.Schema{Path: s.Path, Actual: s.Actual, Expected: s.Expected}
		}),
		Findings: dto.Each(r.Findings, func(f check.Finding) dto.Finding {
			return dto.Finding{Severity: string(f.Severity), Code: string(f.Code), Path: f.Path, Detail: f.Detail, Fixable: f.Fixable}
		}),
		Sizes:   dto.Each(r.Sizes, func(s check.Size) dto.Size { return dto.Size{Path: s.Path, Bytes: s.Bytes} }),
		Backups: dto.Each(r.Backups, func(s inventory.Set) dto.Backup { return dto.Backup{Path: s.Path, CreatedAt: s.CreatedAt} }),
	}
}
