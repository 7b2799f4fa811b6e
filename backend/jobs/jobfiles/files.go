package jobfiles

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/platform/disk"
)

// Files gives access to the files of the jobs of one home, apart from the registry.
type Files struct {
	Home, Archive string // folders
}

// Folder returns the folder of a job's runner, in the archive for an archived job.
func (f Files) Folder(name string) string {
	here, archived := filepath.Join(f.Home, "jobs", name), filepath.Join(f.Archive, "jobs", name)
	if _, err := os.Lstat(here); err != nil {
		if _, err := os.Lstat(archived); err == nil {
			return archived
		}
	}
	return here
}

// Entry returns the path of a job's entry in the archive.
func (f Files) Entry(name string) string { return filepath.Join(f.Archive, "jobs", name+".json") }

// ReadState reads the last state that the runner of a job wrote. It fails with fs.ErrNotExist
// if there is none, and with Invalid if the file is of another job.
func (f Files) ReadState(name string) (runs.StateFile, error) {
	data, err := disk.ReadLimited(filepath.Join(f.Folder(name), "state.json"), MaxEntryBytes)
	if err != nil {
		return runs.StateFile{}, err
	}
	return runs.DecodeState(data, name)
}

// ReadSpec reads the spec of the last run of a job. It fails with fs.ErrNotExist if there is
// none, with Unsupported for another version, and with Invalid if the file is of another job or
// incomplete.
func (f Files) ReadSpec(name string) (runs.SpecFile, error) {
	data, err := disk.ReadLimited(filepath.Join(f.Folder(name), "spec.json"), MaxEntryBytes)
	if err != nil {
		return runs.SpecFile{}, err
	}
	return runs.DecodeSpec(data, name)
}

// NoteWorktree stores the worktree that a job's runner reports, and reports whether it
// is new. A worktree that was removed counts as planned only.
func NoteWorktree(entry *job.Job, worktree *job.Worktree) bool {
	if worktree == nil || worktree.Path == "" || entry.Worktree != nil && *entry.Worktree == *worktree {
		return false
	}
	made := *worktree
	entry.Worktree = &made
	return true
}

