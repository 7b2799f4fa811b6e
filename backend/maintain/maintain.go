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
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"bridge/backend/config"
	"bridge/backend/disk"
	"bridge/backend/store"
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

func (c Caretaker) at(name string) error {
	if c.step == nil {
		return nil
	}
	return c.step(name)
}

func (c Caretaker) told(what string, done, all int64) {
	if c.Told != nil {
		c.Told(what, done, all)
	}
}

// files writes durably, each write being steps of the caretaker's.
func (c Caretaker) files() disk.Files {
	return disk.Files{Before: func(step disk.Step, path string) error {
		return c.at(string(step) + " " + filepath.Base(path))
	}}
}

// database is one of the five stores.
type database struct {
	name    string // in the home
	version int    // the newest schema that this build knows
	table   string // one that every store of this kind has, "" where it varies
	// promise is what its schema was made by, "" where it is not Bridge's own.
	promise store.Promise
}

// primary is the store whose schema Bridge upgrades, cold its archive; history
// has the search index, perhaps among other things.
const (
	primary = "bridge.db"
	cold    = "archive.db"
	history = "history.db"
)

// compatibility holds what an older schema of the primary store lacks.
const compatibility = "compat.db"

var databases = []database{
	{primary, store.SchemaVersion, "messages", store.PrimaryStore},
	{cold, store.ArchiveVersion, "archived_messages", store.ArchiveStore},
	{history, 2, "", ""}, // checkIndex knows what its index promises
	{"questions.db", 1, "questions", ""},
	{compatibility, store.CompatVersion, "outbox", ""},
}

// sideFiles are what SQLite keeps beside a database.
var sideFiles = []string{"-wal", "-shm", "-journal"}

func isDatabase(path string) bool {
	return slices.ContainsFunc(databases, func(d database) bool { return d.name == path })
}

// unmanaged are the folders and files that no snapshot holds: copies, logs, the
// two secrets (AUT-03) and what belongs to processes that live now.
var unmanaged = []string{
	"backups", "message-backups", ".migration-snapshots", "archive/orphaned", "logs",
	".storage-users", ".maintenance-lock", "approvals", "dashboard.json", "dashboard-key", "token", "launch-secret",
}

// isManaged reports whether a snapshot holds the file at path, relative to the
// home with slashes: the databases, and everywhere the JSON files, which leaves
// the text of run logs out.
func isManaged(path string) bool {
	if isDatabase(path) || isApproval(path) && utf8.ValidString(path) && !disk.IsTemp(path) {
		return true // of approvals those that are answered (belongs)
	}
	for _, name := range unmanaged {
		if path == name || strings.HasPrefix(path, name+"/") {
			return false
		}
	}
	inCopies := strings.HasPrefix(path, "install/") && path != "install/install.json"
	isJSON := strings.HasSuffix(path, ".json") || strings.HasSuffix(path, ".jsonl")
	return isJSON && !disk.IsTemp(path) && !inCopies && utf8.ValidString(path) // a manifest holds no other names
}

// turn says when a copy of the home takes a managed file, smaller first. Data
// moves on: from a journal into its store, from the compatibility store into the
// primary one, from there into the archive. Taken in this order, what moves
// meanwhile is copied twice and never missed.
func turn(path string) int {
	switch {
	case strings.HasPrefix(path, "read-journal/"), strings.HasPrefix(path, "pending-job-writes/"):
		return 0
	case path == compatibility:
		return 2
	case path == primary:
		return 3
	case isDatabase(path):
		return 4
	case strings.HasPrefix(path, "archive/"):
		return 5
	}
	return 1
}

// managed lists the managed files of dir, relative with slashes, in their turns.
// Links are left out: what they lead to is not the home's.
func managed(ctx context.Context, dir string) ([]string, error) {
	var found []string
	err := walk(ctx, dir, func(path string, entry fs.DirEntry) error {
		if entry.Type().IsRegular() && isManaged(path) {
			found = append(found, path)
		}
		return nil
	})
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(turn(a), turn(b)), strings.Compare(a, b)) })
	return found, err
}

// walk visits everything below dir by its relative path with slashes. What
// vanishes meanwhile is passed over; the broker goes on working.
func walk(ctx context.Context, dir string, visit func(path string, entry fs.DirEntry) error) error {
	return walkOn(ctx, dir, visit, func(_ string, err error) error { return fmt.Errorf("look through %s: %w", dir, err) })
}

// walkOn is walk that leaves it to closed what a folder below dir that cannot be
// read means.
func walkOn(ctx context.Context, dir string, visit func(path string, entry fs.DirEntry) error, closed func(path string, err error) error) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case isGone(err):
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("look through %s: %w", dir, ctx.Err())
		case path == dir && err != nil:
			return fmt.Errorf("look through %s: %w", dir, err)
		case path == dir:
			return nil
		}
		relative, relErr := filepath.Rel(dir, path)
		if relErr != nil {
			return relErr
		}
		if err != nil {
			return closed(filepath.ToSlash(relative), err)
		}
		return visit(filepath.ToSlash(relative), entry)
	})
}

// in returns the file of dir at a relative path with slashes.
func in(dir, path string) string { return filepath.Join(dir, filepath.FromSlash(path)) }
