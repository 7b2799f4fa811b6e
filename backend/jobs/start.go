package jobs

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/uuid"

	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/orphans"
	"bridge/backend/platform/proc"
)

// starts is the part that assigns slots and starts runners.
type starts struct{ *core }

func (j *starts) loop() {
	j.takeUp()
	for {
		select {
		case <-j.ready:
			j.startNext()
		case <-j.tasks.Done():
			return
		}
	}
}

// startNext assigns slots to the queued jobs that may run now, and starts their runners.
func (j *starts) startNext() {
	if err := j.allowed(); err != nil {
		if slices.ContainsFunc(j.all(), func(one job.Job) bool { return one.State == job.Queued }) {
			j.logged("start the next job", err)
		}
		return
	}
	started, err := j.giveSlots()
	j.logged("start the next job", err)
	for _, one := range started {
		j.beginOrEnd(one)
	}
}

// giveSlots begins the runs of the jobs that may run now. From then on a message goes
// to the run, although its runner may not have begun.
func (j *starts) giveSlots() (started []job.Job, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	err = j.changeLocked(func(r *job.Registry) error {
		if started = r.StartNext(j.opts.Now()); len(started) == 0 {
			return errSame
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, one := range started {
		r := newRun(one.Name, one.Run, "")
		r.launching = true
		j.runs[one.Name] = r
	}
	return started, nil
}

// takeUp starts the runs during whose start an earlier broker died. If that broker
// already started a runner, only one of the two runners claims the run.
func (j *starts) takeUp() {
	for _, one := range j.all() {
		if one.State != job.Starting || one.Host != nil || one.Remote != nil {
			continue
		}
		if _, err := orphans.ClaimOf(j.files.Folder(one.Name), one.Run); errors.Is(err, fs.ErrNotExist) {
			j.beginOrEnd(one)
		}
	}
}

func (j *starts) beginOrEnd(one job.Job) {
	if err := j.begin(one); err != nil {
		j.opts.Log.Warn("a job could not be started", "job", one.Name, "err", err)
		outcome := job.Outcome{State: job.Failed, Ended: job.EndedNotStarted}
		j.logged("end "+one.Name, j.results.close(one, outcome, err.Error()))
	}
}

// begin starts the runner of a job that has a slot. It keeps an earlier broker's files
// for that run, because its runner may be starting.
func (j *starts) begin(one job.Job) error {
	j.mu.Lock()
	r := j.runs[one.Name]
	if r == nil || r.number != one.Run {
		r = newRun(one.Name, one.Run, "")
		j.runs[one.Name] = r
	}
	isLaidOut := r.token != ""
	r.token, r.launching = cmp.Or(r.token, rand.Text()), true
	j.mu.Unlock()
	defer func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		r.launching = false
	}()
	if one.Worktree != nil { // no clean-up may remove it while the runner uses it
		if err := j.landings.Wait(j.tasks.Context()); err != nil {
			return err
		}
	}
	if !isLaidOut {
		if err := j.layOut(one, r); err != nil {
			return err
		}
	}
	j.mu.Lock()
	j.standsLocked(r, nil) // its processes are known by their mark before its runner is recorded
	j.mu.Unlock()
	pid, err := j.opts.Start(j.files.Folder(one.Name))
	if err != nil {
		return err
	}
	identity := identityOf(pid)
	return j.change(func(book *job.Registry) error {
		present, err := book.Update(one.Name, func(present *job.Job) { j.setHost(present, pid, identity) })
		j.standsLocked(r, present.Host)
		return err
	})
}

// identityOf returns the permanent identity of a process, or "" if the system reports none.
func identityOf(pid int) string {
	identity, err := proc.Identity(pid)
	if errors.Is(err, proc.ErrGone) {
		return ended
	}
	return identity
}

// ended is the identity that identityOf returns for a process that is gone.
const ended = "ended"

func (j *core) setHost(one *job.Job, pid int, identity string) {
	one.Host = &job.Host{PID: pid, StartedAt: job.Millis(j.opts.Now().UnixMilli()), Identity: identity}
}

// layOut writes the runner's spec. It moves an earlier run's files with the same names
// aside.
func (j *starts) layOut(one job.Job, r *run) error {
	folder := j.files.Folder(one.Name)
	if err := disk.MakeDir(folder); err != nil {
		return err
	}
	if err := j.files.PutAside(one, j.opts.Now()); err != nil {
		return err
	}
	worktree := one.Worktree
	if !worktree.IsMade() {
		if _, err := os.Stat(one.Workdir); err != nil {
			return fmt.Errorf("its folder: %w", err)
		}
		if worktree != nil {
			worktree = &job.Worktree{} // a new worktree
		}
	}
	settings, err := j.opts.Settings()
	if err != nil {
		return err
	}
	spec := runs.SpecFile{
		Job: one.Name, Run: one.Run, Kind: one.Agent, ACPAgent: one.ACPAgent, PromptID: uuid.NewString(), Prompt: one.NextPrompt(),
		Title: one.Title, Model: one.Model, Effort: one.Effort, Session: one.SessionID, Folder: one.Workdir, Access: one.Access,
		TimeoutSec: one.TimeoutSec, BudgetUSD: one.BudgetUSD, Supervisor: one.Owner, Depth: one.Depth, SendTo: one.SendTo,
		Token: r.token, Worktree: worktree, QueuedAt: one.QueuedAt, ToolOnly: settings.AllowToolLevelOnly,
		Unlinked: one.PC != "",
	}
	if one.Worktree != nil {
		spec.Worktrees = filepath.Dir(one.Worktree.Path)
	}
	data, err := spec.Encode()
	if err != nil {
		return err
	}
	j.mu.Lock()
	err = j.saveLocked(r) // an earlier run's orders do not belong to this run
	j.mu.Unlock()
	if err != nil {
		return err
	}
	return disk.WriteAtomic(filepath.Join(folder, "spec.json"), data, disk.PrivateFile)
}
