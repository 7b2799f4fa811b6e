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

// earlier returns the path of the envelope of a run before the last one.
func (f Files) earlier(name string, run int) string {
	return filepath.Join(f.Folder(name), "envelope-"+strconv.Itoa(run)+".json")
}

// Result reads the result of one run of a job, with the shown part of a long one. If the result
// is too large to read automatically, a text with its path replaces it. It fails with NotFound
// if the run has no result here, and with Storage if the file cannot be read.
func (f Files) Result(entry job.Job, run int) (runs.Envelope, error) {
	envelope, _, err := f.result(entry, run)
	return envelope, err
}

// EncodedResult returns Result as JSON, with a long result in full. It fails as Result does.
func (f Files) EncodedResult(entry job.Job, run int) ([]byte, error) {
	envelope, path, err := f.result(entry, run)
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

// result is Result that also returns the path of the file.
func (f Files) result(entry job.Job, run int) (runs.Envelope, string, error) {
	for _, path := range []string{f.Envelope(entry.Name), f.earlier(entry.Name, run)} {
		envelope, size, err := runs.ReadEnvelope(disk.Regular(path), entry.Name, runs.ShownBytes)
		switch {
		case errors.Is(err, runs.ErrManual) && (run == entry.Run || path != f.Envelope(entry.Name)):
			where := path
			if entry.PC != "" { // its reader is on another PC, where that path is invalid or another file
				where += " on the PC that did the job"
			}
			outcome := job.Outcome{State: entry.State, Ended: entry.Ended, Until: entry.LimitUntil.Time()}
			return runs.NewEnvelope(entry.Name, run, outcome, runs.ManualBody(entry.Name, where, size), runs.Evidence{}, entry.FinishedAt.Time()), path, nil
		case err == nil && envelope.Run == run:
			return envelope, path, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, runs.ErrManual):
			return runs.Envelope{}, "", bridge.WithCause(bridge.Storage, err, "the result cannot be read: "+disk.Reason(err))
		}
	}
	return runs.Envelope{}, "", bridge.Errorf(bridge.NotFound, "run %d of %s has no result here", run, entry.Name)
}

// StoreEnvelope stores the result of a run on another PC, and keeps that of the run before it. A
// repeat has no effect. It fails with TooLarge for a result over the limit, and if Check
// refuses the envelope. It also fails if a file cannot be moved or written.
func (f Files) StoreEnvelope(entry job.Job, envelope runs.Envelope, at time.Time) error {
	size, err := envelope.EncodedBytes()
	if err == nil && size > runs.MaxEnvelopeBytes {
		err = runs.ErrManual
	}
	if err == nil {
		err = envelope.Check(entry.Name)
	}
	if err != nil {
		return err
	}
	if err := disk.MakeDir(f.Folder(entry.Name)); err != nil {
		return err
	}
	switch present, err := f.readHead(entry.Name); {
	case err == nil && present.Run == envelope.Run, errors.Is(err, fs.ErrNotExist):
	default: // from an earlier run, or damaged
		aside := f.earlier(entry.Name, envelope.Run-1)
		if _, err := os.Lstat(aside); err == nil {
			aside = f.before(entry, at)
		}
		if err := disk.Move(f.Envelope(entry.Name), aside); err != nil {
			return err
		}
	}
	return disk.Files{}.WriteAtomicBy(f.Envelope(entry.Name), envelope.EncodeTo, disk.PrivateFile)
}
