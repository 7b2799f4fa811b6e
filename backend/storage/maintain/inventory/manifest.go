package inventory

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// The kinds of sets. A set of messages holds only messages and is never restored as a
// whole (STO-08, STO-10).
const (
	KindFull     = "full"
	KindMessages = "message-tables"
)

// ManifestName is the file that completes a set: it is written last.
const ManifestName = "manifest.json"

// ManifestVersion is the form that this build writes and reads.
const ManifestVersion = 1

// MaxManifestBytes limits a manifest: about 100,000 files.
const MaxManifestBytes = 32 << 20

// MessagesFile is the one database of a set of messages.
const MessagesFile = "messages.db"

// PendingPrefix begins the names of unpublished sets; a failed attempt keeps its name
// permanently (STO-05).
const PendingPrefix = ".pending-"

// Manifest describes the content of a set.
type Manifest struct {
	Version   int               `json:"version"`
	Kind      string            `json:"kind"` // full; sets of other programs may lack it
	CreatedAt bridge.UnixMillis `json:"createdAt"`
	Files     []File            `json:"files"`
	// Counts are the numbers of rows of each table, by database.
	Counts map[string]map[string]int `json:"counts,omitempty"`
}

// File is one file of a set; Path is relative with slashes.
type File struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// Size returns the total size of the set's files in bytes.
func (m Manifest) Size() int64 {
	var sum int64
	for _, file := range m.Files {
		sum += file.Bytes
	}
	return sum
}

// Has reports whether the set has the file at path.
func (m Manifest) Has(path string) bool {
	return slices.ContainsFunc(m.Files, func(f File) bool { return f.Path == path })
}

// ReadManifest reads a full set's manifest. It fails for any other set.
func ReadManifest(dir string) (Manifest, error) {
	var m Manifest
	data, err := disk.ReadLimited(filepath.Join(dir, ManifestName), MaxManifestBytes)
	if IsGone(err) {
		return m, bridge.Errorf(bridge.NotFound, "%s is no published snapshot: it has no %s", dir, ManifestName)
	}
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	switch {
	case err != nil:
		return m, bridge.WithCause(bridge.Storage, err, fmt.Sprintf("the manifest of %s cannot be read", dir))
	case m.Version > ManifestVersion:
		return m, bridge.Errorf(bridge.Unsupported, "the snapshot %s has version %d and this Bridge knows version %d: use a newer Bridge", dir, m.Version, ManifestVersion)
	case m.Kind == KindMessages:
		return m, bridge.Errorf(bridge.Unsupported, "%s is a backup of messages only and cannot be restored as a whole", dir)
	case m.Version != ManifestVersion || m.Kind != "" && m.Kind != KindFull || len(m.Files) == 0:
		return m, bridge.Errorf(bridge.Unsupported, "%s is not a full snapshot of a form that this Bridge knows", dir)
	}
	return m, m.checkPaths(dir)
}

// checkPaths fails with Unsupported if a manifest names a file that snapshots do not
// hold, or one twice.
func (m Manifest) checkPaths(dir string) error {
	seen := map[string]bool{}
	for _, file := range m.Files {
		if !isPlain(file.Path) || !IsManaged(file.Path) || seen[file.Path] || file.Bytes < 0 {
			return bridge.Errorf(bridge.Unsupported, "the manifest of %s names %q, which no snapshot holds", dir, file.Path)
		}
		seen[file.Path] = true
	}
	return nil
}

// isPlain reports whether path, of a manifest, stays below its base folder and has the
// one form that IsManaged evaluates.
func isPlain(path string) bool {
	native := filepath.FromSlash(path)
	return filepath.IsLocal(native) && filepath.ToSlash(filepath.Clean(native)) == path
}

// CheckSizes compares names and sizes of the set's files with the manifest. It fails with
// Storage for the first file that is missing or has another size.
func (m Manifest) CheckSizes(dir string) error {
	for _, file := range m.Files {
		info, err := os.Lstat(JoinHome(dir, file.Path))
		switch {
		case IsGone(err):
			return bridge.Errorf(bridge.Storage, "the snapshot %s is damaged: %s is missing", dir, file.Path)
		case err != nil:
			return bridge.Errorf(bridge.Storage, "the snapshot %s cannot be read: %s: %s", dir, file.Path, disk.Reason(err))
		case !info.Mode().IsRegular():
			return bridge.Errorf(bridge.Storage, "the snapshot %s is damaged: %s is not a regular file", dir, file.Path)
		case info.Size() != file.Bytes:
			return bridge.Errorf(bridge.Storage, "the snapshot %s is damaged: %s has %s, not %d", dir, file.Path, bridge.Counted(int(info.Size()), "byte"), file.Bytes)
		}
	}
	return nil
}

