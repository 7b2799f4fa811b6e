// Package orphans finds and ends what a dead runner has left of its job: whoever
// finds it dead does, the broker, the doctor or the next runner. A process is told by
// its identity and by the mark of its run, never by its number or age.
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

// maxFileBytes bounds state and claim, as their writer does.
const maxFileBytes = 4 << 20

// Claim is run-<n>.json in a job's folder: who drives that run, and the secret that
// marks its processes, which the next run's spec does not have any more.
type Claim struct {
	Runner job.Process `json:"runner"`
	Token  string      `json:"token"`
	// Cgroup is the path of the control group that the runner makes for the run's
	// processes; "" where it makes none.
	Cgroup string `json:"cgroup,omitempty"`
}

// ClaimFile is the claim of that run of the job with that folder.
func ClaimFile(folder string, run int) string {
	return filepath.Join(folder, fmt.Sprintf("run-%d.json", run))
}

// ClaimOf is who claimed that run of the job with that folder; fs.ErrNotExist where
// nobody did.
func ClaimOf(folder string, run int) (claim Claim, err error) {
	err = disk.ReadJSON(ClaimFile(folder, run), maxFileBytes, &claim)
	return claim, err
}

// Bar claims that run for nobody, so that a runner that comes late cannot begin it any
// more; fs.ErrExist where one has begun it, or it is barred.
func Bar(folder string, run int) error {
	return disk.WriteNew(ClaimFile(folder, run), []byte("{}\n"), disk.PrivateFile)
}

// MarkOf is what the processes of that run carry; the zero Mark where nobody began
// it, or where only a copy without its secret is left.
func MarkOf(folder string, run int) (sandbox.Mark, error) {
	claim, err := ClaimOf(folder, run)
	if errors.Is(err, fs.ErrNotExist) || err == nil && claim.Token == "" {
		return sandbox.Mark{}, nil
	}
	return sandbox.Mark{Job: filepath.Base(folder), Token: claim.Token, Cgroup: claim.Cgroup}, err
}

// Runs reports whether that very process runs. Where the system does not tell, it
// does.
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

// Drives reports whether that process still drives that run of the job with that folder.
// It does while it runs, and while the claim of the run is locked: its runner may have a
// namespace of process numbers of its own (RWM-05).
func Drives(folder string, run int, runner job.Process) bool {
	if Runs(runner) {
		return true
	}
	isLocked, err := disk.IsLocked(ClaimFile(folder, run))
	return err == nil && isLocked
}

// Of names what runs of a job whose runner is dead. A runner that lives looks after
// its own, and one that came to its end has.
func Of(folder string) ([]job.Process, error) {
	left, _, err := look(folder, nil)
	return left, err
}

// look also returns the mark of the run. seen are processes of the run that its runner
// has not written down.
func look(folder string, seen []job.Process) (left []job.Process, mark sandbox.Mark, err error) {
	data, err := disk.ReadLimited(filepath.Join(folder, "state.json"), maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, mark, nil // no runner came so far
	}
	var state runs.StateFile
	if err == nil {
		state, err = runs.DecodeState(data, filepath.Base(folder))
	}
	if err != nil || Drives(folder, state.Run, state.Runner) || state.State.IsEnded() && len(state.Processes) == 0 {
		return nil, mark, err
	}
	if mark, err = MarkOf(folder, state.Run); err != nil {
		mark = sandbox.Mark{} // the identities are there all the same
	}
	left, err = sandbox.Left(mark, append(state.Processes, seen...))
	return left, mark, err
}

// endTime is what the end of everything that a job left behind may take.
const endTime = 30 * time.Second

// End ends what runs of a job whose runner is dead, and returns what that was. seen are
// processes of the run that somebody has seen below its runner; the other ones are found
// by what the runner has written down and by the marks of the run.
func End(ctx context.Context, folder string, seen ...job.Process) ([]job.Process, error) {
	left, mark, err := look(folder, seen)
	if err == nil && len(left) == 0 {
		err = sandbox.RemoveCgroup(mark) // it is empty
	}
	if err != nil || len(left) == 0 {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	if err := sandbox.End(ctx, mark, left); err != nil {
		return nil, bridge.WithCause(bridge.Internal, err, "not every process of "+filepath.Base(folder)+" could be ended: "+err.Error())
	}
	return left, nil
}
