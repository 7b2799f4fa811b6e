// Package costs counts what Bridge puts into the contexts of the sessions: the tools, the
// session-start notes, the mail, and the notices of decisions (CTX-03). A text counts when
// it was handed over. The counts are an estimate and no ledger: a crash of the broker may
// lose those of the last 30 seconds.
package costs

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"bridge/backend/core/session"
	"bridge/backend/platform/config"
)

const (
	// KeptDays is how many days are kept, today included.
	KeptDays = 30
	// mostRows and mostReported bound the file. The oldest go first.
	mostRows     = 10_000
	mostReported = 2_000
	// writeEvery is the longest time that a count is in memory only.
	writeEvery = 30 * time.Second

	dayForm = "2006-01-02"
)

// File keeps the counts; config.CostsFile implements it.
type File interface {
	Costs() (config.Costs, error)
	SetCosts(costs config.Costs) error
}

// row names one number: a session on one day.
type row struct{ day, session string }

// Counter counts. All methods are safe for concurrent use.
type Counter struct {
	file File
	now  func() time.Time
	log  *slog.Logger

	mu       sync.Mutex // guards the fields below
	rows     map[row]session.Cost
	reported map[string]config.ReportedCost
	broken   bool // the file was unreadable: it is not overwritten
	changed  bool // since the file was written

	writing sync.Mutex // serializes writes of the file
}

// Open returns a counter with the counts of the file. If the file is unreadable, it logs
// the error, counts in memory only, and leaves the file as it is.
func Open(file File, now func() time.Time, log *slog.Logger) *Counter {
	c := &Counter{file: file, now: now, log: log, rows: map[row]session.Cost{}, reported: map[string]config.ReportedCost{}}
	stored, err := file.Costs()
	if err != nil {
		log.Warn("what the sessions cost is not kept", "err", err)
		c.broken = true
		return c
	}
	for _, day := range stored.Days {
		at := row{day.Day, day.Session}
		c.rows[at] = c.rows[at].Plus(day.Cost)
	}
	for _, cost := range stored.Reported {
		c.reported[cost.ID] = cost
	}
	return c
}

// Add counts a text for a session, today.
func (c *Counter) Add(sessionID string, cost session.Cost) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addLocked(sessionID, cost)
}

// Subtract removes a text from the counts of a session, the newest day first: the session
// was not shown it.
func (c *Counter) Subtract(sessionID string, cost session.Cost) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, at := range c.sortedLocked() {
		if at.session == sessionID && !cost.IsZero() {
			had := c.rows[at]
			c.rows[at], cost = had.Beyond(cost), cost.Beyond(had)
			c.changed = true
		}
	}
}

// Report counts by how much the total of a reporter exceeds the last one. A repeated report
// counts nothing, also after the broker was replaced.
func (c *Counter) Report(sessionID, reporter string, total session.Cost) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.reported[reporter]
	c.addLocked(sessionID, total.Beyond(last.Cost))
	next := config.ReportedCost{ID: reporter, At: c.now().UnixMilli(), Cost: last.Plus(total.Beyond(last.Cost))}
	c.reported[reporter] = next
	c.changed = true
}

// Move adds the counts of a session to those of another name for it.
func (c *Counter) Move(from, to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if from == to {
		return
	}
	for at, cost := range c.rows {
		if at.session == from {
			delete(c.rows, at)
			into := row{at.day, to}
			c.rows[into] = c.rows[into].Plus(cost)
			c.changed = true
		}
	}
}

func (c *Counter) addLocked(sessionID string, cost session.Cost) {
	if sessionID == "" || cost.IsZero() {
		return
	}
	at := row{c.now().Format(dayForm), sessionID}
	c.rows[at] = c.rows[at].Plus(cost)
	c.changed = true
}

// Days returns the counts of the kept days, the newest day first.
func (c *Counter) Days() []config.DayCost {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.daysLocked()
}

func (c *Counter) daysLocked() []config.DayCost {
	oldest := c.now().AddDate(0, 0, 1-KeptDays).Format(dayForm)
	rows := c.sortedLocked()
	days := []config.DayCost{}
	for _, at := range rows[:min(len(rows), mostRows)] {
		if cost := c.rows[at]; at.day >= oldest && !cost.IsZero() {
			days = append(days, config.DayCost{Day: at.day, Session: at.session, Cost: cost})
		}
	}
	return days
}

// sortedLocked returns the rows, the newest day first.
func (c *Counter) sortedLocked() []row {
	rows := make([]row, 0, len(c.rows))
	for at := range c.rows {
		rows = append(rows, at)
	}
	slices.SortFunc(rows, func(x, y row) int {
		return cmp.Or(cmp.Compare(y.day, x.day), cmp.Compare(x.session, y.session))
	})
	return rows
}

// Run writes the counts every 30 seconds while they change, until ctx ends.
func (c *Counter) Run(ctx context.Context) {
	ticker := time.NewTicker(writeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			c.Write()
		case <-ctx.Done():
			return
		}
	}
}

// Write writes the counts, if they have changed since. If that fails, it logs the error,
// and the next Write tries again.
func (c *Counter) Write() {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	stored, due := c.storedLocked(), c.changed && !c.broken
	c.changed = false
	c.mu.Unlock()
	if !due {
		return
	}
	if err := c.file.SetCosts(stored); err != nil {
		c.log.Warn("what the sessions cost was not written", "err", err)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.changed = true
	}
}

// storedLocked returns what the file holds from now on, and forgets the rest.
func (c *Counter) storedLocked() config.Costs {
	stored := config.Costs{Days: c.daysLocked(), Reported: make([]config.ReportedCost, 0, len(c.reported))}
	clear(c.rows)
	for _, day := range stored.Days {
		c.rows[row{day.Day, day.Session}] = day.Cost
	}
	oldest := c.now().AddDate(0, 0, -KeptDays).UnixMilli()
	for _, cost := range c.reported {
		if cost.At >= oldest {
			stored.Reported = append(stored.Reported, cost)
		}
	}
	slices.SortFunc(stored.Reported, func(x, y config.ReportedCost) int {
		return cmp.Or(cmp.Compare(y.At, x.At), cmp.Compare(x.ID, y.ID))
	})
	stored.Reported = stored.Reported[:min(len(stored.Reported), mostReported)]
	clear(c.reported)
	for _, cost := range stored.Reported {
		c.reported[cost.ID] = cost
	}
	return stored
}
