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

// MaxEntryBytes bounds the entry of a job in the archive, and jobs.json: 300 of the
// longest prompts, as the longest JSON escapes, with room for the rest.
const MaxEntryBytes = 256 << 20

// ReadEntry reads the entry of a job in the archive.
func ReadEntry(path string) (one job.Job, err error) {
	data, err := disk.ReadLimited(path, MaxEntryBytes)
	if err == nil {
		err = json.Unmarshal(data, &one)
	}
	return one, err
}

// Shelf remembers which jobs of an archive have ended last. Their entries do not
// change any more, so each is read once.
type Shelf struct {
	mu      sync.Mutex // guards below
	seen    map[string]bool
	last    []api.JobView // the newest first
	changed time.Time     // of the folder when it was read; zero to look again
}

// settled is how old a folder's time must be before nothing can come to it unseen.
const settled = 2 * time.Second

// shelved is how many are remembered.
const shelved = 1_000

// Last lists the jobs of the folder that have ended last, the newest first. An entry
// that cannot be read is in the error and not in the list.
func (s *Shelf) Last(folder string, now time.Time, view func(job.Job) api.JobView) ([]api.JobView, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := os.Stat(folder)
	if err != nil {
		return nil, nil // nothing went there yet
	}
	if !s.changed.Equal(info.ModTime()) {
		err = s.read(folder, view)
		s.changed = time.Time{}
		if now.Sub(info.ModTime()) > settled {
			s.changed = info.ModTime()
		}
	}
	return slices.Clone(s.last), err // the next look changes it
}

// read reads the entries that came to the archive; all of them where one left it,
// because an older one may have its place then.
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
		one, err := ReadEntry(filepath.Join(folder, name+".json"))
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		s.last = append(s.last, view(one))
	}
	slices.SortFunc(s.last, func(a, b api.JobView) int {
		return cmp.Or(cmp.Compare(b.EndedAt, a.EndedAt), strings.Compare(a.Job, b.Job))
	})
	s.last, s.seen = s.last[:min(shelved, len(s.last))], present
	return failed
}
