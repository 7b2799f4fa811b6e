package job

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"bridge/backend/core/bridge"
)

// Limits are the limits in the owner's configuration of jobs.
type Limits struct {
	MaxJobs  int // running at once; 0 is the default
	MaxDepth int // how deep jobs may delegate; 0 is the default
	// MaxAccess is the highest access of a job; "" is AccessEdit.
	MaxAccess Access
}

// Registry has all jobs, assigns slots and keeps the queue. Each method either succeeds
// completely or returns an error and changes nothing. It has no lock and no clock.
// After each change its user calls StartNext for the next runs.
type Registry struct {
	limits  Limits
	jobs    map[string]*Job
	budgets map[string]int // root → slots of its tree, if a session set them
	line    int64          // the last place in the queue
}

// NewRegistry returns a registry with the jobs of a file.
func NewRegistry(limits Limits, jobs []Job) *Registry {
	r := &Registry{limits: limits, jobs: map[string]*Job{}, budgets: map[string]int{}}
	for i := range jobs {
		job := jobs[i]
		r.jobs[job.Name] = &job
		r.line = max(r.line, job.Line)
	}
	return r
}

// SetLimits sets the owner's current limits. Active jobs continue.
func (r *Registry) SetLimits(limits Limits) { r.limits = limits }

// CheckAccess fails with Denied if the access exceeds the owner's limit.
func (l Limits) CheckAccess(access Access) error {
	if l.MaxAccess == "" || slices.Index(accessLevels, access) <= slices.Index(accessLevels, l.MaxAccess) {
		return nil
	}
	return bridge.Errorf(bridge.Denied, "the owner allows jobs with access %s at most (jobs.maxAccess), not %s", l.MaxAccess, access)
}

func (l Limits) slots() int { return within(l.MaxJobs, DefaultMaxJobs, HighestMaxJobs) }

// Depth returns how deep jobs may delegate.
func (l Limits) Depth() int { return within(l.MaxDepth, DefaultDepth, HighestDepth) }

func within(value, otherwise, highest int) int {
	if value <= 0 {
		return otherwise
	}
	return min(value, highest)
}

// Caller is the requester of a job.
type Caller struct {
	Name   string // session or job
	ID     string // its stable identity
	IsJob  bool
	Inside bool   // of a job: the requested folder is within its own
	PC     string // the identity of the requesting paired PC; "" is this one
}

// Spawn records a job (JOB-01, JOB-22) and puts it in the queue. A job on a paired PC
// needs no slot here and is starting immediately. It fails with Invalid for an
// unsuitable name, and with Conflict if the name or the agent's session is used. It
// fails with Denied beyond the owner's limits or those of the parent job, and with Busy
// if the parent would wait for a job that cannot start now.
func (r *Registry) Spawn(request Request, name string, caller Caller, at time.Time) (Job, error) {
	if !IsName(name) {
		return Job{}, bridge.Errorf(bridge.Invalid, "%q is not the name of a job", name)
	}
	if _, has := r.jobs[name]; has {
		return Job{}, bridge.Errorf(bridge.Conflict, "there is a job named %s already", name)
	}
	job := newJob(request, name, caller, at)
	if err := r.limits.CheckAccess(job.Access); err != nil {
		return Job{}, err
	}
	if caller.IsJob {
		if err := r.nest(job, request, caller); err != nil {
			return Job{}, err
		}
	}
	if other := r.writer(job); other != "" {
		return Job{}, bridge.Errorf(bridge.Conflict, "%s works in this session: continue it by message_subagent", other)
	}
	r.jobs[name] = job
	job.Line = r.line + 1
	if job.Remote != nil {
		job.State, job.StartedAt, job.FirstStartedAt = Starting, MillisOf(at), MillisOf(at)
	}
	// A tree shares one budget, and a waiting job keeps its slot: so no job may wait
	// for one that waits for a slot.
	if request.Ask && caller.IsJob && job.State == Queued && !slices.Contains(r.startable(), job) {
		delete(r.jobs, name)
		return Job{}, bridge.Errorf(bridge.Busy, "no job can start now, and waiting for one would hold this one's own place: use spawn, or try later")
	}
	r.line++
	return r.copy(job), nil
}

