package restore

import (
	"errors"
	"path/filepath"

	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/platform/disk"
	"bridge/backend/storage/maintain/inventory"
)

// maxRegistryBytes limits jobs.json, like its reader.
const maxRegistryBytes = 256 << 20

// settleJobs ends all running jobs in the staged registry: no runner lives while a
// restore runs. A registry that this build cannot read stays unchanged; the doctor
// reports it.
func (r Restorer) settleJobs(temps staged) error {
	temp, has := temps["jobs.json"]
	if !has {
		return nil
	}
	data, err := disk.ReadLimited(temp, maxRegistryBytes)
	if err != nil {
		return err
	}
	file, err := job.DecodeFile(data)
	if err != nil || !file.Settle(r.Worker.Now(), temps.result) {
		return nil //nolint:nilerr // documented: it stays as it is
	}
	if data, err = file.Encode(); err != nil {
		return err
	}
	return r.Worker.Files().WriteAtomic(temp, data, disk.PrivateFile)
}

// result returns the outcome of that run from its staged envelope.
func (s staged) result(name string, run int) (job.Outcome, bool) {
	temp, has := s["jobs/"+name+"/envelope.json"]
	if !has {
		return job.Outcome{}, false
	}
	envelope, _, err := runs.ReadEnvelope(disk.Regular(temp), name, 0)
	if errors.Is(err, runs.ErrManual) {
		return s.runnerOutcome(name, run)
	}
	return envelope.Outcome(), err == nil && envelope.Run == run
}

// runnerOutcome returns the outcome of a run whose envelope is too large to read, from its
// runner's state file.
func (s staged) runnerOutcome(name string, run int) (job.Outcome, bool) {
	data, err := disk.ReadLimited(filepath.Clean(s["jobs/"+name+"/state.json"]), inventory.MaxRunnerBytes)
	if err != nil {
		return job.Outcome{}, false
	}
	state, err := runs.DecodeState(data, name)
	return job.Outcome{State: state.State}, err == nil && state.Run == run && state.State.IsEnded() && state.State != job.Interrupted
}
