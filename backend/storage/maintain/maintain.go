// Package maintain combines the maintenance of a home's storage (rows STO). Every part
// gets the same home, clock and settings; each task is described in sentences. The parts
// are check, the doctor's report; snapshot, sets of copies; restore, recovery from them;
// archive, data that is moved away; lease, permission to write; and inventory, the
// content of a home and its copies.
//
// Every change is prepared under a pending name, verified, and published by one rename;
// the replaced data is saved first. A crash at any step leaves the old state, the new
// one, or both.
//
// Terms: a snapshot is a full copy of the managed files; a recovery set holds what a
// restore displaced; a lease marks a writing process; the maintenance lock marks running
// maintenance; a restore test is a restore into a scratch home.
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

// Maintenance maintains one home. All fields are required unless stated otherwise.
type Maintenance struct {
	Home config.Home
	// Program names the program in leases and locks, such as "bridge doctor".
	Program string
	Now     func() time.Time
	// InBroker is set if this process is the home's broker and has its lock.
	InBroker bool
	// Retention is how many snapshots stay in place; 0 keeps all (seed 8).
	Retention int
	// ArchiveAge is the minimum age of archived data; 0 archives nothing.
	ArchiveAge time.Duration
	// OnProgress, if set, gets the progress of long work: what, done of all bytes or rows.
	OnProgress func(what string, done, all int64)

	// step, if set, is called before each step; an error makes the step fail. A test may
	// end the process there.
	step func(name string) error
}

// New returns the maintenance of a home by the settings. Program names the caller in
// leases and locks, as in "bridge doctor".
func New(home config.Home, program string, settings config.Settings, now func() time.Time) Maintenance {
	return Maintenance{Home: home, Program: program, Now: now, Retention: settings.BackupRetention, ArchiveAge: settings.ArchiveAge}
}

// Worker returns the worker for leases, locks and steps.
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
// broker has it. If the file does not exist, no broker has the lock, and the maintenance
// lock prevents a new broker.
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

// Snapshots returns the maker of sets of copies.
func (m Maintenance) Snapshots() snapshot.Maker {
	return snapshot.Maker{Worker: m.Worker(), Retention: m.Retention}
}

// Doctor returns the doctor of the home.
func (m Maintenance) Doctor() check.Doctor { return check.Doctor{Worker: m.Worker()} }

// Restores returns the restorer of the home.
func (m Maintenance) Restores() restore.Restorer { return restore.Restorer{Worker: m.Worker()} }

// Archive returns the mover of data that the home no longer needs.
func (m Maintenance) Archive() archive.Mover {
	return archive.Mover{Worker: m.Worker(), Age: m.ArchiveAge}
}
