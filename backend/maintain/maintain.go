// Package maintain keeps a home's storage trustworthy (rows STO): the doctor's
// report, full snapshots and their rotation, restore and its proof, quarantine
// and the archive. Every change is prepared under a pending name, verified, and
// published by one rename; what it replaces is on the disk elsewhere first. A
// crash at any step leaves the old state, the new one, or both.
//
// Words: a snapshot is a full copy of the managed files; a recovery set holds
// what a restore displaced; a lease says that a process writes; the maintenance
// lock says that maintenance does; a drill is a restore into a scratch home.
package maintain

import (
	"time"

	"bridge/backend/config"
	"bridge/backend/maintain/check"
	"bridge/backend/maintain/lease"
	"bridge/backend/maintain/snapshot"
)

// Caretaker does the maintenance of one home. All fields are required unless
// they say otherwise.
type Caretaker struct {
	Home config.Home
	// Program says in leases and locks who works, as "bridge doctor".
	Program string
	Now     func() time.Time
	// Retention is how many snapshots stay in place; 0 keeps all there (seed 8).
	Retention int
	// ArchiveAge is how old what the archive takes must be; 0 takes nothing.
	ArchiveAge time.Duration
	// Told, when set, hears how far long work is: what, done of all bytes or rows.
	Told func(what string, done, all int64)

	// step, when set, is told each step before it happens; an error makes the
	// step fail, and a test may end the process there.
	step func(name string) error
}

// Worker is who does this work.
func (c Caretaker) Worker() lease.Worker {
	return lease.Worker{Home: c.Home, Program: c.Program, Now: c.Now, OnProgress: c.Told, Step: c.step}
}

// Snapshots makes sets of copies of the home.
func (c Caretaker) Snapshots() snapshot.Maker {
	return snapshot.Maker{Worker: c.Worker(), Retention: c.Retention}
}

// Doctor looks through the home.
func (c Caretaker) Doctor() check.Doctor { return check.Doctor{Worker: c.Worker()} }
