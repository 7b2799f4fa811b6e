// Package inventory defines what a home and its copies hold: which files are managed, in
// which order they are copied, and what no copy holds. It reads the manifests of
// snapshots, backups of messages and recovery sets. It also describes errors of files for
// people. It changes no existing data.
package inventory

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"bridge/backend/platform/disk"
	"bridge/backend/storage/store/schema"
)

// Database is one of the five stores.
type Database struct {
	Name    string // in the home
	Version int    // the newest schema that this build knows
	Table   string // a table of every store of this kind, "" if that varies
	// Promise identifies the scripts of its schema, "" if that is not Bridge's own.
	Promise schema.Promise
}

// Primary is the store whose schema Bridge upgrades, Archive its archive; History holds
// the search index, possibly among other data.
const (
	Primary = "bridge.db"
	Archive = "archive.db"
	History = "history.db"
)

// Questions holds the questions of sessions, and pending answers.
const Questions = "questions.db"

// Sidecar holds what an older schema of the primary store lacks.
const Sidecar = "compat.db"

// Databases are the stores of a home, in the order of their checks.
var Databases = []Database{
	{Primary, schema.Version, "messages", schema.PrimaryStore},
	{Archive, schema.ArchiveVersion, "archived_messages", schema.ArchiveStore},
	{History, 2, "", ""}, // checkIndex checks the promise of its index
	{Questions, 1, "questions", ""},
	{Sidecar, schema.SidecarVersion, "outbox", ""},
}

// SideFiles are the suffixes of SQLite's files next to a database.
var SideFiles = []string{"-wal", "-shm", "-journal"}

// IsDatabase reports whether path, relative to the home, is that of a database.
func IsDatabase(path string) bool {
	return slices.ContainsFunc(Databases, func(d Database) bool { return d.Name == path })
}

// unmanaged are the folders and files that no snapshot holds: copies, logs, the two
// secrets (AUT-03), files of live processes, and files from other PCs. The latter may
// have any size, and the owner keeps them; the snapshot's network/transfers records who
// sent which.
var unmanaged = []string{
	"backups", "message-backups", ".migration-snapshots", "archive/orphaned", "logs",
	".storage-users", ".maintenance-lock", "approvals", "prompts-open", "worktrees", "scratch", "inbox", "network/incoming", "browsers.json", "dashboard.json", "dashboard-key", "token", "launch-secret",
}

// IsManaged reports whether a snapshot holds the file at path, relative to the home with
// slashes. It holds the databases, and JSON files everywhere, but not the text of run
// logs.
func IsManaged(path string) bool {
	if IsDatabase(path) || IsApproval(path) && utf8.ValidString(path) && !disk.IsTemp(path) {
		return true // only answered approvals (Belongs)
	}
	for _, name := range unmanaged {
		if path == name || strings.HasPrefix(path, name+"/") {
			return false
		}
	}
	if IsAgents(path) || runText.MatchString(path) {
		return false
	}
	inCopies := strings.HasPrefix(path, "install/") && path != "install/install.json"
	isJSON := strings.HasSuffix(path, ".json") || strings.HasSuffix(path, ".jsonl")
	return isJSON && !disk.IsTemp(path) && !inCopies && utf8.ValidString(path) // a manifest holds no other names
}

// copyOrder returns when a copy of the home takes a managed file, smaller first. Data
// moves from a journal into its store. From the compatibility store, and as the owner's
// answers from questions.db, it moves into the primary store, and from there into the
// archive. In this order, data that moves meanwhile is copied twice and never missed.
func copyOrder(path string) int {
	switch {
	case strings.HasPrefix(path, "read-journal/"), strings.HasPrefix(path, "pending-job-writes/"):
		return 0
	case path == Sidecar, path == Questions:
		return 2
	case path == Primary:
		return 3
	case IsDatabase(path):
		return 4
	case strings.HasPrefix(path, "archive/"):
		return 5
	}
	return 1
}

// Managed returns the managed files of dir, relative with slashes, in copy order. It
// omits links, because their targets are not the home's, and the folders of agents at
// work, which may have any size. It fails as Walk does.
func Managed(ctx context.Context, dir string) ([]string, error) {
	var found []string
	err := Walk(ctx, dir, func(path string, entry fs.DirEntry) error {
		if entry.IsDir() && IsAgents(path+"/") {
			return fs.SkipDir
		}
		if entry.Type().IsRegular() && IsManaged(path) {
			found = append(found, path)
		}
		return nil
	})
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(copyOrder(a), copyOrder(b)), strings.Compare(a, b)) })
	return found, err
}

// Walk visits everything below dir by its relative path with slashes. It skips files that
// vanish meanwhile, because the broker keeps working. It fails if a folder is unreadable,
// if visit does, or if ctx ends.
func Walk(ctx context.Context, dir string, visit func(path string, entry fs.DirEntry) error) error {
	return WalkOn(ctx, dir, visit, func(_ string, err error) error { return fmt.Errorf("look through %s: %w", dir, err) })
}

// WalkOn is Walk, but calls closed for an unreadable folder below dir, which makes it
// fail only if closed does.
func WalkOn(ctx context.Context, dir string, visit func(path string, entry fs.DirEntry) error, closed func(path string, err error) error) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case IsGone(err):
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

// JoinHome returns the path of dir's file at a relative path with slashes.
func JoinHome(dir, path string) string { return filepath.Join(dir, filepath.FromSlash(path)) }

// IsSideFile reports whether path is that of a side file of a database.
func IsSideFile(path string) bool {
	return slices.ContainsFunc(SideFiles, func(suffix string) bool {
		base, isSide := strings.CutSuffix(path, suffix)
		return isSide && IsDatabase(base)
	})
}

// MakeDirs creates the folders of path below dir, each durably. It fails if one cannot be
// made.
func MakeDirs(dir, path string) error {
	parts := strings.Split(path, "/")
	for _, part := range parts[:len(parts)-1] {
		dir = filepath.Join(dir, part)
		if err := disk.MakeDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// CopyInto copies a file of the home dir, which is no database, into a set; of a redacted
// file only the public part. It fails with fs.ErrNotExist (IsGone) if no part may be copied.
func CopyInto(files disk.Files, dir, name, target string) (sum string, size int64, err error) {
	if !IsRedacted(name) {
		return files.Copy(JoinHome(dir, name), target)
	}
	public, ok := PublicPart(dir, name)
	if !ok {
		return "", 0, fs.ErrNotExist
	}
	if err := files.WriteNew(target, public, disk.PrivateFile); err != nil {
		return "", 0, err
	}
	return disk.Checksum(target)
}

// Present returns the managed files of dir that can be copied, with the databases' side
// files. It fails as Walk does.
func Present(ctx context.Context, dir string) ([]string, error) {
	paths, err := Managed(ctx, dir)
	paths = slices.DeleteFunc(paths, func(path string) bool {
		return !Belongs(dir, path) || KeepsPrivate(dir, path)
	})
	for _, database := range Databases {
		for _, suffix := range SideFiles {
			if info, statErr := os.Lstat(JoinHome(dir, database.Name+suffix)); statErr == nil && info.Mode().IsRegular() {
				paths = append(paths, database.Name+suffix)
			}
		}
	}
	return paths, err
}
