package jobs

import (
	"errors"
	"path/filepath"
	"slices"
	"time"

	"bridge/backend/core/job"
	"bridge/backend/platform/disk"
)

// archive moves ended jobs to the archive: those beyond the last 200, and those over
// the owner's age (JOB-09, STO-07). It makes the copy of an entry durable before it
// removes the entry. Then it moves the job's other files.
func (j *Jobs) archive() (failed error) {
	if j.opts.Hold {
		return nil
	}
	if j.rest {
		failed = j.archiveRest()
		j.rest = failed != nil
	}
	j.mu.Lock()
	names := j.book.Archivable(j.oldest())
	j.mu.Unlock()
	var ready []string
	for _, name := range names {
		entry, err := j.get(name)
		if err == nil {
			err = j.transcripts.keep(j.tasks.Context(), entry)
		}
		if err != nil { // the job stays: its transcript cannot be read from the archive
			failed = errors.Join(failed, err)
			continue
		}
		ready = append(ready, name)
	}
	if len(ready) == 0 {
		return failed
	}
	moved, err := j.archiveEntries(ready)
	filesErr := j.files.MoveAll(moved)
	j.rest = j.rest || filesErr != nil
	return errors.Join(failed, err, filesErr)
}

// oldest returns the time before which an ended job goes to the archive. It returns the
// zero time if no age is set.
func (j *core) oldest() time.Time {
	if j.opts.ArchiveAge == 0 {
		return time.Time{}
	}
	return j.opts.Now().Add(-j.opts.ArchiveAge)
}

// archiveEntries moves the entries that are still archivable and returns their names. A
// failure of one entry does not block the others.
func (j *core) archiveEntries(ready []string) (moved []string, failed error) {
	if err := disk.MakeDir(filepath.Dir(j.files.Entry("x"))); err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, name := range j.book.Archivable(j.oldest()) {
		if !slices.Contains(ready, name) {
			continue
		}
		entry, _ := j.book.Get(name)
		if err := j.files.CopyEntry(entry); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		moved = append(moved, name)
	}
	if len(moved) == 0 {
		return nil, failed
	}
	err := j.changeLocked(func(r *job.Registry) error {
		for _, name := range moved {
			if err := r.Forget(name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		moved = nil
	}
	return moved, errors.Join(failed, err)
}

// archiveRest moves the remaining files of archived jobs after a broker died or a disk
// write failed.
func (j *core) archiveRest() error {
	remaining, err := j.files.Left()
	if err != nil {
		return err
	}
	return j.files.MoveAll(slices.DeleteFunc(remaining, func(name string) bool {
		_, err := j.get(name)
		return err == nil || j.checkName(name) != nil
	}))
}
