package jobs

import (
	"context"

	"bridge/backend/broker"
	"bridge/backend/core/job"
	"bridge/backend/jobs/paired"
)

// Away returns the jobs that paired PCs run for this PC.
func (j *Jobs) Away() *paired.Jobs { return j.away }

// awayBook gives the jobs on paired PCs access to the registry and to supervisors.
type awayBook struct{ *core }

func newAway(c *core) *paired.Jobs {
	book := awayBook{c}
	return paired.New(paired.Options{Registry: book, Supervisors: book, Files: c.files, Life: c.tasks.Context(), Now: c.opts.Now, Log: c.opts.Log})
}

func (j awayBook) All() []job.Job                                { return j.all() }
func (j awayBook) Get(name string) (job.Job, error)              { return j.get(name) }
func (j awayBook) Change(do func(*job.Registry) error) error     { return j.change(do) }
func (j awayBook) MayControl(by broker.Asker, one job.Job) error { return j.mayControl(by, one) }
func (j awayBook) AnswersTo(one job.Job) job.Caller              { return j.answersTo(one) }

// Show applies a change to a job, and saves it now if atOnce is true, otherwise later. It fails
// with Storage if the job cannot be recorded. An unknown job is no error.
func (j awayBook) Show(name string, change func(*job.Job) (atOnce bool), anyway bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	present, has := j.book.Get(name)
	if !has {
		return nil
	}
	shown := present
	atOnce := change(&shown)
	update := func(one *job.Job) { *one = shown }
	switch {
	case atOnce:
		return j.changeLocked(func(r *job.Registry) error {
			_, err := r.Update(name, update)
			return err
		})
	case paired.Differs(shown, present):
		j.noteLocked(name, update)
	case anyway:
		j.publish()
	}
	return nil
}

// Deliver sends a message durably to the job's supervisor. It fails if the broker cannot store
// the message.
func (j awayBook) Deliver(ctx context.Context, one job.Job, id, conversation, body string) error {
	return j.results.deliver(ctx, one, id, conversation, body)
}

func (j awayBook) Question(one job.Job, approval job.Approval, to job.Caller) string {
	return openQuestion{of: one, approval: approval, to: to}.body()
}
