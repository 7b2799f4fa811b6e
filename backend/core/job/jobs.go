package job

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"bridge/backend/core/bridge"
)

// Limits are what the owner's configuration says about jobs.
type Limits struct {
	MaxJobs  int // running at once; 0 is the default
	MaxDepth int // how deep jobs may delegate; 0 is the default
	// MaxAccess is the most that a job may be given; "" is AccessEdit.
	MaxAccess Access
}

// Registry knows every job, gives slots and keeps the line. Each method either does
// all that it says or returns an error and changes nothing. It holds no lock and no
// clock; after each change its user asks StartNext who may run now.
type Registry struct {
	limits  Limits
	jobs    map[string]*Job
	budgets map[string]int // root → slots of its tree, where somebody set them
	line    int64          // the last place in line that was given
}

// NewRegistry takes over the jobs of a file.
func NewRegistry(limits Limits, jobs []Job) *Registry {
	r := &Registry{limits: limits, jobs: map[string]*Job{}, budgets: map[string]int{}}
	for i := range jobs {
		job := jobs[i]
		r.jobs[job.Name] = &job
		r.line = max(r.line, job.Line)
	}
	return r
}

// SetLimits takes what the owner says now. What runs goes on.
func (r *Registry) SetLimits(limits Limits) { r.limits = limits }

// CheckAccess refuses what the owner allows no job.
func (l Limits) CheckAccess(access Access) error {
	if l.MaxAccess == "" || slices.Index(accessLevels, access) <= slices.Index(accessLevels, l.MaxAccess) {
		return nil
	}
	return bridge.Errorf(bridge.Denied, "the owner allows jobs with access %s at most (jobs.maxAccess), not %s", l.MaxAccess, access)
}

func (l Limits) slots() int { return within(l.MaxJobs, DefaultMaxJobs, HighestMaxJobs) }

// Depth is how deep jobs may delegate.
func (l Limits) Depth() int { return within(l.MaxDepth, DefaultDepth, HighestDepth) }

func within(value, otherwise, highest int) int {
	if value <= 0 {
		return otherwise
	}
	return min(value, highest)
}

// Caller is who asks for a job.
type Caller struct {
	Name   string // session or job
	ID     string // its stable identity
	IsJob  bool
	Inside bool   // of a job: the folder asked for lies within its own
	PC     string // the identity of the paired PC that asks; "" is this one
}

