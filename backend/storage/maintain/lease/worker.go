// Package lease coordinates the processes that work on one home. A lease marks a writing
// process, and the maintenance lock marks maintenance. Both name a process, so that those
// of dead processes are recognised. It also knows which live programs are older than this
// build. It opens no database, so that a process that needs none links none.
package lease

import (
	"path/filepath"
	"time"

	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
)

// Worker is a process that writes to a home or maintains it. All fields are required
// unless stated otherwise.
type Worker struct {
	Home config.Home
	// Program names the program in leases and locks, such as "bridge doctor".
	Program string
	Now     func() time.Time
	// NoStore, if set, reports whether the home has no store yet. A process that only
	// writes data from a broker with a store need not set it.
	NoStore func() bool
	// LockBroker, if set, takes the lock of a home's broker for work that needs exclusive
	// access. It returns the function that releases the lock. It fails with Denied while
	// a broker has the lock. A broker leaves LockBroker unset, because it has the lock.
	LockBroker func(home config.Home) (unlock func() error, err error)
	// OnProgress, if set, gets the progress of long work: what, done of all bytes or rows.
	OnProgress func(what string, done, all int64)
	// Step, if set, is called before each step; an error makes the step fail. A test may
	// end the process there.
	Step func(name string) error
}

// At calls Step before a step of a work. It fails if Step does.
func (w Worker) At(step string) error {
	if w.Step == nil {
		return nil
	}
	return w.Step(step)
}

// Progress reports how far a work is.
func (w Worker) Progress(what string, done, all int64) {
	if w.OnProgress != nil {
		w.OnProgress(what, done, all)
	}
}

// ProgressOf returns a function that reports the progress of one work.
func (w Worker) ProgressOf(what string) func(done, all int64) {
	return func(done, all int64) { w.Progress(what, done, all) }
}

// Files returns a durable file writer that calls Step before each write step.
func (w Worker) Files() disk.Files {
	return disk.Files{Before: func(step disk.Step, path string) error {
		return w.At(string(step) + " " + filepath.Base(path))
	}}
}
