package jobfiles

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"bridge/backend/core/job"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc/api"
)

// MaxEntryBytes is the size limit of an archive entry and of jobs.json: 300 of the
// longest prompts, as the longest JSON escapes, and the rest.
const MaxEntryBytes = 256 << 20

// ReadEntry reads the entry of a job in the archive. It fails with fs.ErrNotExist if there is
// none, and if the file is too large or not JSON.
func ReadEntry(path string) (entry job.Job, err error) {
	data, err := disk.ReadLimited(path, MaxEntryBytes)
	if err == nil {
		err = json.Unmarshal(data, &entry)
	}
	return entry, err
}

// Shelf caches the jobs of an archive that ended last. Their entries no longer change,
// so each is read once.
type Shelf struct {
	mu      sync.Mutex // guards below
	seen    map[string]bool
	last    []api.JobView // the newest first
	changed time.Time     // modification time of the folder at the last read; zero to read again
}

// settled is the age of a folder's time after which no change can go unnoticed.
const settled = 2 * time.Second

// shelved is the size limit of the cache.
const shelved = 1_000

// Last lists the jobs of the folder that ended last, the newest first. An unreadable
// entry is in the error and not in the list.
func (s *Shelf) Last(folder string, now time.Time, view func(job.Job) api.JobView) ([]api.JobView, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := os.Stat(folder)
	if err != nil {
		return nil, nil // the archive is empty
	}
	if !s.changed.Equal(info.ModTime()) {
		err = s.read(folder, view)
		s.changed = time.Time{}
		if now.Sub(info.ModTime()) > settled {
			s.changed = info.ModTime()
		}
	}
	return slices.Clone(s.last), err // the next call changes the list
}

// read reads the new entries of the archive. If an entry left it, read reads all again,
// because an older entry may move up.
func (s *Shelf) read(folder string, view func(job.Job) api.JobView) (failed error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	present := map[string]bool{}
	for _, entry := range entries {
		if name, isEntry := strings.CutSuffix(entry.Name(), ".json"); isEntry && job.IsName(name) {
			present[name] = true
		}
	}
	for name := range s.seen {
		if !present[name] {
			s.seen, s.last = nil, nil
			break
		}
	}
	for name := range present {
		if s.seen[name] {
			continue
		}
		entry, err := ReadEntry(filepath.Join(folder, name+".json"))
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		s.last = append(s.last, view(entry))
	}
	slices.SortFunc(s.last, func(a, b api.JobView) int {
		return cmp.Or(cmp.Compare(b.EndedAt, a.EndedAt), strings.Compare(a.Job, b.Job))
	})
	s.last, s.seen = s.last[:min(shelved, len(s.last))], present
	return failed
}
