// Package orphans finds and ends the processes that a dead runner left of its job.
// The broker, the doctor or the next runner calls it. It identifies a process by
// its identity and the mark of its run, never by its id or age.
package orphans

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/proc"
	"bridge/backend/platform/sandbox"
)

// maxFileBytes bounds the state and claim files, as their writer does.
const maxFileBytes = 4 << 20

// Claim is run-<n>.json in a job's folder: the runner of that run, and the secret
// that marks its processes. The next run's spec no longer has that secret.
type Claim struct {
	Runner job.Process `json:"runner"`
	Token  string      `json:"token"`
	// Cgroup is the path of the control group that the runner makes for the run's
	// processes; "" where it makes none.
	Cgroup string `json:"cgroup,omitempty"`
}

// ClaimFile returns the path of the claim of a run of the job in folder.
func ClaimFile(folder string, run int) string {
	return filepath.Join(folder, fmt.Sprintf("run-%d.json", run))
}

// ClaimOf returns the claim of a run of the job in folder. It fails with
// fs.ErrNotExist if no runner claimed it.
func ClaimOf(folder string, run int) (claim Claim, err error) {
	err = disk.ReadJSON(ClaimFile(folder, run), maxFileBytes, &claim)
	return claim, err
}

// Bar writes an empty claim, so that a late runner cannot start the run. It fails
// with fs.ErrExist if the run was started or barred before.
func Bar(folder string, run int) error {
	return disk.WriteNew(ClaimFile(folder, run), []byte("{}\n"), disk.PrivateFile)
}

// MarkOf returns the mark of the run's processes. It is the zero Mark if the run
// was never started, or if only a copy without its secret remains. It fails if the
// claim is unreadable.
func MarkOf(folder string, run int) (sandbox.Mark, error) {
	claim, err := ClaimOf(folder, run)
	if errors.Is(err, fs.ErrNotExist) || err == nil && claim.Token == "" {
		return sandbox.Mark{}, nil
	}
	return sandbox.Mark{Job: filepath.Base(folder), Token: claim.Token, Cgroup: claim.Cgroup}, err
}

// Runs reports whether that very process runs. It returns true if the system does
// not report the identity.
func Runs(process job.Process) bool {
	if process.PID <= 0 {
		return false
	}
	identity, err := proc.Identity(process.PID)
	if errors.Is(err, proc.ErrGone) {
		return false
	}
	return err != nil || identity == process.Identity
}

// Drives reports whether that process still drives the run of the job in folder. It
// does while it runs, or while the claim is locked: its runner may be in another
// process namespace (RWM-05).
func Drives(folder string, run int, runner job.Process) bool {
	if Runs(runner) {
		return true
	}
	isLocked, err := disk.IsLocked(ClaimFile(folder, run))
	return err == nil && isLocked
}

// Of returns the running processes of a job whose runner is dead. A live runner
// handles its own processes, and a finished one has done so. It fails if the
// runner's state or the system's list of processes is unreadable.
func Of(folder string) ([]job.Process, error) {
	remaining, _, err := look(folder, nil)
	return remaining, err
}

// look also returns the mark of the run. seen are processes of the run that its
// runner has not recorded.
func look(folder string, seen []job.Process) (remaining []job.Process, mark sandbox.Mark, err error) {
	data, err := disk.ReadLimited(filepath.Join(folder, "state.json"), maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, mark, nil // no runner started yet
	}
	var state runs.StateFile
	if err == nil {
		state, err = runs.DecodeState(data, filepath.Base(folder))
	}
	if err != nil || Drives(folder, state.Run, state.Runner) || state.State.IsEnded() && len(state.Processes) == 0 {
		return nil, mark, err
	}
	if mark, err = MarkOf(folder, state.Run); err != nil {
		mark = sandbox.Mark{} // the identities are usable anyway
	}
	remaining, err = sandbox.Left(mark, append(state.Processes, seen...))
	return remaining, mark, err
}

// endTime is the timeout for ending all processes of a job.
const endTime = 30 * time.Second

// End ends the processes of a job whose runner is dead, and returns them. seen are
// processes seen below the runner; it finds the others by the runner's records and
// the marks of the run. It fails with Internal if not every process could be ended.
func End(ctx context.Context, folder string, seen ...job.Process) ([]job.Process, error) {
	remaining, mark, err := look(folder, seen)
	if err == nil && len(remaining) == 0 {
		err = sandbox.RemoveCgroup(mark) // the group is empty
	}
	if err != nil || len(remaining) == 0 {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	if err := sandbox.End(ctx, mark, remaining); err != nil {
		return nil, bridge.WithCause(bridge.Internal, err, "not every process of "+filepath.Base(folder)+" could be ended: "+err.Error())
	}
	return remaining, nil
}
