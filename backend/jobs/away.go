package jobs

import (
	"context"

	"bridge/backend/broker"
	"bridge/backend/core/job"
	"bridge/backend/jobs/paired"
)

// Paired returns the jobs that paired PCs run for this PC.
func (j *Jobs) Paired() *paired.Jobs { return j.paired }

// pairedRegistry gives the jobs on paired PCs access to the registry and to supervisors.
type pairedRegistry struct{ *core }

func newPaired(c *core) *paired.Jobs {
	book := pairedRegistry{c}
	return paired.New(paired.Options{Registry: book, Supervisors: book, Files: c.files, Context: c.tasks.Context(), Now: c.opts.Now, Log: c.opts.Log})
}

func (j pairedRegistry) All() []job.Job                            { return j.all() }
func (j pairedRegistry) Get(name string) (job.Job, error)          { return j.get(name) }
func (j pairedRegistry) Change(do func(*job.Registry) error) error { return j.change(do) }
func (j pairedRegistry) MayControl(asker broker.Asker, entry job.Job) error {
	return j.mayControl(asker, entry)
}
func (j pairedRegistry) AnswersTo(entry job.Job) job.Caller { return j.answersTo(entry) }

// Show applies a change to a job, and saves it now if atOnce is true, otherwise later. It fails
// with Storage if the job cannot be recorded. An unknown job is no error.
func (j pairedRegistry) Show(name string, change func(*job.Job) (atOnce bool), anyway bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	present, has := j.book.Get(name)
	if !has {
		return nil
	}
	view := present
	atOnce := change(&view)
	update := func(entry *job.Job) { *entry = view }
	switch {
	case atOnce:
		return j.changeLocked(func(r *job.Registry) error {
			_, err := r.Update(name, update)
			return err
		})
	case paired.Differs(view, present):
		j.noteLocked(name, update)
	case anyway:
		j.publish()
	}
	return nil
}

// Deliver sends a message durably to the job's supervisor. It fails if the broker cannot store
// the message.
func (j pairedRegistry) Deliver(ctx context.Context, entry job.Job, id, conversation, body string) error {
	return j.results.deliver(ctx, entry, id, conversation, body)
}

func (j pairedRegistry) Question(entry job.Job, approval job.Approval, caller job.Caller) string {
	return openQuestion{job: entry, approval: approval, recipient: caller}.body()
}
