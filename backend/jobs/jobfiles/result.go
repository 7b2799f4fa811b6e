package jobfiles

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/platform/disk"
)

// earlier is the envelope of a run after which another one began.
func (f Files) earlier(name string, run int) string {
	return filepath.Join(f.Folder(name), "envelope-"+strconv.Itoa(run)+".json")
}

// Result reads what came of one run of a job, and of a long result as much as is shown.
// What is too large to be read by itself says in its place where it is.
func (f Files) Result(one job.Job, run int) (runs.Envelope, error) {
	envelope, _, err := f.result(one, run)
	return envelope, err
}

// EncodedResult is Result as JSON, whole.
func (f Files) EncodedResult(one job.Job, run int) ([]byte, error) {
	envelope, path, err := f.result(one, run)
	switch {
	case err != nil:
		return nil, err
	case !envelope.IsPart():
		return envelope.Encode()
	}
	data, err := disk.ReadLimited(path, runs.MaxEnvelopeBytes)
	if err != nil {
		return nil, bridge.WithCause(bridge.Storage, err, "the result cannot be read: "+disk.Reason(err))
	}
	return data, nil
}

// result is Result, and the file from which it was read.
func (f Files) result(one job.Job, run int) (runs.Envelope, string, error) {
	for _, path := range []string{f.Envelope(one.Name), f.earlier(one.Name, run)} {
		envelope, size, err := runs.ReadEnvelope(disk.Regular(path), one.Name, runs.ShownBytes)
		switch {
		case errors.Is(err, runs.ErrManual) && (run == one.Run || path != f.Envelope(one.Name)):
			where := path
			if one.PC != "" { // its reader is on another PC, where that path is nothing, or another file
				where += " on the PC that did the job"
			}
			outcome := job.Outcome{State: one.State, Ended: one.Ended, Until: one.LimitUntil.Time()}
			return runs.NewEnvelope(one.Name, run, outcome, runs.ManualBody(one.Name, where, size), runs.Evidence{}, one.FinishedAt.Time()), path, nil
		case err == nil && envelope.Run == run:
			return envelope, path, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, runs.ErrManual):
			return runs.Envelope{}, "", bridge.WithCause(bridge.Storage, err, "the result cannot be read: "+disk.Reason(err))
		}
	}
	return runs.Envelope{}, "", bridge.Errorf(bridge.NotFound, "run %d of %s has no result here", run, one.Name)
}

// TakeEnvelope keeps what came of a run elsewhere, beside that of the run before it.
// The same one again changes nothing.
func (f Files) TakeEnvelope(one job.Job, envelope runs.Envelope, at time.Time) error {
	size, err := envelope.EncodedBytes()
	if err == nil && size > runs.MaxEnvelopeBytes {
		err = runs.ErrManual
	}
	if err == nil {
		err = envelope.Check(one.Name)
	}
	if err != nil {
		return err
	}
	if err := disk.MakeDir(f.Folder(one.Name)); err != nil {
		return err
	}
	switch present, err := f.readHead(one.Name); {
	case err == nil && present.Run == envelope.Run, errors.Is(err, fs.ErrNotExist):
	default: // of an earlier run, or damaged
		aside := f.earlier(one.Name, envelope.Run-1)
		if _, err := os.Lstat(aside); err == nil {
			aside = f.before(one, at)
		}
		if err := disk.Move(f.Envelope(one.Name), aside); err != nil {
			return err
		}
	}
	return disk.Files{}.WriteAtomicBy(f.Envelope(one.Name), envelope.EncodeTo, disk.PrivateFile)
}
