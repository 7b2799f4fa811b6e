package lease

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/proc"
)

// Holder is the content of a lease and of the maintenance lock: the process that has it.
// Identity is from proc.Identity. It differs for a process that got the same process id
// later, or after a restart of the computer. Namespace is that of the process id, as
// [proc.Namespace] returns it.
type Holder struct {
	PID       int    `json:"pid"`
	Identity  string `json:"identity,omitempty"`
	Namespace string `json:"namespace,omitempty"`

	Program string `json:"program"`
	What    string `json:"what,omitempty"` // of a lock: fix, restore, merge, replacement or archive
	Since   int64  `json:"since"`          // Unix milliseconds
	// Schema and JSON are the newest forms of bridge.db and of the JSON stores that the
	// process knows: newer builds do not upgrade them meanwhile (Older).
	Schema int `json:"schema,omitempty"`
	JSON   int `json:"json,omitempty"`
	// NoStore is set if the home had no store yet: such a lease is no evidence of a lost
	// one.
	NoStore bool `json:"noStore,omitempty"`

	path string // the file that the holder was read from, "" for none
}

// maxHolderBytes limits a lease or lock.
const maxHolderBytes = 64 << 10

func (w Worker) self(what string) Holder {
	own := Holder{PID: os.Getpid(), Namespace: proc.Namespace(), Program: w.Program, What: what, Since: w.Now().UnixMilli(), Schema: bridge.StoreVersion, JSON: SharedForm}
	if identity, err := proc.Identity(own.PID); err == nil {
		own.Identity = identity // without one, the process id alone must do
	}
	return own
}

func (h Holder) bytes() ([]byte, error) {
	data, err := json.Marshal(h)
	return append(data, '\n'), err
}

// Lives reports whether the holder's process runs (RWM-05). It runs while its file is
// locked, in any process namespace. If the file is not locked, the process id decides. An
// id of another namespace counts as alive if the lock cannot be checked. Age has no
// meaning: a writer may live for months.
func (h Holder) Lives() bool {
	isLocked, lockErr := false, errors.ErrUnsupported
	if h.path != "" {
		isLocked, lockErr = disk.IsLocked(h.path)
	}
	if isLocked {
		return true
	}
	if own := proc.Namespace(); h.Namespace != "" && own != "" && h.Namespace != own {
		return lockErr != nil && !errors.Is(lockErr, fs.ErrNotExist) && sameBoot(h.Identity)
	}
	if h.Identity == "" {
		return proc.Alive(h.PID)
	}
	current, err := proc.Identity(h.PID)
	if errors.Is(err, proc.ErrGone) {
		return false
	}
	return err != nil || current == h.Identity
}

// sameBoot reports whether an identity may be of a process that began since the computer
// was started.
func sameBoot(identity string) bool {
	own, err := proc.Identity(os.Getpid())
	if err != nil || identity == "" {
		return true
	}
	ownBoot, _, _ := strings.Cut(own, ":")
	boot, _, _ := strings.Cut(identity, ":")
	return boot == ownBoot
}

// Lease marks this process as a writer of the home, until it is released or the process
// ends (STO-09). Its file is locked for that time.
type Lease struct {
	path string
	own  Holder
	lock *disk.FileLock
}

// Register takes a lease. It fails with Denied while a fix, a restore or a merge has the
// home, even an interrupted one.
func (w Worker) Register() (*Lease, error) {
	if err := disk.MakeDir(w.Home.StorageUsers()); err != nil {
		return nil, err
	}
	if err := dropStale(w.Home); err != nil {
		return nil, err
	}
	own := w.self("")
	own.NoStore = w.NoStore != nil && w.NoStore()
	data, err := own.bytes()
	if err != nil {
		return nil, err
	}
	lease := &Lease{path: filepath.Join(w.Home.StorageUsers(), fmt.Sprintf("%d-%s", own.PID, uuid.NewString())), own: own}
	if lease.lock, err = (disk.Files{}).WriteNewLocked(lease.path, data); err != nil {
		return nil, fmt.Errorf("register as a writer: %w", err)
	}
	// Register checks the lock after the lease exists, and maintenance checks leases
	// after it has the lock: one of the two sees the other.
	if err := CheckFree(w.Home); err != nil {
		return nil, errors.Join(err, lease.Release())
	}
	return lease, nil
}

// RecordStore records that the home has a store now, for a lease that was taken before.
// It fails if the lease file cannot be written.
func (l *Lease) RecordStore() error {
	if !l.own.NoStore {
		return nil
	}
	l.own.NoStore = false
	data, err := l.own.bytes()
	if err != nil {
		return err
	}
	lock, err := disk.Files{}.WriteAtomicLocked(l.path, data)
	if lock == nil {
		return err // the old file and its lock still exist
	}
	err = errors.Join(err, l.lock.Release())
	l.lock = lock
	return err
}

// Release releases the lease. It fails if the lease file cannot be removed.
func (l *Lease) Release() error {
	if err := os.Remove(l.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("give up the lease: %w", err)
	}
	return l.lock.Release()
}