// Spawn takes a job in (JOB-01, JOB-22). It stands in line; one on a paired PC takes
// no slot here and is starting at once.
func (r *Registry) Spawn(request Request, name string, by Caller, at time.Time) (Job, error) {
	if !IsName(name) {
		return Job{}, bridge.Errorf(bridge.Invalid, "%q is not the name of a job", name)
	}
	if _, has := r.jobs[name]; has {
		return Job{}, bridge.Errorf(bridge.Conflict, "there is a job named %s already", name)
	}
	job := newJob(request, name, by, at)
	if err := r.limits.CheckAccess(job.Access); err != nil {
		return Job{}, err
	}
	if by.IsJob {
		if err := r.nest(job, request, by); err != nil {
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
	// All of a tree shares one budget, and a job keeps its own place while it waits: no
	// job may wait for one that waits for a place.
	if request.Ask && by.IsJob && job.State == Queued && !slices.Contains(r.startable(), job) {
		delete(r.jobs, name)
		return Job{}, bridge.Errorf(bridge.Busy, "no job can start now, and waiting for one would hold this one's own place: use spawn, or try later")
	}
	r.line++
	return r.copy(job), nil
}

func newJob(request Request, name string, by Caller, at time.Time) *Job {
	job := &Job{
		Name: name, Agent: request.Kind, ACPAgent: request.ACPAgent, Title: request.Title, Model: request.Model,
		Effort: request.Effort, Access: request.Access, Prompt: request.Prompt, Owner: by.Name, Supervisor: by.ID,
		Root: by.Name, RootID: by.ID, Depth: 1, State: Queued, QueuedAt: MillisOf(at), SessionID: request.SessionID,
		Workdir: request.Cwd, SendTo: slices.Clone(request.SendTo), TimeoutSec: int(request.Timeout.Seconds()),
		BudgetUSD: request.BudgetUSD, PC: by.PC,
	}
	if request.Host != "" {
		job.Remote, job.Mirror = &Remote{Host: request.Host, Name: name}, &Mirror{}
	}
	return job
}

// accessLevels orders what a job may hand on to another.
var accessLevels = []Access{AccessRead, AccessAsk, AccessEdit}

// nest puts a job below the one that asks for it. Nothing that it gets reaches
// further than what that one has: depth, access, folder, grants and budget.
func (r *Registry) nest(job *Job, request Request, by Caller) error {
	parent := r.jobs[by.Name]
	if parent == nil || !parent.State.IsActive() || parent.CancelAsked {
		return bridge.Errorf(bridge.Denied, "%s does not run: it can delegate nothing", by.Name)
	}
	if parent.PC != "" {
		return bridge.Errorf(bridge.Denied, "%s works for a paired PC: it can delegate nothing here", by.Name)
	}
	if parent.Depth >= r.limits.Depth() {
		return bridge.Errorf(bridge.Denied, "jobs delegate %d deep at most: do this part yourself", r.limits.Depth())
	}
	if err := parent.mayGive(job.Access, by.Inside); err != nil {
		return err
	}
	if request.Host != "" {
		return bridge.Errorf(bridge.Denied, "a job can delegate on this PC only")
	}
	for _, to := range job.SendTo {
		child := r.jobs[to]
		if !MaySend(to, parent.Owner, parent.SendTo) && to != parent.Name && (child == nil || child.Owner != parent.Name) {
			return bridge.Errorf(bridge.Denied, "send_to names %q, whom %s may not write to itself", to, parent.Name)
		}
	}
	if parent.BudgetUSD > 0 && (job.BudgetUSD == 0 || job.BudgetUSD > parent.BudgetUSD) {
		job.BudgetUSD = parent.BudgetUSD
	}
	job.Parent, job.Depth, job.Root, job.RootID = parent.Name, parent.Depth+1, parent.Root, parent.RootID
	return nil
}

// mayGive refuses more access than the job has itself, and changes out of its folder.
func (j *Job) mayGive(access Access, inside bool) error {
	if slices.Index(accessLevels, access) > slices.Index(accessLevels, j.Access) {
		return bridge.Errorf(bridge.Denied, "a job with access %s can delegate no job with access %s", j.Access, access)
	}
	if access != AccessRead && !inside {
		return bridge.Errorf(bridge.Denied, "a job can delegate changes within its own folder only")
	}
	return nil
}

// CheckTurn refuses what a job says to one below it where the turn that comes of it would
// reach further than a job that it gives now (JOB-22).
func (r *Registry) CheckTurn(control Control, by Caller) error {
	job, above := r.jobs[control.Job], r.jobs[by.Name]
	switch {
	case !by.IsJob || job == nil || above == nil:
		return nil
	case control.Settings.Access != "":
		return above.mayGive(control.Settings.Access, by.Inside)
	case control.Message != "" && job.State.IsEnded():
		return above.mayGive(job.Access, by.Inside)
	}
	return nil
}

// Get returns a job.
func (r *Registry) Get(name string) (Job, bool) {
	job, has := r.jobs[name]
	if !has {
		return Job{}, false
	}
	return r.copy(job), true
}

// All returns every job, in the order in which they came in line last.
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

// copy keeps a caller from changing a job of the registry by what it was given.
func (r *Registry) copy(job *Job) Job {
	c := *job
	c.QueuedMessages, c.SendTo, c.Said = slices.Clone(job.QueuedMessages), slices.Clone(job.SendTo), slices.Clone(job.Said)
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

// Apply carries a transition out.
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

// Update changes what is no matter of rules: session, folder, host, progress, cost.
// What rules decide stays as it is.
func (r *Registry) Update(name string, change func(*Job)) (Job, error) {
	job, err := r.find(name)
	if err != nil {
		return Job{}, err
	}
	c := r.copy(job)
	change(&c)
	if job.Mirror == nil { // of one on another PC that PC's rules decide
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

// Archivable returns the ended jobs over the last 200 and those that ended before that
// time, oldest first (JOB-09, STO-07); the zero time takes none by its age. What
// was interrupted or has no time of its end stays, as does one whose result is not
// sent yet, below which something still goes on, or of which a worktree is there.
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
			break // they are in the order of their ends
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

// Forget takes an ended job out whose entry is durable in the archive.
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
