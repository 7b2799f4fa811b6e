package check

import (
	"context"
	"path/filepath"
	"slices"

	"bridge/backend/core/bridge"
	"bridge/backend/core/needs"
	"bridge/backend/storage/maintain/inventory"
)

// Summary is a report in numbers.
type Summary struct {
	OK         bool   `json:"ok"` // no finding is an error
	Errors     int    `json:"errors"`
	Warnings   int    `json:"warnings"`
	LastBackup *int64 `json:"lastBackup"` // creation of the newest set of either kind, Unix milliseconds
}

// Summary returns the report in numbers: the one rule for all displays of it.
func (r Report) Summary() Summary {
	sum := Summary{OK: r.OK, Errors: r.Count(Error), Warnings: r.Count(Warning)}
	if len(r.Backups) > 0 {
		sum.LastBackup = &r.Backups[0].CreatedAt
	}
	return sum
}

// Worse merges two reports on one home: a problem in either one counts.
func (s Summary) Worse(other Summary) Summary {
	s.Errors, s.Warnings = max(s.Errors, other.Errors), max(s.Warnings, other.Warnings)
	s.OK = s.Errors == 0
	return s
}

// Into adds a report on the home to facts: errors of its storage, and agents whose program
// is gone. Known facts of an earlier report stay; since is the time of this report.
func (r Report) Into(facts *needs.Facts, since int64) {
	known, sum := &facts.Storage, r.Summary()
	if known.Since == 0 {
		known.Since = since
	}
	if known.Errors == 0 && (sum.Errors > 0 || known.First == "") && len(r.Findings) > 0 {
		first := r.Findings[0]
		known.First = first.Path + ": " + first.Detail
		known.Means, known.Do = r.Advice(first.Code)
	}
	joined := Summary{Errors: known.Errors, Warnings: known.Warnings}.Worse(sum)
	known.Errors, known.Warnings = joined.Errors, joined.Warnings
	for _, program := range r.GonePrograms {
		isKnown := slices.ContainsFunc(facts.Agents, func(a needs.AgentFact) bool { return a.Kind == program.Kind })
		if !isKnown {
			facts.Agents = append(facts.Agents, needs.AgentFact{Kind: program.Kind, Missing: needs.GoneDetail(program.Kind, program.Program) + ".", Since: since})
		}
	}
}

// Words returns the summary as part of a sentence.
func (s Summary) Words() string {
	warned := bridge.Counted(s.Warnings, "warning")
	switch {
	case s.Errors > 0 && s.Warnings > 0:
		return bridge.Counted(s.Errors, "error") + " and " + warned
	case s.Errors > 0:
		return bridge.Counted(s.Errors, "error")
	case s.Warnings > 0:
		return "healthy, with " + warned
	}
	return "healthy"
}

// QuickStatus is the state of the storage at a quick check. Data that was never made is nil.
type QuickStatus struct {
	Summary
	CheckedAt    int64                 `json:"checkedAt"`    // Unix milliseconds
	LastSnapshot *inventory.Set        `json:"lastSnapshot"` // the newest full one
	LastMessages *inventory.Set        `json:"lastMessages"` // the newest set of messages
	LastTest     *inventory.TestResult `json:"lastProof"`    // the newest successful restore test
	// Finding is the worst error; nil without one.
	Finding *Explained `json:"finding,omitempty"`
	// Report is the underlying report.
	Report Report `json:"-"`
	// ReadWhole is set if another check has found errors, too, such as a whole one.
	ReadWhole bool `json:"-"`
}

// Explained is a finding in three lines for people.
type Explained struct {
	What  string `json:"what"`  // what is wrong
	Means string `json:"means"` // what it means for the owner
	Do    string `json:"do"`    // what to do about it
}

// ExplainWorst returns the error that the facts have as the worst one, or nil without an
// error.
func ExplainWorst(storage needs.StorageFact) *Explained {
	if storage.Errors == 0 || storage.First == "" {
		return nil
	}
	return &Explained{What: storage.First + ".", Means: storage.Means, Do: storage.Do}
}

// QuickCheck returns the state of the storage by a QuickReport. It changes nothing. It
// fails as QuickReport does.
func (d Doctor) QuickCheck(ctx context.Context) (QuickStatus, error) {
	report, err := d.QuickReport(ctx)
	if err != nil {
		return QuickStatus{}, err
	}
	quick := QuickStatus{Summary: report.Summary(), CheckedAt: report.CheckedAt, Report: report}
	for i, set := range report.Backups { // newest first
		name := filepath.Base(set.Path)
		switch {
		case quick.LastSnapshot == nil && inventory.SnapshotName.MatchString(name):
			quick.LastSnapshot = &report.Backups[i]
		case quick.LastMessages == nil && inventory.MessagesName.MatchString(name):
			quick.LastMessages = &report.Backups[i]
		}
	}
	var facts needs.Facts
	report.Into(&facts, report.CheckedAt)
	quick.Finding = ExplainWorst(facts.Storage)
	if result, ok := inventory.LastPassed(d.Worker.Home.Backups()); ok {
		quick.LastTest = &result
	}
	return quick, nil
}

// TestResults returns the recorded results of restore tests, newest first. It fails if
// the record is unreadable.
func (d Doctor) TestResults() ([]inventory.TestResult, error) {
	return inventory.TestResults(d.Worker.Home.Backups())
}