// dropStale removes the leases of processes that have certainly ended.
func dropStale(home config.Home) error {
	writers, err := Writers(home)
	if err != nil {
		return err
	}
	for _, writer := range writers {
		if writer.Readable && !writer.Lives() {
			if err := (&Lease{path: writer.Path}).Release(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Writer is a lease that was read.
type Writer struct {
	Holder
	Path     string
	Readable bool // false: its holder is unknown
}

// Blocks reports whether maintenance must wait. No live writer may be harmed, so an
// unreadable lease counts as alive.
func (w Writer) Blocks() bool { return !w.Readable || w.Lives() }

// Writers returns the leases. It fails if their folder is unreadable.
func Writers(home config.Home) ([]Writer, error) {
	entries, err := os.ReadDir(home.StorageUsers())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the live writers: %w", err)
	}
	var found []Writer
	for _, entry := range entries {
		if disk.IsTemp(entry.Name()) {
			continue
		}
		path := filepath.Join(home.StorageUsers(), entry.Name())
		if lease, ok := readLease(path); ok {
			found = append(found, lease)
		}
	}
	return found, nil
}

// readLease reads one lease; ok is false if it has just been released. The process id is
// in the name, so a lease with other content counts too.
func readLease(path string) (lease Writer, ok bool) {
	lease.Path = path
	data, err := disk.ReadLimited(path, maxHolderBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return lease, false
	}
	number, _, _ := strings.Cut(filepath.Base(path), "-")
	pid, numberErr := strconv.Atoi(number)
	if err != nil || numberErr != nil || pid <= 0 {
		return lease, true
	}
	if json.Unmarshal(data, &lease.Holder) != nil || lease.PID != pid {
		lease.Holder = Holder{}
	}
	lease.PID, lease.Readable, lease.path = pid, true, path
	return lease, true
}

// Live returns the leases that block maintenance. It fails as Writers does.
func Live(home config.Home) ([]Writer, error) {
	writers, err := Writers(home)
	if err != nil {
		return nil, err
	}
	var blocking []Writer
	for _, writer := range writers {
		if writer.Blocks() {
			blocking = append(blocking, writer)
		}
	}
	return blocking, nil
}

// The work that the maintenance lock names.
const (
	Fix     = "fix"
	Restore = "restore"
	Archive = "archive"
	Merge   = "merge"
	// Replacement puts an empty store in the place of a lost one.
	Replacement = "replacement"
)

// ReadLock returns the maintenance lock's content; held is false without one. An
// unreadable lock has the zero Holder.
func ReadLock(home config.Home) (found Holder, held bool) {
	data, err := disk.ReadLimited(home.MaintenanceLock(), maxHolderBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return Holder{}, false
	}
	if err != nil || json.Unmarshal(data, &found) != nil {
		return Holder{}, true
	}
	found.path = home.MaintenanceLock()
	return found, true
}

// CheckFree fails with Denied while maintenance blocks writers, even after it was
// interrupted. It changes nothing. Archiving works during writes through the store's own
// locks, so its lock blocks no writer.
func CheckFree(home config.Home) error {
	found, held := ReadLock(home)
	if !held || found.What == Archive {
		return nil
	}
	return lockRefusal(home, found)
}

func lockRefusal(home config.Home, found Holder) error {
	if found.PID > 0 && found.Lives() {
		return bridge.Errorf(bridge.Denied, "maintenance is at work on this home (%s, process %d): wait until it has finished", found.What, found.PID)
	}
	return bridge.Errorf(bridge.Denied, "maintenance of this home was interrupted and left %s: run `bridge doctor` to see what is left, stop every bridge process, remove that file by hand and do the maintenance again",
		home.MaintenanceLock())
}

// Exclusively runs work with the maintenance lock held. It fails with Denied while
// another process has the lock or left one. If beside is set, writers may continue.
// Otherwise it also holds the broker's lock, and fails with Denied while a writer or a
// broker lives (RWM-05).
func (w Worker) Exclusively(what string, beside bool, work func() error) (err error) {
	data, err := w.self(what).bytes()
	if err != nil {
		return err
	}
	held, err := w.Files().WriteNewLocked(w.Home.MaintenanceLock(), data)
	if errors.Is(err, fs.ErrExist) {
		found, held := ReadLock(w.Home)
		if _, err := os.Lstat(w.Home.MaintenanceLock()); !held && errors.Is(err, fs.ErrNotExist) {
			return bridge.Errorf(bridge.Denied, "other maintenance of this home has just ended: try again")
		}
		return lockRefusal(w.Home, found)
	}
	if err != nil {
		return fmt.Errorf("take the maintenance lock: %w", err)
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	if beside {
		err = work()
	} else {
		err = w.alone(what, work)
	}
	if stepErr := w.At("release the maintenance lock"); stepErr != nil {
		return errors.Join(err, stepErr)
	}
	return errors.Join(err, releaseLock(w.Home))
}

// alone runs work while no writer lives and no broker can start.
func (w Worker) alone(what string, work func() error) error {
	if err := checkWriters(w.Home, what); err != nil {
		return err
	}
	if w.LockBroker == nil {
		return work()
	}
	unlock, err := w.LockBroker(w.Home)
	if err != nil {
		return fmt.Errorf("%s needs exclusive access to the home: %w", what, err)
	}
	return errors.Join(work(), unlock())
}

func releaseLock(home config.Home) error {
	if err := os.Remove(home.MaintenanceLock()); err != nil {
		return fmt.Errorf("give up the maintenance lock: %w", err)
	}
	return nil
}

func checkWriters(home config.Home, what string) error {
	live, err := Live(home)
	if err != nil || len(live) == 0 {
		return err
	}
	names := make([]string, len(live))
	for i, writer := range live {
		names[i] = writer.String()
	}
	return bridge.Errorf(bridge.Denied, "%s needs exclusive access to the home, and %s at work: stop the sessions and the broker first",
		what, strings.Join(names, ", ")+map[bool]string{true: " is", false: " are"}[len(live) == 1])
}

// String names the writer for people.
func (w Writer) String() string {
	switch {
	case !w.Readable:
		return "a writer with the unreadable lease " + w.Path
	case w.Program == "":
		return fmt.Sprintf("process %d", w.PID)
	}
	return fmt.Sprintf("%s (process %d)", w.Program, w.PID)
}
