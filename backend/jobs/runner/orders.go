package runner

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/ipc/api"
)

// order performs an order once. If the order repeats, it reports the same outcome
// again.
func (d *drive) order(order api.Order) {
	if known, has := d.orders[order.ID]; has {
		if known.ID != "" { // otherwise it is in progress
			d.reporter.outcome(known)
		}
		return
	}
	d.orders[order.ID] = api.OrderOutcome{}
	if d.closing && order.Kind != api.OrderCancel {
		d.outcome(order.ID, errEnded)
		return
	}
	switch order.Kind {
	case api.OrderMessage:
		d.message(order)
	case api.OrderAnswer:
		d.answer(order)
	case api.OrderPassUp:
		passUp(d, order)
	case api.OrderGoOn:
		d.goOn(order)
	case api.OrderCancel:
		d.cancel(order)
	case api.OrderSettings:
		d.settings(order)
	default:
		d.outcome(order.ID, bridge.Errorf(bridge.Unsupported, "this runner knows no order %q", order.Kind))
	}
}

// outcome reports the outcome of an order.
func (d *drive) outcome(id string, refused *bridge.Error) {
	d.orders[id] = api.OrderOutcome{ID: id, Error: refused}
	d.reporter.outcome(d.orders[id])
}

// message sends a message to the agent. While the run is stopped, messages wait for the
// order to continue, which a message is not.
func (d *drive) message(order api.Order) {
	if err := d.note(Entry{Kind: EntryMessage, ID: order.ID, Text: order.Text}); err != nil {
		d.outcome(order.ID, refusal(err))
		return
	}
	if d.stop != "" && d.stop != job.ForSilence {
		d.held = append(d.held, order)
		return
	}
	d.line("> " + order.Text)
	d.send(job.Message{ID: order.ID, Text: order.Text}, func(err error) { d.outcome(order.ID, refusal(err)) })
}

// goOn lets a stopped run continue as soon as its turn has ended.
func (d *drive) goOn(order api.Order) {
	if d.stop == "" || d.resumed != nil {
		d.outcome(order.ID, bridge.Errorf(bridge.Conflict, "the job does not wait for this word: it did nothing"))
		return
	}
	if err := d.note(Entry{Kind: EntryGoOn, ID: order.ID, By: order.By}); err != nil {
		d.outcome(order.ID, refusal(err))
		return
	}
	d.resumed = &order
	if d.stop == job.ForSilence {
		d.proceed() // silence stopped nothing
	}
}

// proceed continues after a stop: with the messages that arrived meanwhile, or else with ours.
func (d *drive) proceed() {
	stop, order, messages := d.stop, d.resumed, d.held
	d.stop, d.stopID, d.resumed, d.held = "", "", nil, nil
	d.watch.Allow(stop, d.Now())
	d.noteSent(order.ID, nil)
	d.outcome(order.ID, nil)
	if stop == job.ForSilence {
		return
	}
	if len(messages) == 0 {
		d.send(job.Message{ID: uuid.NewString(), Text: job.GoOn}, func(error) {})
		return
	}
	for _, message := range messages {
		d.line("> " + message.Text)
		d.send(job.Message{ID: message.ID, Text: message.Text}, func(err error) { d.outcome(message.ID, refusal(err)) })
	}
}

// cancel ends the run (JOB-06), even if the cancel cannot be recorded.
func (d *drive) cancel(order api.Order) {
	if err := d.note(Entry{Kind: EntryCancel, ID: order.ID, By: order.By, Text: order.Reason}); err != nil {
		d.Log.Warn("a cancellation could not be written down", "job", d.spec.Job, "err", err)
	}
	d.cancelled = true
	d.line("! cancelled")
	d.outcome(order.ID, nil)
	d.close()
}

// settings applies the title, which may change during a run; the rest is for the next run.
func (d *drive) settings(order api.Order) {
	if err := d.note(Entry{Kind: EntrySettings, ID: order.ID, Settings: &order.Settings}); err != nil {
		d.outcome(order.ID, refusal(err))
		return
	}
	if order.Settings.Title != "" {
		d.state.Title = order.Settings.Title
		d.keep(true)
	}
	d.outcome(order.ID, nil)
}

