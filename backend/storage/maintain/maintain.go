// Package maintain joins what keeps a home's storage trustworthy (rows STO): it
// gives every part the same home, clock and settings, and says in sentences what
// each work is going to do. The parts are check, the doctor's report; snapshot, sets
// of copies; restore, what brings a home back from them; archive, what is put away;
// lease, who may write; and inventory, what a home and its copies hold.
//
// Every change is prepared under a pending name, verified, and published by one
// rename; what it replaces is on the disk elsewhere first. A crash at any step
// leaves the old state, the new one, or both.
//
// Words: a snapshot is a full copy of the managed files; a recovery set holds
// what a restore displaced; a lease says that a process writes; the maintenance
// lock says that maintenance does; a restore test is a restore into a scratch home.
package maintain

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/maintain/archive"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/storage/maintain/lease"
	"bridge/backend/storage/maintain/restore"
	"bridge/backend/storage/maintain/snapshot"
)

// Maintenance is what is done to keep one home. All fields are required unless
// they say otherwise.
type Maintenance struct {
	Home config.Home
	// Program says in leases and locks who works, as "bridge doctor".
	Program string
	Now     func() time.Time
	// InBroker says that this process is the home's broker and has its lock.
	InBroker bool
	// Retention is how many snapshots stay in place; 0 keeps all there (seed 8).
	Retention int
	// ArchiveAge is how old what the archive takes must be; 0 takes nothing.
	ArchiveAge time.Duration
	// OnProgress, when set, hears how far long work is: what, done of all bytes or rows.
	OnProgress func(what string, done, all int64)

	// step, when set, is told each step before it happens; an error makes the
	// step fail, and a test may end the process there.
	step func(name string) error
}

// New returns the maintenance of a home by the settings. Program names the caller in leases
// and locks, as in "bridge doctor".
func New(home config.Home, program string, settings config.Settings, now func() time.Time) Maintenance {
	return Maintenance{Home: home, Program: program, Now: now, Retention: settings.BackupRetention, ArchiveAge: settings.ArchiveAge}
}

// Worker is who does this work.
func (m Maintenance) Worker() lease.Worker {
	worker := lease.Worker{
		Home: m.Home, Program: m.Program, Now: m.Now, OnProgress: m.OnProgress, Step: m.step,
		NoStore: func() bool { return check.MissingStore(context.Background(), m.Home, false) != "" },
	}
	if !m.InBroker {
		worker.LockBroker = lockBroker
	}
	return worker
}

// lockBroker takes the lock by which brokers are elected. It fails with Denied while a
// broker has it. Where there is no such file no broker has it, and the maintenance lock
// keeps a new broker away.
func lockBroker(home config.Home) (unlock func() error, err error) {
	if _, err := os.Lstat(home.BrokerLock()); errors.Is(err, fs.ErrNotExist) {
		return func() error { return nil }, nil
	}
	lock, err := sqlitex.AcquireLock(context.Background(), home.BrokerLock())
	if errors.Is(err, sqlitex.ErrLocked) {
		return nil, bridge.Errorf(bridge.Denied, "a broker serves this home: stop the broker and its sessions first, also those in containers that use this home")
	}
	if err != nil {
		return nil, err
	}
	return lock.Release, nil
}

// Snapshots makes sets of copies of the home.
func (m Maintenance) Snapshots() snapshot.Maker {
	return snapshot.Maker{Worker: m.Worker(), Retention: m.Retention}
}

// Doctor looks through the home.
func (m Maintenance) Doctor() check.Doctor { return check.Doctor{Worker: m.Worker()} }

// Restores brings the home back from sets of copies.
func (m Maintenance) Restores() restore.Restorer { return restore.Restorer{Worker: m.Worker()} }

// Archive moves what the home needs no more.
func (m Maintenance) Archive() archive.Mover {
	return archive.Mover{Worker: m.Worker(), Age: m.ArchiveAge}
}
