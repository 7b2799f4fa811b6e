package jobs

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"bridge/backend/bridge"
	"bridge/backend/disk"
	"bridge/backend/job"
)

// maxRegistryBytes bounds jobs.json: 300 of the longest prompts, as the longest JSON
// escapes, with room for the rest.
const maxRegistryBytes = 256 << 20

func (j *core) registryFile() string { return filepath.Join(j.opts.Home.Dir(), "jobs.json") }

// folder is where the runner of a job keeps its own.
func (j *core) folder(name string) string { return filepath.Join(j.opts.Home.Dir(), "jobs", name) }

func (j *core) archived(name string) string {
	return filepath.Join(j.opts.Home.ArchiveDir(), "jobs", name+".json")
}

// read takes jobs.json in. One that is not there is empty; one that cannot be
// understood is an error, so that it is not written over.
func (j *core) read() error {
	data, err := disk.ReadLimited(j.registryFile(), maxRegistryBytes)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = []byte("{}"), nil
	}
	if err != nil {
		return bridge.WithCause(bridge.Storage, err, "jobs.json cannot be read: it is left as it is")
	}
	if j.file, err = job.DecodeFile(data); err != nil {
		return err
	}
	j.book = job.NewRegistry(j.opts.Limits, j.file.Jobs)
	return nil
}

// change carries something out and makes it durable: all of it, or nothing.
func (j *core) change(do func(*job.Registry) error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.changeLocked(do)
}

// errSame ends a change that changed nothing.
var errSame = errors.New("nothing changed")

func (j *core) changeLocked(do func(*job.Registry) error) error {
	if j.opts.Hold {
		return bridge.Errorf(bridge.Conflict, "older programs of Bridge are alive and keep their jobs in the same place: jobs can be given when they have ended")
	}
	if err := do(j.book); err != nil {
		if errors.Is(err, errSame) {
			return nil
		}
		j.rollBackLocked()
		return err
	}
	if err := j.writeLocked(); err != nil {
		j.rollBackLocked()
		return bridge.WithCause(bridge.Storage, err, "the job could not be recorded: "+disk.Reason(err))
	}
	return nil
}

// writeLocked makes the registry durable and shows it.
func (j *core) writeLocked() error {
	j.file.Jobs = j.book.All()
	data, err := j.file.Encode()
	if err != nil {
		return err
	}
	if err := disk.WriteAtomic(j.registryFile(), data, disk.PrivateFile); err != nil {
		return err
	}
	j.dirty = false
	j.publish()
	return nil
}

// noteLocked changes what need not be durable at once, such as progress.
func (j *core) noteLocked(name string, change func(*job.Job)) {
	if _, err := j.book.Update(name, change); err != nil {
		return // it went to the archive meanwhile
	}
	j.dirty = true
	j.publish()
}

// rollBackLocked goes back to what was shown last.
func (j *core) rollBackLocked() {
	j.book = job.NewRegistry(j.opts.Limits, slices.Clone(*j.shown.Load()))
	for root, slots := range j.slots {
		_ = j.book.SetSlots(root, slots) // it was accepted before
	}
}

// publish shows the registry to those who only read.
func (j *core) publish() {
	all := j.book.All()
	j.shown.Store(&all)
	j.opts.Broker.Changed()
}

// all lists every job as it was shown last.
func (j *core) all() []job.Job { return *j.shown.Load() }

func (j *core) get(name string) (job.Job, error) {
	for _, one := range j.all() {
		if one.Name == name {
			return one, nil
		}
	}
	return job.Job{}, bridge.Errorf(bridge.NotFound, "there is no job named %q", name)
}

// archive moves the ended jobs over the last 200 to files of their own (JOB-09).
func (j *core) archive() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	names := j.book.Archivable()
	if len(names) == 0 || j.opts.Hold {
		return nil
	}
	if err := disk.MakeDir(filepath.Dir(j.archived("x"))); err != nil {
		return err
	}
	for _, name := range names {
		one, _ := j.book.Get(name)
		data, err := json.Marshal(one)
		if err == nil {
			err = disk.WriteAtomic(j.archived(name), data, disk.PrivateFile)
		}
		if err != nil {
			return err
		}
	}
	return j.changeLocked(func(r *job.Registry) error {
		for _, name := range names {
			if err := r.Forget(name); err != nil {
				return err
			}
		}
		return nil
	})
}

// find returns a job, also one in the archive.
func (j *core) find(name string) (job.Job, error) {
	one, err := j.get(name)
	if err == nil || !job.IsName(name) {
		return one, err
	}
	data, readErr := disk.ReadLimited(j.archived(name), maxRegistryBytes)
	if errors.Is(readErr, fs.ErrNotExist) {
		return one, err
	}
	if readErr == nil {
		readErr = json.Unmarshal(data, &one)
	}
	return one, readErr
}
