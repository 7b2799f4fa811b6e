package jobfiles

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/disk"
)

// Registry reads and writes jobs.json. While older programs keep it too, its bytes
// stay as they are: what differs from it is then a file beside, which comes into it
// when they have left (VER-05). Its methods are not for concurrent use.
type Registry struct {
	Path    string // of jobs.json
	Pending string // folder of writes that wait
	Kept    string // folder of those that are done
	Hold    bool   // older programs keep it too
	Files   disk.Files

	before job.File // as jobs.json was, under Hold
}

// Read returns the jobs. A file that is not there is empty; one that cannot be
// understood is an error, so that it is not written over.
func (r *Registry) Read() (job.File, error) {
	data, err := disk.ReadLimited(r.Path, MaxEntryBytes)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = []byte("{}"), nil
	}
	if err != nil {
		return job.File{}, bridge.WithCause(bridge.Storage, err, "jobs.json cannot be read: it is left as it is")
	}
	file, err := job.DecodeFile(data)
	if err != nil {
		return job.File{}, err
	}
	if r.Hold {
		r.before = file
	}
	pending, err := r.pending()
	if errors.Is(err, fs.ErrNotExist) {
		return file, nil
	}
	if err == nil {
		file, err = file.Merge(pending)
	}
	if err != nil {
		return job.File{}, bridge.WithCause(bridge.Storage, err, fmt.Sprintf("%s, writes to jobs.json that wait, cannot be read: it is left as it is", r.waiting()))
	}
	if r.Hold {
		return file, nil
	}
	return file, r.bringIn(file, pending)
}

func (r *Registry) waiting() string { return filepath.Join(r.Pending, job.PendingFile) }

func (r *Registry) pending() (job.Pending, error) {
	data, err := disk.ReadLimited(r.waiting(), MaxEntryBytes)
	if err != nil {
		return job.Pending{}, err
	}
	return job.DecodePending(data)
}

// bringIn writes what waited and keeps the file that it waited in. After a crash in
// between it is done again.
func (r *Registry) bringIn(file job.File, pending job.Pending) error {
	if err := r.write(file); err != nil {
		return err
	}
	if err := disk.MakeDir(r.Kept); err != nil {
		return err
	}
	return r.Files.Publish(r.waiting(), filepath.Join(r.Kept, fmt.Sprintf("jobs-%d.json", pending.RecordedAt)))
}

func (r *Registry) write(file job.File) error {
	data, err := file.Encode()
	if err != nil {
		return err
	}
	return r.Files.WriteAtomic(r.Path, data, disk.PrivateFile)
}

// Write makes the jobs durable.
func (r *Registry) Write(file job.File, at job.Millis) error {
	if !r.Hold {
		return r.write(file)
	}
	pending, err := file.Since(r.before, at)
	if err != nil {
		return err
	}
	data, err := json.Marshal(pending)
	if err == nil {
		err = disk.MakeDir(r.Pending)
	}
	if err != nil {
		return err
	}
	return r.Files.WriteAtomic(r.waiting(), data, disk.PrivateFile)
}
