package job

import (
	"slices"
	"strings"
	"time"

	"bridge/backend/bridge"
)

// StartNext gives slots to those who may run now, first in, first out, and returns
// them in that order (JOB-09). One whose tree has no slot left, or in whose session
// another job works, lets others pass and keeps its place.
func (r *Registry) StartNext(at time.Time) []Job {
	var started []Job
	for _, job := range r.startable() {
		if Start(at).carryOut(job) == nil {
			started = append(started, r.copy(job))
		}
	}
	return started
}

// startable lists those who may run now, in their order.
func (r *Registry) startable() []*Job {
	running, trees := 0, map[string]int{}
	sessions := map[string]bool{}
	var line []*Job
	for _, job := range r.jobs {
		if job.State == Queued {
			line = append(line, job)
		}
		if job.takesSlot() {
			running++
			trees[job.RootID]++
			sessions[job.session()] = true
		}
	}
	slices.SortFunc(line, byLine)
	var next []*Job
	for _, job := range line {
		key := job.session()
		if running >= r.slots() || trees[job.RootID] >= r.treeSlots(job.RootID) || key != "" && sessions[key] {
			continue
		}
		running++
		trees[job.RootID]++
		sessions[key] = true
		next = append(next, job)
	}
	return next
}

// takesSlot reports whether the job runs on this PC.
func (j *Job) takesSlot() bool { return j.State.IsActive() && j.Remote == nil }

// session names the agent's session that the job writes to; "" while it has none.
// Not every agent refuses a second writer.
func (j *Job) session() string {
	if j.SessionID == "" || j.Remote != nil {
		return ""
	}
	return string(j.Agent) + "\x00" + j.ACPAgent + "\x00" + j.SessionID
}

// writer names another job that works in job's session or is about to.
func (r *Registry) writer(job *Job) string {
	key := job.session()
	for _, other := range r.jobs {
		if key != "" && other != job && !other.State.IsEnded() && other.session() == key {
			return other.Name
		}
	}
	return ""
}

// slots are how many jobs run at once: maxJobs, or more where a session has asked for
// more for its own tree.
func (r *Registry) slots() int {
	slots := r.limits.slots()
	for _, own := range r.budgets {
		slots = max(slots, own)
	}
	return slots
}

// treeSlots are how many jobs of a tree run at once, whatever their depth (JOB-22).
func (r *Registry) treeSlots(root string) int {
	if own, has := r.budgets[root]; has {
		return own
	}
	return r.limits.slots()
}

// SetSlots sets how many jobs of a session's tree run at once: 1 to 50. What runs
// goes on.
func (r *Registry) SetSlots(root string, slots int) error {
	if slots < 1 || slots > HighestMaxJobs {
		return bridge.Errorf(bridge.Invalid, "limit must be 1 to 50, not %d", slots)
	}
	r.budgets[root] = slots
	return nil
}

// Slots says how many jobs of a tree may run at once, how many do, and how many
// stand in line.
func (r *Registry) Slots(root string) (limit, running, queued int) {
	for _, job := range r.jobs {
		if job.RootID != root {
			continue
		}
		if job.takesSlot() {
			running++
		}
		if job.State == Queued {
			queued++
		}
	}
	return r.treeSlots(root), running, queued
}

// Delivery says what becomes of a message to a job (JOB-05).
type Delivery string

// The deliveries.
const (
	ToRunning  Delivery = "running"   // the runner hands it over at the next safe step
	Continued  Delivery = "continued" // the job goes on with it now
	InLine     Delivery = "queued"    // the job goes on with it when a slot is free
	AnswerDone Delivery = "applied"   // it was an answer to an approval
	NoDelivery Delivery = ""          // only settings changed
)

// Message gives a job words, or new settings for its next turn, or both. Words for
// a running one are its runner's to deliver; every other one keeps them and goes
// back in line, behind those who stand there. Its grants stay as they are.
func (r *Registry) Message(name, body string, settings Settings, at time.Time) (Delivery, error) {
	job, err := r.find(name)
	if err != nil {
		return "", err
	}
	if body == "" && settings == (Settings{}) {
		return "", bridge.Errorf(bridge.Invalid, "there is nothing to be said to %s", name)
	}
	delivery := NoDelivery
	switch {
	case body == "":
	case job.State.IsActive():
		delivery = ToRunning
	case job.State == Queued:
		job.QueuedMessages = append(job.QueuedMessages, body)
		delivery = InLine
	default:
		delivery, err = r.requeue(job, body, at)
	}
	if err == nil {
		job.set(settings)
	}
	return delivery, err
}

func (r *Registry) requeue(job *Job, body string, at time.Time) (Delivery, error) {
	if job.Remote != nil {
		return "", bridge.Errorf(bridge.Conflict, "%s is on another PC: its own registry continues it", job.Name)
	}
	if err := requeue().carryOut(job); err != nil {
		return "", err
	}
	r.line++
	job.Line, job.QueuedAt = r.line, millis(at)
	job.QueuedMessages = append(job.QueuedMessages, body)
	if slices.Contains(r.startable(), job) {
		return Continued, nil
	}
	return InLine, nil
}

