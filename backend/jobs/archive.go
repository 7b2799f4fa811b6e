package jobs

import (
	"errors"
	"path/filepath"
	"slices"
	"time"

	"bridge/backend/core/job"
	"bridge/backend/platform/disk"
)

// archive moves the ended jobs over the last 200, and those that are older than the
// owner's age, to files of their own (JOB-09, STO-07). The copy of an entry is durable
// before the registry lets go of it, and what else there is of the job follows.
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
		one, err := j.get(name)
		if err == nil {
			err = j.said.keep(j.tasks.Context(), one)
		}
		if err != nil { // it stays: nobody takes a transcript in from the archive
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

// oldest is the moment before which an ended job goes to the archive; the zero time
// where age takes none there.
func (j *core) oldest() time.Time {
	if j.opts.ArchiveAge == 0 {
		return time.Time{}
	}
	return j.opts.Now().Add(-j.opts.ArchiveAge)
}

// archiveEntries moves those entries that still may go, and returns whose. One that
// cannot go keeps no other from it.
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
		one, _ := j.book.Get(name)
		if err := j.files.CopyEntry(one); err != nil {
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

// archiveRest moves what is left of archived jobs where a broker died or the disk failed
// in the middle.
func (j *core) archiveRest() error {
	left, err := j.files.Left()
	if err != nil {
		return err
	}
	return j.files.MoveAll(slices.DeleteFunc(left, func(name string) bool {
		_, err := j.get(name)
		return err == nil || j.checkName(name) != nil
	}))
}