// answer decides a question; the first answer wins (JOB-07).
func (d *drive) answer(order api.Order) {
	for question, approval := range d.questions {
		if approval.ID != order.Approval {
			continue
		}
		before := *approval
		if err := approval.Answer(order.By, order.Decision, order.Reason, d.Now()); err != nil {
			if approval.State != before.State { // it has just expired
				d.decided(question, approval, nil)
			}
			d.outcome(order.ID, refusal(err))
			return
		}
		if strings.HasPrefix(order.By, job.ByRule) {
			d.line("> " + order.Reason)
		}
		d.decided(question, approval, func(err error) {
			if bridge.CodeOf(err) == bridge.Storage {
				*approval = before // it was not delivered: another answer is possible
			}
			d.outcome(order.ID, refusal(err))
		})
		return
	}
	d.outcome(order.ID, bridge.Errorf(bridge.NotFound, "the question is gone: this answer did nothing"))
}

// passUp records that a question goes to the next recipient above.
func passUp(d *drive, order api.Order) {
	for _, approval := range d.questions {
		if approval.ID != order.Approval {
			continue
		}
		if err := approval.PassUp(order.By, d.Now()); err != nil {
			d.outcome(order.ID, refusal(err))
			return
		}
		d.storeApproval(approval)
		d.outcome(order.ID, nil)
		return
	}
	d.outcome(order.ID, bridge.Errorf(bridge.NotFound, "the question is gone: this did nothing"))
}

// decided makes the answer to a question durable, and then delivers it to the CLI. then
// may be nil.
func (d *drive) decided(question string, approval *job.Approval, then func(error)) {
	if then == nil {
		then = func(error) {}
	}
	entry := Entry{Kind: EntryAnswer, ID: approval.ID, By: approval.AnsweredBy, Decision: approval.Decision, Text: approval.Reason}
	if err := d.note(entry); err != nil {
		then(err)
		return
	}
	if approval.State == job.ApprovalAnswered {
		_ = approval.Deliver() // it is answered
	}
	d.storeApproval(approval)
	d.at(StepAnswered)
	answer := job.Answer{Question: question, Allow: approval.Decision == job.Allow, Reason: approval.Reason}
	if n := d.saw.choices[question]; n > 0 && answer.Allow {
		answer.Choices = make([][]string, n)
		for i := range answer.Choices {
			answer.Choices[i] = []string{approval.Reason}
		}
	}
	d.later(func() error { return d.run.Answer(context.Background(), answer) }, func(err error) {
		d.at(StepHanded)
		d.noteSent(approval.ID, err)
		if bridge.CodeOf(err) == bridge.NotFound {
			d.withdrawn(question)
		}
		then(err)
	})
}

// question handles an event of the CLI's questions.
func (d *drive) question(event job.Event) {
	switch e := event.(type) {
	case job.Asked:
		d.asked(e.Question)
	case job.Resolved:
		if approval, has := d.questions[e.Question]; has {
			delete(d.questions, e.Question)
			if approval.Apply() == nil { // an expired approval stays expired
				d.storeApproval(approval)
			}
		}
	case job.Withdrawn:
		d.withdrawn(e.Question)
	}
}

func (d *drive) asked(question job.Question) {
	approval := job.NewApproval(job.Approval{
		ID: uuid.NewString(), Job: d.spec.Job, Run: d.spec.Run, Session: d.state.Session, Agent: string(d.spec.Kind), By: d.spec.Supervisor,
		Kind: string(question.Kind), What: question.Tool, Detail: detailOf(question), Cwd: question.Folder, Why: question.Reason,
		LeavesSandbox: question.LeavesSandbox,
	}, d.Now())
	if question.IsCut {
		approval.RefuseLong(d.Now())
	}
	d.questions[question.ID] = &approval
	d.saw.choices[question.ID] = len(question.Choices)
	d.line("? " + question.Tool + " " + approval.Detail)
	entry := Entry{Kind: EntryQuestion, ID: approval.ID, Approval: &approval}
	if err := d.note(entry); err != nil {
		d.Log.Warn("a question could not be written down", "job", d.spec.Job, "err", err)
	}
	d.storeApproval(&approval)
	d.at(StepAsked)
	if approval.State == job.ApprovalAnswered {
		d.decided(question.ID, &approval, nil) // a partial question may not be asked
	}
}

// withdrawn removes a question whose answer was not used.
func (d *drive) withdrawn(question string) {
	approval, has := d.questions[question]
	if !has {
		return
	}
	delete(d.questions, question)
	if approval.Withdraw() == nil { // an expired approval stays expired
		d.storeApproval(approval)
	}
}

// storeApproval makes a question's state durable and reports it.
func (d *drive) storeApproval(approval *job.Approval) {
	if err := d.saveApproval(*approval); err != nil {
		d.Log.Warn("an approval could not be written", "job", d.spec.Job, "err", err)
	}
	d.reporter.approval(*approval)
}