// CheckSums reads every file of the set in dir and compares its checksum. It calls
// progress with the bytes read and all bytes. It fails with Storage for the first file
// that is unreadable or has another checksum.
func (m Manifest) CheckSums(ctx context.Context, dir string, progress func(done, all int64)) error {
	if err := m.CheckSizes(dir); err != nil {
		return err
	}
	var done int64
	for _, file := range m.Files {
		if err := ctx.Err(); err != nil {
			return err
		}
		sum, size, err := disk.Checksum(JoinHome(dir, file.Path))
		if err != nil {
			return bridge.WithCause(bridge.Storage, err, fmt.Sprintf("the snapshot %s cannot be read: %s", dir, file.Path))
		}
		if sum != file.SHA256 || size != file.Bytes {
			return bridge.Errorf(bridge.Storage, "the snapshot %s is damaged: %s is not what was captured", dir, file.Path)
		}
		done += size
		progress(done, m.Size())
	}
	return nil
}

// The names of sets: the time of the capture as 13 digits, then an id.
var (
	SnapshotName = regexp.MustCompile(`^snapshot-(\d{13})-[0-9a-f-]{36}$`)
	MessagesName = regexp.MustCompile(`^messages-(\d{13})-[0-9a-f-]{36}$`)
	RecoveryName = regexp.MustCompile(`^recovery-(\d{13})-[0-9a-f-]{36}$`)
)

// Set is one published set.
type Set struct {
	Path      string            `json:"path"`
	CreatedAt bridge.UnixMillis `json:"createdAt"`
}

// Sets returns the folders of dir whose names match, newest first. It fails if dir is
// unreadable; a missing one has no sets.
func Sets(dir string, name *regexp.Regexp) ([]Set, error) {
	entries, err := os.ReadDir(dir)
	if IsGone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the backups: %w", err)
	}
	var found []Set
	for _, entry := range entries {
		match := name.FindStringSubmatch(entry.Name())
		if match == nil || entry.Type()&fs.ModeDir == 0 {
			continue
		}
		at, err := strconv.ParseInt(match[1], 10, 64)
		if err != nil {
			continue
		}
		found = append(found, Set{Path: entry.Name(), CreatedAt: at})
	}
	slices.SortStableFunc(found, func(a, b Set) int {
		return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), strings.Compare(b.Path, a.Path))
	})
	return found, nil
}

// NextTime returns the time in the name of a new set of the folder: now, or just after
// the newest set if the clock was set back, so that the newest is the last made. It fails
// as Sets does.
func NextTime(folder string, name *regexp.Regexp, now time.Time) (int64, error) {
	found, err := Sets(folder, name)
	at := now.UnixMilli()
	if len(found) > 0 {
		at = max(at, found[0].CreatedAt+1)
	}
	return at, err
}

// ReadMessagesManifest reads the manifest of a set of messages. It fails for any other set.
func ReadMessagesManifest(dir string) (Manifest, error) {
	var m Manifest
	data, err := disk.ReadLimited(filepath.Join(dir, ManifestName), MaxManifestBytes)
	if IsGone(err) {
		return m, bridge.Errorf(bridge.NotFound, "%s is no published backup: it has no %s", dir, ManifestName)
	}
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		return m, bridge.WithCause(bridge.Storage, err, fmt.Sprintf("the manifest of %s cannot be read", dir))
	}
	if m.Kind == "" || m.Kind == KindFull {
		return m, bridge.Errorf(bridge.Unsupported, "%s is a full snapshot: it is restored with `bridge doctor --restore`, not merged", dir)
	}
	if m.Version != ManifestVersion || m.Kind != KindMessages || len(m.Files) != 1 || m.Files[0].Path != MessagesFile {
		return m, bridge.Errorf(bridge.Unsupported, "%s is not a backup of messages of a form that this Bridge knows", dir)
	}
	return m, nil
}