func newJob(request Request, name string, caller Caller, at time.Time) *Job {
	job := &Job{
		Name: name, Agent: request.Kind, ACPAgent: request.ACPAgent, Title: request.Title, Model: request.Model,
		Effort: request.Effort, Access: request.Access, Prompt: request.Prompt, Owner: caller.Name, Supervisor: caller.ID,
		Root: caller.Name, RootID: caller.ID, Depth: 1, State: Queued, QueuedAt: MillisOf(at), SessionID: request.SessionID,
		Workdir: request.Cwd, SendTo: slices.Clone(request.SendTo), TimeoutSec: int(request.Timeout.Seconds()),
		BudgetUSD: request.BudgetUSD, PC: caller.PC,
	}
	if request.Host != "" {
		job.Remote, job.Mirror = &Remote{Host: request.Host, Name: name}, &Mirror{}
	}
	return job
}

// accessLevels are the access levels in ascending order.
var accessLevels = []Access{AccessRead, AccessAsk, AccessEdit}

// nest puts a job below its requester. Its depth, access, folder, grants and budget may
// not exceed those of the parent.
func (r *Registry) nest(job *Job, request Request, caller Caller) error {
	parent := r.jobs[caller.Name]
	if parent == nil || !parent.State.IsActive() || parent.CancelAsked {
		return bridge.Errorf(bridge.Denied, "%s does not run: it can delegate nothing", caller.Name)
	}
	if parent.PC != "" {
		return bridge.Errorf(bridge.Denied, "%s works for a paired PC: it can delegate nothing here", caller.Name)
	}
	if parent.Depth >= r.limits.Depth() {
		return bridge.Errorf(bridge.Denied, "jobs delegate %d deep at most: do this part yourself", r.limits.Depth())
	}
	if err := parent.mayGive(job.Access, caller.Inside); err != nil {
		return err
	}
	if request.Host != "" {
		return bridge.Errorf(bridge.Denied, "a job can delegate on this PC only")
	}
	for _, recipient := range job.SendTo {
		child := r.jobs[recipient]
		if !MaySend(recipient, parent.Owner, parent.SendTo) && recipient != parent.Name && (child == nil || child.Owner != parent.Name) {
			return bridge.Errorf(bridge.Denied, "send_to names %q, whom %s may not write to itself", recipient, parent.Name)
		}
	}
	if parent.BudgetUSD > 0 && (job.BudgetUSD == 0 || job.BudgetUSD > parent.BudgetUSD) {
		job.BudgetUSD = parent.BudgetUSD
	}
	job.Parent, job.Depth, job.Root, job.RootID = parent.Name, parent.Depth+1, parent.Root, parent.RootID
	return nil
}

// mayGive fails with Denied for more access than the job's own, and for changes outside its folder.
func (j *Job) mayGive(access Access, inside bool) error {
	if slices.Index(accessLevels, access) > slices.Index(accessLevels, j.Access) {
		return bridge.Errorf(bridge.Denied, "a job with access %s can delegate no job with access %s", j.Access, access)
	}
	if access != AccessRead && !inside {
		return bridge.Errorf(bridge.Denied, "a job can delegate changes within its own folder only")
	}
	return nil
}

// CheckTurn checks a job's message to a child job (JOB-22). It fails with Denied if the
// turn would exceed a job that the sender may spawn now.
func (r *Registry) CheckTurn(control Control, caller Caller) error {
	job, above := r.jobs[control.Job], r.jobs[caller.Name]
	switch {
	case !caller.IsJob || job == nil || above == nil:
		return nil
	case control.Settings.Access != "":
		return above.mayGive(control.Settings.Access, caller.Inside)
	case control.Message != "" && job.State.IsEnded():
		return above.mayGive(job.Access, caller.Inside)
	}
	return nil
}

// Get returns a copy of a job.
func (r *Registry) Get(name string) (Job, bool) {
	job, has := r.jobs[name]
	if !has {
		return Job{}, false
	}
	return r.copy(job), true
}

// All returns all jobs, in the order of their last place in the queue.
func (r *Registry) All() []Job {
	sorted := slices.SortedFunc(maps.Values(r.jobs), byLine)
	all := make([]Job, len(sorted))
	for i, job := range sorted {
		all[i] = r.copy(job)
	}
	return all
}

