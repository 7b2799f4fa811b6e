package maintain

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

	"bridge/backend/bridge"
	"bridge/backend/disk"
)

// The kinds of sets. A scoped one holds messages only and is never restored as
// a whole (STO-08, STO-10).
const (
	kindFull   = "full"
	kindScoped = "message-tables"
)

// manifestName is the file that makes a set complete: it is written last.
const manifestName = "manifest.json"

// manifestVersion is the form that this build writes and understands.
const manifestVersion = 1

// maxManifestBytes bounds a manifest: about 100,000 files.
const maxManifestBytes = 32 << 20

// Manifest says what a set holds.
type Manifest struct {
	Version   int    `json:"version"`
	Kind      string `json:"kind"` // full; sets from the field may lack it
	CreatedAt int64  `json:"createdAt"`
	Files     []File `json:"files"`
	// Counts are the rows of each table, by database.
	Counts map[string]map[string]int `json:"counts,omitempty"`
}

// File is one file of a set; Path is relative with slashes.
type File struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

func (m Manifest) bytes() int64 {
	var sum int64
	for _, file := range m.Files {
		sum += file.Bytes
	}
	return sum
}

func (m Manifest) has(path string) bool {
	return slices.ContainsFunc(m.Files, func(f File) bool { return f.Path == path })
}

// readManifest reads a full set's manifest and refuses every other set.
func readManifest(dir string) (Manifest, error) {
	var m Manifest
	data, err := disk.ReadLimited(filepath.Join(dir, manifestName), maxManifestBytes)
	if isGone(err) {
		return m, bridge.Errorf(bridge.NotFound, "%s is no published snapshot: it has no %s", dir, manifestName)
	}
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	switch {
	case err != nil:
		return m, bridge.WithCause(bridge.Storage, err, fmt.Sprintf("the manifest of %s cannot be read", dir))
	case m.Version > manifestVersion:
		return m, bridge.Errorf(bridge.Unsupported, "the snapshot %s has version %d and this Bridge knows version %d: use a newer Bridge", dir, m.Version, manifestVersion)
	case m.Kind == kindScoped:
		return m, bridge.Errorf(bridge.Unsupported, "%s is a backup of messages only and can not be restored as a whole", dir)
	case m.Version != manifestVersion || m.Kind != "" && m.Kind != kindFull || len(m.Files) == 0:
		return m, bridge.Errorf(bridge.Unsupported, "%s is not a full snapshot of a form that this Bridge knows", dir)
	}
	return m, m.checkPaths(dir)
}

// checkPaths refuses a manifest that names a file outside of what snapshots
// hold, or one twice.
func (m Manifest) checkPaths(dir string) error {
	seen := map[string]bool{}
	for _, file := range m.Files {
		if !isPlain(file.Path) || !isManaged(file.Path) || seen[file.Path] || file.Bytes < 0 {
			return bridge.Errorf(bridge.Unsupported, "the manifest of %s names %q, which no snapshot holds", dir, file.Path)
		}
		seen[file.Path] = true
	}
	return nil
}

// isPlain reports whether path, of a manifest, stays below the folder that it is
// relative to, and names its file in the one way that isManaged judges.
func isPlain(path string) bool {
	native := filepath.FromSlash(path)
	return filepath.IsLocal(native) && filepath.ToSlash(filepath.Clean(native)) == path
}

// checkSizes compares names and sizes of the set's files with the manifest.
func (m Manifest) checkSizes(dir string) error {
	for _, file := range m.Files {
		info, err := os.Lstat(in(dir, file.Path))
		switch {
		case isGone(err):
			return bridge.Errorf(bridge.Storage, "the snapshot %s is damaged: %s is missing", dir, file.Path)
		case err != nil:
			return bridge.Errorf(bridge.Storage, "the snapshot %s cannot be read: %s: %s", dir, file.Path, reason(err))
		case !info.Mode().IsRegular():
			return bridge.Errorf(bridge.Storage, "the snapshot %s is damaged: %s is not a regular file", dir, file.Path)
		case info.Size() != file.Bytes:
			return bridge.Errorf(bridge.Storage, "the snapshot %s is damaged: %s has %d bytes, not %d", dir, file.Path, info.Size(), file.Bytes)
		}
	}
	return nil
}

// checkSums reads every file of the set and compares its checksum.
func (c Caretaker) checkSums(ctx context.Context, m Manifest, dir, what string) error {
	if err := m.checkSizes(dir); err != nil {
		return err
	}
	var done int64
	for _, file := range m.Files {
		if err := ctx.Err(); err != nil {
			return err
		}
		sum, size, err := disk.Checksum(in(dir, file.Path))
		if err != nil {
			return bridge.WithCause(bridge.Storage, err, fmt.Sprintf("the snapshot %s cannot be read: %s", dir, file.Path))
		}
		if sum != file.SHA256 || size != file.Bytes {
			return bridge.Errorf(bridge.Storage, "the snapshot %s is damaged: %s is not what was captured", dir, file.Path)
		}
		done += size
		c.told(what, done, m.bytes())
	}
	return nil
}

// The names of sets: the time of the capture as 13 digits, then an id.
var (
	snapshotName = regexp.MustCompile(`^snapshot-(\d{13})-[0-9a-f-]{36}$`)
	scopedName   = regexp.MustCompile(`^messages-(\d{13})-[0-9a-f-]{36}$`)
	recoveryName = regexp.MustCompile(`^recovery-(\d{13})-[0-9a-f-]{36}$`)
)

// sets lists the folders of dir whose names fit, the newest first.
func sets(dir string, name *regexp.Regexp) ([]Backup, error) {
	entries, err := os.ReadDir(dir)
	if isGone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the backups: %w", err)
	}
	var found []Backup
	for _, entry := range entries {
		fits := name.FindStringSubmatch(entry.Name())
		if fits == nil || entry.Type()&fs.ModeDir == 0 {
			continue
		}
		at, err := strconv.ParseInt(fits[1], 10, 64)
		if err != nil {
			continue
		}
		found = append(found, Backup{Path: entry.Name(), CreatedAt: at})
	}
	slices.SortStableFunc(found, func(a, b Backup) int {
		return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), strings.Compare(b.Path, a.Path))
	})
	return found, nil
}
