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

// Registry reads and writes jobs.json. While older programs use the file too, its bytes
// stay unchanged. Then the differences go to a separate file, and are merged after
// those programs end (VER-05). Its methods are not safe for concurrent use.
type Registry struct {
	Path    string // of jobs.json
	Pending string // folder of pending writes
	Kept    string // folder of completed pending writes
	Hold    bool   // older programs use jobs.json too
	Files   disk.Files

	before job.File // the content of jobs.json, under Hold
}

// Read returns the jobs. A missing file is empty. An unreadable file is an error, so
// that it is not overwritten.
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

// bringIn writes the pending changes and keeps their file. After a crash in between,
// the next start repeats it.
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

// Write makes the jobs durable. It fails if they cannot be encoded, or if the file cannot be
// written.
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
