// Package inventory knows what a home holds and what a set of copies says that it
// holds: which files are managed, in which order they are copied, what leaves
// the home in no copy, and the manifests of snapshots, backups of messages and
// recovery sets. It also puts the errors of files into words. It changes nothing.
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
	Table   string // one that every store of this kind has, "" where it varies
	// Promise is what its schema was made by, "" where it is not Bridge's own.
	Promise schema.Promise
}

// Primary is the store whose schema Bridge upgrades, Archive its archive; History
// has the search index, perhaps among other things.
const (
	Primary = "bridge.db"
	Archive = "archive.db"
	History = "history.db"
)

// Questions holds what sessions asked, and the answers on their way.
const Questions = "questions.db"

// Sidecar holds what an older schema of the primary store lacks.
const Sidecar = "compat.db"

// Databases are the stores of a home, in the order in which they are looked at.
var Databases = []Database{
	{Primary, schema.Version, "messages", schema.PrimaryStore},
	{Archive, schema.ArchiveVersion, "archived_messages", schema.ArchiveStore},
	{History, 2, "", ""}, // checkIndex knows what its index promises
	{Questions, 1, "questions", ""},
	{Sidecar, schema.SidecarVersion, "outbox", ""},
}

// SideFiles are what SQLite keeps beside a database.
var SideFiles = []string{"-wal", "-shm", "-journal"}

// IsDatabase reports whether path, relative to the home, is that of a database.
func IsDatabase(path string) bool {
	return slices.ContainsFunc(Databases, func(d Database) bool { return d.Name == path })
}

// unmanaged are the folders and files that no snapshot holds: copies, logs, the
// two secrets (AUT-03), what belongs to processes that live now, and the files that
// other PCs have sent, which may be of any size and are the owner's to keep: who sent
// which is in the snapshot, by network/transfers.
var unmanaged = []string{
	"backups", "message-backups", ".migration-snapshots", "archive/orphaned", "logs",
	".storage-users", ".maintenance-lock", "approvals", "prompts-open", "worktrees", "scratch", "inbox", "network/incoming", "browsers.json", "dashboard.json", "dashboard-key", "token", "launch-secret",
}

// IsManaged reports whether a snapshot holds the file at path, relative to the
// home with slashes: the databases, and everywhere the JSON files, which leaves
// the text of run logs out.
func IsManaged(path string) bool {
	if IsDatabase(path) || IsApproval(path) && utf8.ValidString(path) && !disk.IsTemp(path) {
		return true // of approvals those that are answered (Belongs)
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

// copyOrder says when a copy of the home takes a managed file, smaller first. Data
// moves on: from a journal into its store, from the compatibility store and, as the
// owner's answers, from questions.db into the primary one, from there into the archive.
// Taken in this order, what moves meanwhile is copied twice and never missed.
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

// Managed lists the managed files of dir, relative with slashes, in the order in
// which they are copied.
// Links are left out: what they lead to is not the home's. So are the folders of agents
// at work, which may be of any size.
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

// Walk visits everything below dir by its relative path with slashes. What
// vanishes meanwhile is passed over; the broker goes on working.
func Walk(ctx context.Context, dir string, visit func(path string, entry fs.DirEntry) error) error {
	return WalkOn(ctx, dir, visit, func(_ string, err error) error { return fmt.Errorf("look through %s: %w", dir, err) })
}

// WalkOn is Walk that leaves it to closed what a folder below dir that cannot be
// read means.
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

// JoinHome returns the file of dir at a relative path with slashes.
func JoinHome(dir, path string) string { return filepath.Join(dir, filepath.FromSlash(path)) }

// IsSideFile reports whether path is that of a side file of a database.
func IsSideFile(path string) bool {
	return slices.ContainsFunc(SideFiles, func(suffix string) bool {
		base, isSide := strings.CutSuffix(path, suffix)
		return isSide && IsDatabase(base)
	})
}

// MakeDirs makes the folders of path below dir, each durable.
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

// CopyInto copies a file of the home dir, which is no database, into a set: of a
// redacted one its public part. Where none of it may be copied, it is gone (IsGone).
func CopyInto(files disk.Files, dir, name, to string) (sum string, size int64, err error) {
	if !IsRedacted(name) {
		return files.Copy(JoinHome(dir, name), to)
	}
	public, ok := PublicPart(dir, name)
	if !ok {
		return "", 0, fs.ErrNotExist
	}
	if err := files.WriteNew(to, public, disk.PrivateFile); err != nil {
		return "", 0, err
	}
	return disk.Checksum(to)
}

// Present lists the managed files of the home dir that copies are made of, with the databases' side files.
func Present(ctx context.Context, dir string) ([]string, error) {
	paths, err := Managed(ctx, dir)
	paths = slices.DeleteFunc(paths, func(path string) bool {
		return !Belongs(dir, path) || KeepsPrivate(dir, path)
	})
	for _, one := range Databases {
		for _, suffix := range SideFiles {
			if info, statErr := os.Lstat(JoinHome(dir, one.Name+suffix)); statErr == nil && info.Mode().IsRegular() {
				paths = append(paths, one.Name+suffix)
			}
		}
	}
	return paths, err
}
