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

// scheduler is the part that assigns slots and starts runners.
type scheduler struct{ *core }

func (j *scheduler) loop() {
	j.resumeStarts()
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
func (j *scheduler) startNext() {
	if err := j.allowed(); err != nil {
		if slices.ContainsFunc(j.all(), func(entry job.Job) bool { return entry.State == job.Queued }) {
			j.logged("start the next job", err)
		}
		return
	}
	started, err := j.giveSlots()
	j.logged("start the next job", err)
	for _, entry := range started {
		j.beginOrEnd(entry)
	}
}

// giveSlots begins the runs of the jobs that may run now. From then on a message goes
// to the run, although its runner may not have begun.
func (j *scheduler) giveSlots() (started []job.Job, err error) {
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
	for _, entry := range started {
		r := newRun(entry.Name, entry.Run, "")
		r.launching = true
		j.runs[entry.Name] = r
	}
	return started, nil
}

// resumeStarts starts the runs during whose start an earlier broker died. If that broker
// already started a runner, only one of the two runners claims the run.
func (j *scheduler) resumeStarts() {
	for _, entry := range j.all() {
		if entry.State != job.Starting || entry.Host != nil || entry.Remote != nil {
			continue
		}
		if _, err := orphans.ClaimOf(j.files.Folder(entry.Name), entry.Run); errors.Is(err, fs.ErrNotExist) {
			j.beginOrEnd(entry)
		}
	}
}

func (j *scheduler) beginOrEnd(entry job.Job) {
	if err := j.begin(entry); err != nil {
		j.opts.Log.Warn("a job could not be started", "job", entry.Name, "err", err)
		outcome := job.Outcome{State: job.Failed, Ended: job.EndedNotStarted}
		j.logged("end "+entry.Name, j.results.close(entry, outcome, err.Error()))
	}
}

// begin starts the runner of a job that has a slot. It keeps an earlier broker's files
// for that run, because its runner may be starting.
func (j *scheduler) begin(entry job.Job) error {
	j.mu.Lock()
	r := j.runs[entry.Name]
	if r == nil || r.number != entry.Run {
		r = newRun(entry.Name, entry.Run, "")
		j.runs[entry.Name] = r
	}
	isLaidOut := r.token != ""
	r.token, r.launching = cmp.Or(r.token, rand.Text()), true
	j.mu.Unlock()
	defer func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		r.launching = false
	}()
	if entry.Worktree != nil { // no clean-up may remove it while the runner uses it
		if err := j.landings.Wait(j.tasks.Context()); err != nil {
			return err
		}
	}
	if !isLaidOut {
		if err := j.layOut(entry, r); err != nil {
			return err
		}
	}
	j.mu.Lock()
	j.recordProcessesLocked(r, nil) // its processes are known by their mark before its runner is recorded
	j.mu.Unlock()
	pid, err := j.opts.Start(j.files.Folder(entry.Name))
	if err != nil {
		return err
	}
	identity := identityOf(pid)
	return j.change(func(book *job.Registry) error {
		present, err := book.Update(entry.Name, func(present *job.Job) { j.setHost(present, pid, identity) })
		j.recordProcessesLocked(r, present.Host)
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

func (j *core) setHost(entry *job.Job, pid int, identity string) {
	entry.Host = &job.Host{PID: pid, StartedAt: job.Millis(j.opts.Now().UnixMilli()), Identity: identity}
}

// layOut writes the runner's spec. It moves an earlier run's files with the same names
// aside.
func (j *scheduler) layOut(entry job.Job, r *run) error {
	folder := j.files.Folder(entry.Name)
	if err := disk.MakeDir(folder); err != nil {
		return err
	}
	if err := j.files.PutAside(entry, j.opts.Now()); err != nil {
		return err
	}
	worktree := entry.Worktree
	if !worktree.IsMade() {
		if _, err := os.Stat(entry.Workdir); err != nil {
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
		Job: entry.Name, Run: entry.Run, Kind: entry.Agent, ACPAgent: entry.ACPAgent, PromptID: uuid.NewString(), Prompt: entry.NextPrompt(), PromptBy: entry.NextAuthors(),
		Title: entry.Title, Model: entry.Model, Effort: entry.Effort, Session: entry.SessionID, Folder: entry.Workdir, Access: entry.Access,
		TimeoutSec: entry.TimeoutSec, BudgetUSD: entry.BudgetUSD, Supervisor: entry.Owner, Depth: entry.Depth, SendTo: entry.SendTo,
		Token: r.token, Worktree: worktree, QueuedAt: entry.QueuedAt,
		Restrictions: runs.Restrictions{ToolOnly: settings.AllowToolLevelOnly, Unlinked: entry.PC != ""},
	}
	if entry.Worktree != nil {
		spec.Worktrees = filepath.Dir(entry.Worktree.Path)
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
