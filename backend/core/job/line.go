package job

import (
	"maps"
	"slices"
	"strings"
	"time"

	"bridge/backend/core/bridge"
)

// StartNext assigns slots to the jobs that may run now, first in, first out, and
// returns them in that order (JOB-09). If a job's tree has no slot, or another job uses
// its session, others pass it and it keeps its place.
func (r *Registry) StartNext(at time.Time) []Job {
	var started []Job
	for _, job := range r.startable() {
		if Start(at).carryOut(job) == nil {
			started = append(started, r.copy(job))
		}
	}
	return started
}

// startable returns the jobs that may run now, in order.
func (r *Registry) startable() []*Job {
	running, trees := 0, map[string]int{}
	sessions := map[string]bool{}
	var line []*Job
	for _, job := range r.jobs {
		if job.State == Queued && job.Remote == nil {
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

// session returns the key of the agent's session that the job writes to, or "". Not
// every agent refuses a second writer.
func (j *Job) session() string {
	if j.SessionID == "" || j.Remote != nil {
		return ""
	}
	return string(j.Agent) + "\x00" + j.ACPAgent + "\x00" + j.SessionID
}

// writer returns another job that uses job's session or will use it, or "".
func (r *Registry) writer(job *Job) string {
	key := job.session()
	for _, other := range r.jobs {
		if key != "" && other != job && !other.State.IsEnded() && other.session() == key {
			return other.Name
		}
	}
	return ""
}

// slots returns how many jobs run at once: maxJobs, or more if a session requested more
// for its tree.
func (r *Registry) slots() int {
	slots := r.limits.slots()
	for _, own := range r.budgets {
		slots = max(slots, own)
	}
	return slots
}

// treeSlots returns how many jobs of a tree run at once, at any depth (JOB-22).
func (r *Registry) treeSlots(root string) int {
	if own, has := r.budgets[root]; has {
		return own
	}
	return r.limits.slots()
}

// SetSlots sets how many jobs of a session's tree run at once. Active jobs continue. It
// fails with Invalid unless slots is 1 to 50.
func (r *Registry) SetSlots(root string, slots int) error {
	if slots < 1 || slots > HighestMaxJobs {
		return bridge.Errorf(bridge.Invalid, "limit must be 1 to 50, not %d", slots)
	}
	r.budgets[root] = slots
	return nil
}

// Slots returns how many jobs of a tree may run at once, how many run, and how many are
// queued.
func (r *Registry) Slots(root string) (limit, running, queued int) {
	for _, job := range r.jobs {
		if job.RootID != root {
			continue
		}
		if job.takesSlot() {
			running++
		}
		if job.State == Queued && job.Remote == nil {
			queued++
		}
	}
	return r.treeSlots(root), running, queued
}

// Delivery is the result of a message to a job (JOB-05).
type Delivery string

// The deliveries.
const (
	ToRunning  Delivery = "running"   // the runner sends it at the next safe step
	Continued  Delivery = "continued" // the job continues with it now
	InLine     Delivery = "queued"    // the job continues with it after a slot is free or its turn has ended
	AnswerDone Delivery = "applied"   // it was an answer to an approval
	NoDelivery Delivery = ""          // only settings have changed
)

// Message sends a job a message, or settings for its next turn, or both. The runner
// delivers a message for a running job. Any other job stores it and goes to the end of
// the queue. The job's grants stay. It fails with NotFound for an unknown job, with
// Invalid if there is nothing to send, with Denied beyond the owner's access limit, and
// with Conflict for an ended job of another PC or one whose work is finished.
func (r *Registry) Message(name, body string, settings Settings, at time.Time) (Delivery, error) {
	job, err := r.find(name)
	if err != nil {
		return "", err
	}
	if body == "" && settings == (Settings{}) {
		return "", bridge.Errorf(bridge.Invalid, "there is nothing to be said to %s", name)
	}
	if err := r.checkAccess(job, body, settings); err != nil {
		return "", err
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

// checkAccess fails with Denied for a next turn beyond the owner's current access limit. A
// message to an active job begins no turn of this kind.
func (r *Registry) checkAccess(job *Job, body string, settings Settings) error {
	switch {
	case settings.Access != "":
		return r.limits.CheckAccess(settings.Access)
	case body != "" && job.State.IsEnded():
		return r.limits.CheckAccess(job.Access)
	}
	return nil
}

func (r *Registry) requeue(job *Job, body string, at time.Time) (Delivery, error) {
	if job.Remote != nil {
		return "", bridge.Errorf(bridge.Conflict, "%s is on another PC: its own registry continues it", job.Name)
	}
	if err := job.Landing.refuses(job.Name); err != nil {
		return "", err
	}
	if err := requeue().carryOut(job); err != nil {
		return "", err
	}
	r.line++
	job.Line, job.QueuedAt = r.line, MillisOf(at)
	job.QueuedMessages = append(job.QueuedMessages, body)
	if slices.Contains(r.startable(), job) {
		return Continued, nil
	}
	return InLine, nil
}

func (j *Job) set(settings Settings) {
	for _, row := range []struct {
		target *string
		new    string
	}{{&j.Title, settings.Title}, {&j.Model, settings.Model}, {&j.Effort, settings.Effort}} {
		if row.new != "" {
			*row.target = row.new
		}
	}
	if settings.Access != "" {
		j.Access = settings.Access
	}
}

// maxSaid limits the message ids that a job keeps.
const maxSaid = 100

// NoteSaid records the ids of sent messages.
func (j *Job) NoteSaid(ids ...string) {
	remaining := slices.DeleteFunc(slices.Clone(j.Said), func(id string) bool { return slices.Contains(ids, id) })
	remaining = append(remaining, ids...)
	j.Said = remaining[max(0, len(remaining)-maxSaid):]
}

// NextAuthors returns the authors of [Job.NextPrompt], each once, or none if one is unknown.
func (j *Job) NextAuthors() (authors []string) {
	if len(j.QueuedAuthors) != len(j.QueuedMessages) || slices.Contains(j.QueuedAuthors, "") {
		return nil
	}
	if j.repeatsPrompt() {
		authors = append(authors, j.Owner)
		if len(j.History) > 0 {
			authors[0] = j.History[0].From
		}
	}
	for _, author := range j.QueuedAuthors {
		if !slices.Contains(authors, author) {
			authors = append(authors, author)
		}
	}
	return authors
}

// repeatsPrompt reports whether the next run begins with the first prompt.
func (j *Job) repeatsPrompt() bool {
	return j.FirstStartedAt == 0 || j.SessionID == "" || len(j.QueuedMessages) == 0
}

// NextPrompt returns the prompt of the job's next run: the queued messages, preceded by
// the first prompt if no session has it.
func (j *Job) NextPrompt() string {
	queued := j.QueuedMessages
	if j.repeatsPrompt() {
		queued = append([]string{j.Prompt}, queued...)
	}
	return strings.Join(queued, "\n\n")
}

// Cancel cancels a job and all jobs below it (JOB-22). Queued jobs end immediately.
// Active ones are marked, and their runners end them. Ended ones stay unchanged, but a
// usage limit's end no longer resumes them. It returns the jobs that had not ended, the
// job first. It fails with NotFound for an unknown job.
func (r *Registry) Cancel(name string, at time.Time) ([]Job, error) {
	job, err := r.find(name)
	if err != nil {
		return nil, err
	}
	var ending []Job
	for _, entry := range r.tree(job) {
		switch {
		case entry.State == Queued:
			if err := Drop(at).carryOut(entry); err != nil {
				return nil, err
			}
		case entry.State.IsActive():
			entry.CancelAsked = true
		default:
			entry.CancelAsked = entry.CancelAsked || entry.State == Limit // the end of the limit no longer resumes it
			continue
		}
		ending = append(ending, r.copy(entry))
	}
	return ending, nil
}

// tree returns a job and all jobs below it, parents first.
func (r *Registry) tree(top *Job) []*Job {
	tree := []*Job{top}
	for _, job := range slices.SortedFunc(maps.Values(r.jobs), byLine) {
		if job.Parent == top.Name && job != top {
			tree = append(tree, r.tree(job)...)
		}
	}
	return tree
}

// AnswersTo returns the supervisor of a job, who receives its results and questions.
// This is the requester. If that is an ended job, it is the next active one above, or
// else the session at the top. up selects as many levels above; it returns false if
// only the owner is there.
func (r *Registry) AnswersTo(job Job, up int) (Caller, bool) {
	for {
		for job.Parent != "" {
			parent := r.jobs[job.Parent]
			if parent == nil { // it is in the archive
				return Caller{Name: job.Root, ID: job.RootID}, up == 0
			}
			if !parent.State.IsEnded() {
				break
			}
			job = *parent
		}
		switch {
		case up == 0:
			return Caller{Name: job.Owner, ID: job.Supervisor, IsJob: job.Parent != ""}, true
		case job.Parent == "":
			return Caller{}, false
		}
		job, up = *r.jobs[job.Parent], up-1
	}
}

// MarkSent records that the result of that run is stored under its id. It reports
// whether this was the first time. It fails with NotFound for an unknown job.
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

// HandOff makes another live session of this PC the supervisor of jobs of from: all
// requested jobs or none (JOB-23). Jobs below move too. isFrom reports whether an
// identity is or was that of from. It returns the names. It fails with Denied if to is
// no session of this PC or a job is not from's, and with NotFound if there is no such
// job.
func (r *Registry) HandOff(handoff Handoff, from, caller Caller, isFrom func(id string) bool, at time.Time) ([]string, error) {
	if caller.IsJob || IsName(caller.Name) || strings.Contains(caller.Name, "/") {
		return nil, bridge.Errorf(bridge.Denied, "jobs can be handed to a session of this PC only")
	}
	if isFrom(caller.ID) {
		return nil, bridge.Errorf(bridge.Invalid, "they are %s's already", from.Name)
	}
	jobs, err := r.selected(handoff, from, func(job *Job) bool {
		above, has := r.AnswersTo(*job, 0)
		return has && !above.IsJob && isFrom(above.ID)
	})
	if err != nil {
		return nil, err
	}
	var moved []string
	for _, job := range jobs {
		job.History = append(job.History, Ownership{From: from.Name, To: caller.Name, At: MillisOf(at), Note: handoff.Note})
		job.Owner, job.Supervisor, job.Parent, job.Depth = caller.Name, caller.ID, "", 1
		r.reroot(job, caller)
		moved = append(moved, job.Name)
	}
	return moved, nil
}

// selected returns the jobs of a hand-off, or the error of the first that forbids it.
func (r *Registry) selected(handoff Handoff, from Caller, isOwn func(*Job) bool) ([]*Job, error) {
	names := handoff.Jobs
	if handoff.All {
		names = nil
		for _, job := range slices.SortedFunc(maps.Values(r.jobs), byLine) {
			if isOwn(job) {
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
		case !isOwn(job):
			return nil, bridge.Errorf(bridge.Denied, "%s works for %s: none was handed over", name, job.Owner)
		case job.Remote != nil:
			return nil, bridge.Errorf(bridge.Denied, "%s runs on another PC and cannot be handed over: none was", name)
		case slices.Contains(jobs, job):
			return nil, bridge.Errorf(bridge.Invalid, "jobs names %s twice", name)
		}
		jobs = append(jobs, job)
	}
	if len(jobs) == 0 {
		return nil, bridge.Errorf(bridge.NotFound, "%s has no jobs to be handed over", from.Name)
	}
	return jobs, nil
}

// reroot moves job and all jobs below it to a new root.
func (r *Registry) reroot(job *Job, root Caller) {
	job.Root, job.RootID = root.Name, root.ID
	for _, child := range r.jobs {
		if child.Parent == job.Name {
			child.Depth = job.Depth + 1
			r.reroot(child, root)
		}
	}
}