func byLine(a, b *Job) int {
	return cmp.Or(cmp.Compare(a.Line, b.Line), strings.Compare(a.Name, b.Name))
}

// copy returns a copy of a job, so that a caller cannot change the registry's job.
func (r *Registry) copy(job *Job) Job {
	c := *job
	c.QueuedMessages, c.SendTo, c.Said = slices.Clone(job.QueuedMessages), slices.Clone(job.SendTo), slices.Clone(job.Said)
	c.QueuedAuthors = slices.Clone(job.QueuedAuthors)
	c.History, c.Masters = slices.Clone(job.History), slices.Clone(job.Masters)
	c.Wait, c.Worktree, c.Host = clone(job.Wait), clone(job.Worktree), clone(job.Host)
	c.Landing = clone(job.Landing)
	c.Remote, c.Percent, c.Mirror = clone(job.Remote), clone(job.Percent), clone(job.Mirror)
	return c
}

func clone[T any](value *T) *T {
	if value == nil {
		return nil
	}
	c := *value
	return &c
}

// Apply performs a transition. It fails with NotFound for an unknown job, and with
// Conflict if the job's state does not allow it.
func (r *Registry) Apply(name string, transition Transition) (Job, error) {
	job, err := r.find(name)
	if err != nil {
		return Job{}, err
	}
	if err := transition.carryOut(job); err != nil {
		return Job{}, err
	}
	return r.copy(job), nil
}

// Update changes data without rules: session, folder, host, progress, cost. Fields
// under rules keep their values. It fails with NotFound for an unknown job.
func (r *Registry) Update(name string, change func(*Job)) (Job, error) {
	job, err := r.find(name)
	if err != nil {
		return Job{}, err
	}
	c := r.copy(job)
	change(&c)
	if job.Mirror == nil { // the PC of a remote job applies its own rules
		c.State, c.Run, c.Wait, c.CancelAsked = job.State, job.Run, job.Wait, job.CancelAsked
	}
	c.Name, c.Line = job.Name, job.Line
	c.Owner, c.Supervisor, c.Root, c.RootID = job.Owner, job.Supervisor, job.Root, job.RootID
	c.Parent, c.Depth, c.SendTo, c.PC = job.Parent, job.Depth, job.SendTo, job.PC
	c.QueuedMessages, c.History = job.QueuedMessages, job.History
	*job = c
	return r.copy(job), nil
}

func (r *Registry) find(name string) (*Job, error) {
	job, has := r.jobs[name]
	if !has {
		return nil, bridge.Errorf(bridge.NotFound, "there is no job named %q", name)
	}
	return job, nil
}

// Archivable returns the names of the jobs to archive, oldest first (JOB-09, STO-07):
// ended jobs beyond the last 200, and those that ended before that time. The zero time
// selects none by age. It omits jobs that were interrupted, lack an end time, or have
// an unsent result, jobs below or a worktree.
func (r *Registry) Archivable(before time.Time) []string {
	var ended []*Job
	for _, job := range r.jobs {
		if job.State.IsEnded() && job.State != Interrupted && job.FinishedAt > 0 {
			ended = append(ended, job)
		}
	}
	slices.SortFunc(ended, func(a, b *Job) int {
		return cmp.Or(cmp.Compare(a.FinishedAt, b.FinishedAt), byLine(a, b))
	})
	var names []string
	over := len(ended) - KeepFinished
	for i, job := range ended {
		if i >= over && (before.IsZero() || job.FinishedAt >= MillisOf(before)) {
			break // they are sorted by end time
		}
		if job.ResultSent && !r.hasChildren(job.Name) && !job.holdsWork() {
			names = append(names, job.Name)
		}
	}
	return names
}

func (r *Registry) hasChildren(name string) bool {
	for _, job := range r.jobs {
		if job.Parent == name && !job.State.IsEnded() {
			return true
		}
	}
	return false
}

// Forget removes an archived job. It fails with Conflict unless the job has ended.
func (r *Registry) Forget(name string) error {
	job, err := r.find(name)
	if err != nil {
		return err
	}
	if !job.State.IsEnded() {
		return bridge.Errorf(bridge.Conflict, "%s is %s: it cannot go to the archive", name, job.State)
	}
	delete(r.jobs, name)
	return nil
}
