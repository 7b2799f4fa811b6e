package jobs

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"bridge/backend/disk"
	"bridge/backend/job"
	"bridge/backend/proc"
)

// starts is the part that gives slots and starts runners.
type starts struct{ *core }

func (j *starts) loop() {
	for {
		select {
		case <-j.ready:
			j.startNext()
		case <-j.life.Done():
			return
		}
	}
}

// startNext gives slots to those who may run now, and starts their runners.
func (j *starts) startNext() {
	var started []job.Job
	err := j.change(func(r *job.Registry) error {
		if started = r.StartNext(j.opts.Now()); len(started) == 0 {
			return errSame
		}
		return nil
	})
	if err != nil {
		j.logged("start the next job", err)
		return
	}
	for _, one := range started {
		if err := j.begin(one); err != nil {
			j.opts.Log.Warn("a job could not be started", "job", one.Name, "err", err)
			outcome := job.Outcome{State: job.Failed, Ended: job.EndedNotStarted}
			j.logged("end "+one.Name, j.results.close(one, outcome, err.Error()))
		}
	}
}

// begin starts the runner of a job that has its slot.
func (j *starts) begin(one job.Job) error {
	r := newRun(one.Name, one.Run, rand.Text())
	r.launching = true
	j.mu.Lock()
	j.runs[one.Name] = r
	j.mu.Unlock()
	defer func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		r.launching = false
	}()
	if err := j.layOut(one, r); err != nil {
		return err
	}
	pid, err := j.opts.Start(j.folder(one.Name))
	if err != nil {
		return err
	}
	identity := identityOf(pid)
	return j.change(func(book *job.Registry) error {
		_, err := book.Update(one.Name, func(present *job.Job) { j.setHost(present, pid, identity) })
		return err
	})
}

// identityOf names a process for good: "" where the system does not tell.
func identityOf(pid int) string {
	identity, err := proc.Identity(pid)
	if errors.Is(err, proc.ErrGone) {
		return ended
	}
	return identity
}

// ended is the identity of no process.
const ended = "ended"

func (j *core) setHost(one *job.Job, pid int, identity string) {
	one.Host = &job.Host{PID: pid, StartedAt: job.Millis(j.opts.Now().UnixMilli()), Identity: identity}
}

// layOut writes what the runner is asked to do. What an earlier run left under the
// same names stays beside it.
func (j *starts) layOut(one job.Job, r *run) error {
	folder := j.folder(one.Name)
	if err := disk.MakeDir(folder); err != nil {
		return err
	}
	if err := j.putAside(one); err != nil {
		return err
	}
	if _, err := os.Stat(one.Workdir); err != nil {
		return fmt.Errorf("its folder: %w", err)
	}
	spec := job.SpecFile{
		Job: one.Name, Run: one.Run, Kind: one.Agent, ACPAgent: one.ACPAgent, PromptID: uuid.NewString(), Prompt: one.NextPrompt(),
		Title: one.Title, Model: one.Model, Effort: one.Effort, Session: one.SessionID, Folder: one.Workdir, Access: one.Access,
		TimeoutSec: one.TimeoutSec, BudgetUSD: one.BudgetUSD, Supervisor: one.Owner, Depth: one.Depth, SendTo: one.SendTo,
		Token: r.token, Worktree: one.Worktree, QueuedAt: one.QueuedAt,
	}
	data, err := spec.Encode()
	if err != nil {
		return err
	}
	j.mu.Lock()
	err = j.saveLocked(r) // an earlier run's orders are not this one's
	j.mu.Unlock()
	if err != nil {
		return err
	}
	return disk.WriteAtomic(filepath.Join(folder, "spec.json"), data, disk.PrivateFile)
}

// putAside keeps the envelope of an earlier run.
func (j *starts) putAside(one job.Job) error {
	path := j.results.envelopePath(one.Name)
	envelope, _, err := j.results.readEnvelope(one.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && envelope.Run == one.Run:
		return nil // this very run has ended before its start could be noted
	}
	return disk.Move(path, filepath.Join(j.folder(one.Name), fmt.Sprintf("envelope-%d.json", one.Run-1)))
}