func (j *Job) set(settings Settings) {
	for _, one := range []struct {
		to  *string
		new string
	}{{&j.Title, settings.Title}, {&j.Model, settings.Model}, {&j.Effort, settings.Effort}} {
		if one.new != "" {
			*one.to = one.new
		}
	}
	if settings.Access != "" {
		j.Access = settings.Access
	}
}

// NextPrompt is what the job's next run is told: what stood in line for it, and
// the first prompt where no session has it yet.
func (j *Job) NextPrompt() string {
	said := j.QueuedMessages
	if j.FirstStartedAt == 0 || j.SessionID == "" || len(said) == 0 {
		said = append([]string{j.Prompt}, said...)
	}
	return strings.Join(said, "\n\n")
}

// Cancel ends a job's wait at once, or notes that a running one is to be ended; its
// runner ends it and says so. What has ended is left as it is.
func (r *Registry) Cancel(name string, at time.Time) (Job, error) {
	job, err := r.find(name)
	if err != nil {
		return Job{}, err
	}
	switch {
	case job.State == Queued:
		if err := Drop(at).carryOut(job); err != nil {
			return Job{}, err
		}
	case job.State.IsActive():
		job.CancelAsked = true
	}
	return r.copy(job), nil
}

// MayControl reports whether somebody may steer a job: its supervisor, or the owner.
func (j *Job) MayControl(by string, owner bool) error {
	if owner || by != "" && by == j.Owner {
		return nil
	}
	return bridge.Errorf(bridge.Denied, "%s works for %s: only %s or the owner can steer it", j.Name, j.Owner, j.Owner)
}

// MarkSent notes that the result of that run reached the store, under the one id
// that it has. It reports whether it was the first time.
func (r *Registry) MarkSent(name string, run int) (first bool, err error) {
	job, err := r.find(name)
	if err != nil {
		return false, err
	}
	if job.Run != run || !job.State.IsEnded() || job.ResultSent {
		return false, nil
	}
	job.ResultSent = true
	return true, nil
}

// ResultTo names whom a job's result goes to: who asked for it, or, where that is a
// job that has ended and would never read it, the one above.
func (r *Registry) ResultTo(name string) (string, error) {
	job, err := r.find(name)
	if err != nil {
		return "", err
	}
	for job.Parent != "" {
		parent := r.jobs[job.Parent]
		if parent == nil { // it is in the archive
			return job.Root, nil
		}
		if !parent.State.IsEnded() {
			return parent.Name, nil
		}
		job = parent
	}
	return job.Owner, nil
}

// HandOff makes another live session of this PC the supervisor of jobs, all of them
// or none (JOB-23). What is below them goes with them. It returns the names.
func (r *Registry) HandOff(handoff Handoff, from string, to Caller, at time.Time) ([]string, error) {
	if to.IsJob || IsName(to.Name) || strings.Contains(to.Name, "/") {
		return nil, bridge.Errorf(bridge.Denied, "jobs can be handed to a session of this PC only")
	}
	if to.Name == from {
		return nil, bridge.Errorf(bridge.Invalid, "they are %s's already", from)
	}
	jobs, err := r.selected(handoff, from)
	if err != nil {
		return nil, err
	}
	var moved []string
	for _, job := range jobs {
		job.History = append(job.History, Ownership{From: from, To: to.Name, At: millis(at), Note: handoff.Note})
		job.Owner, job.Supervisor, job.Parent, job.Depth = to.Name, to.ID, "", 1
		r.reroot(job, to)
		moved = append(moved, job.Name)
	}
	return moved, nil
}

// selected lists the jobs of a hand-off, or says which one forbids it.
func (r *Registry) selected(handoff Handoff, from string) ([]*Job, error) {
	names := handoff.Jobs
	if handoff.All {
		names = nil
		for _, job := range r.All() {
			if job.Owner == from {
				names = append(names, job.Name)
			}
		}
	}
	var jobs []*Job
	for _, name := range names {
		job, err := r.find(name)
		switch {
		case err != nil:
			return nil, err
		case job.Owner != from:
			return nil, bridge.Errorf(bridge.Denied, "%s works for %s: none was handed over", name, job.Owner)
		case job.Remote != nil:
			return nil, bridge.Errorf(bridge.Denied, "%s runs on another PC and cannot be handed over: none was", name)
		case slices.Contains(jobs, job):
			return nil, bridge.Errorf(bridge.Invalid, "jobs names %s twice", name)
		}
		jobs = append(jobs, job)
	}
	if len(jobs) == 0 {
		return nil, bridge.Errorf(bridge.NotFound, "%s has no jobs to be handed over", from)
	}
	return jobs, nil
}

// reroot puts job and all below it under a new root.
func (r *Registry) reroot(job *Job, root Caller) {
	job.Root, job.RootID = root.Name, root.ID
	for _, child := range r.jobs {
		if child.Parent == job.Name {
			child.Depth = job.Depth + 1
			r.reroot(child, root)
		}
	}
}
