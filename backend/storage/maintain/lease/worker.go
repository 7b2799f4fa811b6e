// Package lease keeps those who work on one home out of each other's way: a lease
// says that a process writes, the maintenance lock says that maintenance does, and
// both name a process, so that those of the dead are told apart. It also knows
// which live programs are older than this build. It opens no database, so that a
// process that needs none links none.
package lease

import (
	"path/filepath"
	"time"

	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
)

// Worker is a process that writes to a home or maintains it. All fields are
// required unless they say otherwise.
type Worker struct {
	Home config.Home
	// Program says in leases and locks who works, as "bridge doctor".
	Program string
	Now     func() time.Time
	// NoStore, when set, reports whether the home has no store yet. Who only writes what a
	// broker with a store gave it need not look.
	NoStore func() bool
	// LockBroker, when set, takes the lock of a home's broker for work that needs exclusive
	// access, and returns what gives it up. It fails with Denied while a broker has it. A
	// broker, which has it, leaves this unset.
	LockBroker func(home config.Home) (unlock func() error, err error)
	// OnProgress, when set, hears how far long work is: what, done of all bytes or rows.
	OnProgress func(what string, done, all int64)
	// Step, when set, is told each step before it happens; an error makes the step
	// fail, and a test may end the process there.
	Step func(name string) error
}

// At is called before each step of a work.
func (w Worker) At(step string) error {
	if w.Step == nil {
		return nil
	}
	return w.Step(step)
}

// Progress tells how far a work is.
func (w Worker) Progress(what string, done, all int64) {
	if w.OnProgress != nil {
		w.OnProgress(what, done, all)
	}
}

// ProgressOf gives what hears how far one work is.
func (w Worker) ProgressOf(what string) func(done, all int64) {
	return func(done, all int64) { w.Progress(what, done, all) }
}

// Files writes durably, each write being steps of the worker's.
func (w Worker) Files() disk.Files {
	return disk.Files{Before: func(step disk.Step, path string) error {
		return w.At(string(step) + " " + filepath.Base(path))
	}}
}