// CopyEntry copies the entry to the archive. It fails with Conflict if the archive has
// another job with that name.
func (f Files) CopyEntry(entry job.Job) error {
	existing, err := ReadEntry(f.Entry(entry.Name))
	switch {
	case err == nil && (existing.Prompt != entry.Prompt || existing.FirstStartedAt != entry.FirstStartedAt):
		return bridge.Errorf(bridge.Conflict, "the archive has another job named %s: both are kept", entry.Name)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	data, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	return disk.WriteAtomic(f.Entry(entry.Name), data, disk.PrivateFile)
}

// Left lists the jobs with an archived entry and an unarchived folder, as after a
// broker's death or a disk failure.
func (f Files) Left() (names []string, err error) {
	entries, err := os.ReadDir(filepath.Join(f.Home, "jobs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, entry := range entries {
		if !job.IsName(entry.Name()) || !entry.IsDir() {
			continue
		}
		if _, err := os.Lstat(f.Entry(entry.Name())); err == nil {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// MoveAll moves the files of jobs, apart from their entries, to the archive. If the files of
// one job cannot be moved, it moves the rest and then fails.
func (f Files) MoveAll(names []string) error {
	if len(names) == 0 {
		return nil
	}
	approvals, failed := f.approvalsByJob()
	for _, name := range names {
		failed = errors.Join(failed, Move(f.Home, f.Archive, name, approvals[name]))
	}
	return failed
}

// approvalsByJob lists the approvals on the disk by job. It skips unreadable ones,
// which stay.
func (f Files) approvalsByJob() (map[string][]string, error) {
	ids, err := f.Approvals()
	approvals := map[string][]string{}
	for _, id := range ids {
		if approval, err := f.ReadApproval(id); err == nil && approval.Job != "" {
			approvals[approval.Job] = append(approvals[approval.Job], id)
		}
	}
	return approvals, err
}

const maxApprovalBytes = 1 << 20

// Approval returns the path of an approval.
func (f Files) Approval(id string) string { return filepath.Join(f.Home, "approvals", id+".json") }

// Approvals lists the ids of the approvals on the disk. It fails if the folder cannot be read;
// a missing folder is empty.
func (f Files) Approvals() (ids []string, err error) {
	entries, err := os.ReadDir(filepath.Join(f.Home, "approvals"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, entry := range entries {
		if id, isRecord := strings.CutSuffix(entry.Name(), ".json"); isRecord {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// ReadApproval reads an approval. It fails with fs.ErrNotExist if there is none, and if the
// file is too large or not JSON.
func (f Files) ReadApproval(id string) (approval job.Approval, err error) {
	data, err := disk.ReadLimited(f.Approval(id), maxApprovalBytes)
	if err == nil {
		err = json.Unmarshal(data, &approval)
	}
	return approval, err
}

// WriteApproval makes an approval durable. It fails if the file cannot be written.
func (f Files) WriteApproval(id string, approval job.Approval) error {
	data, err := json.Marshal(approval)
	if err != nil {
		return err
	}
	return disk.WriteAtomic(f.Approval(id), data, disk.PrivateFile)
}

// Envelope returns the path of the envelope of a job's last run that has one.
func (f Files) Envelope(name string) string { return filepath.Join(f.Folder(name), "envelope.json") }

// ReadEnvelope reads the envelope, with the shown part of a long result. If it is too
// large to read automatically, the error is runs.ErrManual and size is its size.
func (f Files) ReadEnvelope(name string) (envelope runs.Envelope, size int64, err error) {
	return runs.ReadEnvelope(disk.Regular(f.Envelope(name)), name, runs.ShownBytes)
}

// readHead is ReadEnvelope without the result's text.
func (f Files) readHead(name string) (runs.Envelope, error) {
	envelope, _, err := runs.ReadEnvelope(disk.Regular(f.Envelope(name)), name, 0)
	return envelope, err
}

// HasNoResult reports whether the job's last run lacks a readable envelope.
func (f Files) HasNoResult(entry job.Job) bool {
	envelope, err := f.readHead(entry.Name)
	return err != nil && !errors.Is(err, runs.ErrManual) || err == nil && envelope.Run != entry.Run
}

// Outcome returns the outcome in the envelope of that run. If the envelope is too large to
// read, the runner's state file decides. It fails with NotFound if the run has no envelope yet.
func (f Files) Outcome(name string, run int) (job.Outcome, error) {
	envelope, err := f.readHead(name)
	if errors.Is(err, runs.ErrManual) {
		state, stateErr := f.ReadState(name)
		if stateErr == nil && state.Run == run && state.State.IsEnded() && state.State != job.Interrupted {
			return job.Outcome{State: state.State}, nil
		}
		return job.Outcome{State: job.Failed, Ended: job.EndFailed}, nil
	}
	if err != nil {
		return job.Outcome{}, err
	}
	if envelope.Run != run {
		return job.Outcome{}, bridge.Errorf(bridge.NotFound, "run %d of %s has no envelope yet", run, name)
	}
	return envelope.Outcome(), nil
}

// WriteEnvelope writes the envelope of a run that has none. It moves an earlier or unreadable
// one aside. It fails if a file cannot be moved or written.
func (f Files) WriteEnvelope(entry job.Job, outcome job.Outcome, problem string, at time.Time) error {
	if state, err := f.ReadState(entry.Name); err == nil && state.Run == entry.Run {
		NoteWorktree(&entry, state.Worktree)
	}
	envelope := runs.NewEnvelope(entry.Name, entry.Run, outcome, "", runs.Evidence{}, at)
	envelope.Error, envelope.Title, envelope.Model = problem, entry.Title, entry.Model
	envelope.Session, envelope.Workdir = entry.SessionID, entry.Workdir
	if spec, err := f.ReadSpec(entry.Name); err == nil && spec.Run == entry.Run {
		envelope.Message, envelope.MessageBy = spec.Prompt, spec.PromptBy
	}
	if entry.Worktree.IsMade() {
		envelope.Branch, envelope.Workdir, envelope.Evidence.Base = entry.Worktree.Branch, entry.Worktree.Path, entry.Worktree.Base
	}
	data, err := envelope.Encode()
	if err != nil {
		return err
	}
	if err := disk.MakeDir(f.Folder(entry.Name)); err != nil {
		return err
	}
	if _, err := os.Lstat(f.Envelope(entry.Name)); err == nil {
		if err := disk.Move(f.Envelope(entry.Name), f.before(entry, at)); err != nil {
			return err
		}
	}
	return disk.WriteAtomic(f.Envelope(entry.Name), data, disk.PrivateFile)
}

// before returns the path to which an envelope moves before that run's envelope replaces it.
func (f Files) before(entry job.Job, at time.Time) string {
	return filepath.Join(f.Folder(entry.Name), fmt.Sprintf("envelope-before-%d-%d.json", entry.Run, at.UnixMilli()))
}

// PutAside moves the envelope of a run before the one that begins. It fails if the file cannot
// be moved; a missing one is no error.
func (f Files) PutAside(entry job.Job, at time.Time) error {
	envelope, err := f.readHead(entry.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && envelope.Run == entry.Run:
		return nil // this run ended before its start was recorded
	}
	aside := f.earlier(entry.Name, entry.Run-1)
	if _, err := os.Lstat(aside); err == nil { // a broker died during this step: both files stay
		aside = f.before(entry, at)
	}
	return disk.Move(f.Envelope(entry.Name), aside)
}

// AppendLog appends to the mirrored log of a run on another PC. It fails if the log cannot be
// opened or written.
func (f Files) AppendLog(name string, more []byte) error {
	path := filepath.Join(f.Home, "runs", name+".log")
	if err := disk.MakeDir(filepath.Dir(path)); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, disk.PrivateFile)
	if err != nil {
		return err
	}
	_, err = file.Write(more)
	return errors.Join(err, file.Close())
}
