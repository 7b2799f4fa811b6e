// Package storage is the dashboard's part about the home's storage: its state, and
// work on it at the owner's request (rows STO-02, STO-03, DSK-06). The doctor and
// the maintenance do the work; this package never writes to the home.
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

// Doctor inspects the home's storage; check.Doctor implements it. Neither method
// changes anything.
type Doctor interface {
	Check(ctx context.Context) (check.Report, error)
	TestResults() ([]inventory.TestResult, error)
}

// The maximum ages of a doctor's report. A slow report is cached for many times its
// duration, so that inspections take at most a twentieth of the time.
const (
	reportAge  = 15 * time.Second // of GET /api/storage
	summaryAge = 10 * time.Minute // of the sum in GET /api/state
	reportRest = 20
	// firstLook is how long a page waits for the first report; most inspections are
	// faster.
	firstLook = 300 * time.Millisecond
)

// Reports caches the last report and refreshes it on demand.
type Reports struct {
	doctor Doctor
	now    func() time.Time
	wanted lifecycle.Signal // a summary is wanted
	first  chan struct{}    // closed after the first inspection

	looking sync.Mutex // held during an inspection
	known   atomic.Pointer[Checked]
}

// Checked is a report with its time and duration.
type Checked struct {
	report check.Report
	at     time.Time
	took   time.Duration
	// badSince is the time of the first inspection with errors since the last
	// healthy one; for a healthy report its own time.
	badSince time.Time
}

// NewReports returns Reports of a doctor; nil disables inspections.
func NewReports(doctor Doctor, now func() time.Time) *Reports {
	return &Reports{doctor: doctor, now: now, wanted: lifecycle.NewSignal(), first: make(chan struct{})}
}

func (c *Checked) fresh(now time.Time, age time.Duration) bool {
	return c != nil && now.Sub(c.at) < max(age, reportRest*c.took)
}

// report returns a report that is at most age old, or several times its duration.
// Concurrent callers share one inspection.
func (s *Reports) report(ctx context.Context, age time.Duration) (check.Report, error) {
	s.looking.Lock()
	defer s.looking.Unlock()
	if known := s.known.Load(); known.fresh(s.now(), age) {
		return known.report, nil
	}
	return s.inspectLocked(ctx)
}

// look makes a new report in any case.
func (s *Reports) look(ctx context.Context) (check.Report, error) {
	s.looking.Lock()
	defer s.looking.Unlock()
	return s.inspectLocked(ctx)
}

func (s *Reports) inspectLocked(ctx context.Context) (check.Report, error) {
	began := s.now()
	report, err := s.doctor.Check(ctx)
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

// Run makes a report whenever a summary is wanted, until ctx ends.
func (s *Reports) Run(ctx context.Context, failed func(error)) {
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

// Latest returns the cached report without an inspection, or nil before the first
// one. It requests a new one if that is due, and waits briefly for the first.
func (s *Reports) Latest(ctx context.Context) *Checked {
	if s.doctor == nil {
		return nil
	}
	known := s.known.Load()
	if known.fresh(s.now(), summaryAge) {
		return known
	}
	s.notify()
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

// Sum returns the summary of the report. What could not be read since then is an error.
func (c *Checked) Sum(unreadable []string) (sum dto.StorageSum) {
	if c != nil {
		known := c.report.Summary()
		sum = dto.StorageSum{OK: &known.OK, Errors: known.Errors, Warnings: known.Warnings, LastBackup: known.LastBackup}
	}
	if len(unreadable) > 0 && sum.Errors == 0 {
		sum.OK, sum.Errors = new(bool), 1
	}
	return sum
}

// Into adds the report's findings to facts.
func (c *Checked) Into(facts *needs.Facts, home string) {
	facts.Storage.Home = home
	if c != nil {
		c.report.Into(facts, c.badSince.UnixMilli())
	}
}

// AddUnreadable adds what of the store could not be read since that time, with the advice
// of the report's home.
func (c *Checked) AddUnreadable(facts *needs.Facts, sentences []string, since int64) {
	var report *check.Report
	if c != nil {
		report = &c.report
	}
	means, do := report.ReadDamage()
	facts.AddUnreadable(sentences, means, do, since)
}

// notify requests a new report.
func (s *Reports) notify() {
	s.wanted.Notify()
}

// Show answers GET /api/storage (STO-03).
func (s *Reports) Show(w http.ResponseWriter, r *http.Request) error {
	if s.doctor == nil {
		return bridge.Errorf(bridge.Unavailable, "the storage cannot be looked at from here: run `bridge doctor`")
	}
	report, err := s.report(r.Context(), reportAge)
	if err != nil {
		return err
	}
	return httpjson.WriteJSON(w, ReportShape(report))
}

// Drills answers GET /api/storage/drills: the tested snapshots.
func (s *Reports) Drills(w http.ResponseWriter, _ *http.Request) error {
	if s.doctor == nil {
		return httpjson.WriteJSON(w, dto.Drills{Drills: []dto.Drill{}})
	}
	results, err := s.doctor.TestResults()
	if err != nil {
		return fmt.Errorf("read the drills: %w", err)
	}
	return httpjson.WriteJSON(w, dto.Drills{Drills: dto.Each(results, DrillShape)})
}

// DrillShape returns the answer's form of a drill.
func DrillShape(r inventory.TestResult) dto.Drill {
	return dto.Drill{At: r.At, Snapshot: r.Snapshot, OK: r.OK, Detail: r.Detail, Files: r.Files, Rows: r.Rows}
}

// ReportShape returns the answer's form of a report.
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
