package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"bridge/backend/broker"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/jobs/paired"
	"bridge/backend/platform/ipc/api"
)

// approvals is the part that handles the approvals that jobs request.
type approvals struct{ *core }

// askLocked records the approvals that a runner reports.
func (j *approvals) askLocked(r *run, requested []job.Approval) {
	for _, approval := range requested {
		if approval.Job != r.job || bridge.CheckID("the approval", approval.ID) != nil {
			continue
		}
		entry, _ := j.book.Get(r.job)
		if caller, has := j.book.AnswersTo(entry, len(approval.PassedUp)); has {
			approval.By = caller.Name // the runner knows only the supervisor at the start of the run
		}
		if approval.State == job.ApprovalAsked {
			if known := r.approvals[approval.ID]; known.State == job.ApprovalAnswered {
				continue // the answer is being delivered
			}
			j.answerAgainLocked(r, &approval)
		}
		r.approvals[approval.ID] = approval
		j.standingRules.answerLocked(r, approval.ID)
	}
	if len(requested) > 0 {
		j.publish()
	}
}

// answerAgainLocked applies the pending orders to an approval that its runner reports.
func (j *approvals) answerAgainLocked(r *run, approval *job.Approval) {
	for _, order := range r.orders {
		if order.Approval != approval.ID {
			continue
		}
		switch order.Kind {
		case api.OrderAnswer:
			_ = approval.Answer(order.By, order.Decision, order.Reason, j.opts.Now()) // if the approval has expired, it stays expired
		case api.OrderPassUp:
			_ = approval.PassUp(order.By, j.opts.Now())
		default: // the order is not about an approval
		}
	}
}

// put delivers each open approval once to its recipient: the job's supervisor, or the
// next one above after a pass-up. Only the owner may answer a step that may leave the
// sandbox, on the dashboard (SEC-03). Only an answer with the approval's id counts; a
// plain message never does (JOB-07).
func (j *approvals) put(ctx context.Context) error {
	var failed []error
	for _, open := range j.open() {
		id, conversation := messageIDs(open.approval.ID, open.recipient.ID)
		from := bridge.Address{ID: open.job.Name, Name: open.job.Name, Agent: open.job.Agent}
		err := j.opts.Broker.Deliver(ctx, from, open.recipient.ID, api.SendArgs{
			To: open.recipient.Name, MessageID: id, ConversationID: conversation, Body: open.body(),
		})
		if err != nil {
			failed = append(failed, fmt.Errorf("%s of %s: %w", open.approval.ID, open.job.Name, err))
			continue
		}
		j.mu.Lock()
		open.run.notified[open.approval.ID+open.recipient.ID] = true
		j.mu.Unlock()
	}
	return errors.Join(append(failed, j.paired.Put(ctx))...)
}

// messageIDs returns the ids of the message that asks the recipient, and of its conversation:
// the same ones in each call. Long ids of approvals are replaced by their digests.
func messageIDs(approval, recipient string) (message, conversation string) {
	message, conversation = "approval-"+approval+"-"+recipient, "approval-"+approval
	if len(message) > bridge.MaxIDChars {
		message = fmt.Sprintf("approval-%x", paired.Digest(approval+" "+recipient))
	}
	if len(conversation) > bridge.MaxIDChars {
		conversation = fmt.Sprintf("approval-%x", paired.Digest(approval))
	}
	return message, conversation
}

// openQuestion is an approval that its recipient has not received yet.
type openQuestion struct {
	run       *run
	job       job.Job
	approval  job.Approval
	recipient job.Caller
}

func (j *approvals) open() (list []openQuestion) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range j.runs {
		for _, approval := range r.approvals {
			entry, has := j.book.Get(r.job)
			caller, some := j.book.AnswersTo(entry, len(approval.PassedUp))
			here := entry.PC == "" // a paired PC polls and asks its own session
			if has && some && here && !approval.LeavesSandbox && approval.IsOpen(j.opts.Now()) && !r.notified[approval.ID+caller.ID] {
				list = append(list, openQuestion{r, entry, approval, caller})
			}
		}
	}
	return list
}

func (q openQuestion) body() string {
	body := fmt.Sprintf("%s asks before it goes on (%s):\n\n%s", q.job.Name, bridge.VisibleExact(bridge.OneLine(q.approval.What)), bridge.VisibleExact(q.approval.Detail))
	if q.approval.Why != "" {
		body += "\n\nIt says: " + bridge.VisibleExact(q.approval.Why)
	}
	body += fmt.Sprintf("\n\nAnswer by message_subagent with job %q, approval_id %q and decision ", q.job.Name, q.approval.ID)
	if q.recipient.IsJob {
		return body + "deny, with the reason, or pass_up: then whoever you work for is asked. Without an answer in ten minutes it is denied."
	}
	return body + "allow or deny, or leave it to your user, who can answer in the dashboard. Allow only what your user wants; without an answer in ten minutes it is denied."
}

// Approvals lists the approvals of the active jobs, the oldest first.
func (j *approvals) Approvals() []job.Approval {
	list, at := slices.Clone(j.published.Load().approvals), j.opts.Now()
	for i := range list {
		list[i].Expire(at)
	}
	return list
}

// Answer decides an approval for the owner. It returns the current record, even with an
// error.
func (j *approvals) Answer(id string, decision job.Decision, reason string) (job.Approval, error) {
	if _, is := j.paired.Approval(id); is {
		return j.paired.Answer(j.tasks.Context(), id, bridge.OwnerName, decision, reason)
	}
	return j.answer(id, broker.Asker{Owner: true, Address: bridge.OwnerAddress()}, decision, reason)
}

// answer decides an approval; the first answer wins. The approval stays in the state
// answered until the runner confirms the answer.
func (j *approvals) answer(id string, asker broker.Asker, decision job.Decision, reason string) (job.Approval, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r, approval, _, err := j.askedOfLocked(id, asker)
	if err == nil {
		err = job.CheckDecision(asker.Job != "", decision)
	}
	if err == nil {
		err = approval.CheckAnswer(asker.Owner && asker.Address == bridge.OwnerAddress(), decision)
	}
	if err == nil {
		err = approval.Answer(asker.Address.Name, decision, reason, j.opts.Now())
	}
	if err != nil {
		return approval, err
	}
	order := api.Order{ID: "answer-" + id, Kind: api.OrderAnswer, Approval: id, Decision: decision, By: asker.Address.Name, Reason: reason}
	if err := j.orderLocked(r, order); err != nil {
		return approval, err
	}
	r.approvals[id] = approval
	j.publish()
	return approval, nil
}

// passUp forwards an approval to the next supervisor above the current recipient. Above
// a session there is only the owner (JOB-22).
func (j *approvals) passUp(id string, asker broker.Asker, reason string) error {
	if err := j.passUpLocked(id, asker, reason); err != nil {
		return err
	}
	return j.put(j.tasks.Context())
}

func (j *approvals) passUpLocked(id string, asker broker.Asker, reason string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	r, approval, entry, err := j.askedOfLocked(id, asker)
	if err != nil {
		return err
	}
	caller, has := j.book.AnswersTo(entry, len(approval.PassedUp)+1)
	if !has {
		caller.Name = bridge.OwnerName
	}
	if err := approval.PassUp(caller.Name, j.opts.Now()); err != nil {
		return err
	}
	order := api.Order{ID: fmt.Sprintf("pass-up-%d-%s", len(approval.PassedUp), id), Kind: api.OrderPassUp, Approval: id, By: caller.Name, Reason: reason}
	if err := j.orderLocked(r, order); err != nil {
		return err
	}
	r.approvals[id] = approval
	j.publish()
	return nil
}

// askedOfLocked finds an approval that the caller may decide: as the owner, or as its
// recipient. If the approval is gone, it returns Conflict with the record.
func (j *approvals) askedOfLocked(id string, asker broker.Asker) (*run, job.Approval, job.Job, error) {
	if err := bridge.CheckID("approval_id", id); err != nil {
		return nil, job.Approval{}, job.Job{}, err
	}
	r, approval, err := j.approvalLocked(id)
	if err != nil {
		return nil, approval, job.Job{}, err
	}
	entry, _ := j.book.Get(approval.Job)
	caller, has := j.book.AnswersTo(entry, len(approval.PassedUp))
	if !asker.Owner && (!has || mayAct(asker, entry, caller) != nil) {
		return nil, job.Approval{}, entry, bridge.Errorf(bridge.Denied, "only the owner or %s can answer this", cmp.Or(caller.Name, "whoever is above"))
	}
	if !entry.State.IsActive() || entry.Run != r.number {
		_ = approval.Withdraw() // an expired approval stays expired
		return nil, approval, entry, bridge.Errorf(bridge.Conflict, "the question is gone: this answer did nothing")
	}
	return r, approval, entry, nil
}

// approval is approvalLocked that also covers the jobs on paired PCs.
func (j *approvals) approval(id string) (job.Approval, error) {
	if approval, is := j.paired.Approval(id); is {
		return approval, nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_, approval, err := j.approvalLocked(id)
	return approval, err
}

// approvalLocked finds an approval. If its run has ended, it returns Conflict with the
// record.
func (j *approvals) approvalLocked(id string) (*run, job.Approval, error) {
	for _, r := range j.runs {
		if approval, has := r.approvals[id]; has {
			return r, approval, nil
		}
	}
	approval, err := j.files.ReadApproval(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, approval, bridge.Errorf(bridge.NotFound, "there is no approval %q", id)
	}
	if err == nil {
		err = bridge.Errorf(bridge.Conflict, "the question is gone: this answer did nothing")
	}
	return nil, approval, err
}

// load restores the approvals of runs that were active when the last broker ended.
// Their runners may be gone.
func (j *approvals) load() error {
	ids, err := j.files.Approvals()
	if err != nil {
		return err
	}
	for _, id := range ids {
		approval, err := j.files.ReadApproval(id)
		if err != nil {
			j.opts.Log.Warn("an approval cannot be read: it is left as it is", "file", id+".json", "err", err)
			continue
		}
		if r := j.runs[approval.Job]; r != nil && approval.Run == r.number && approval.ID == id {
			j.answerAgainLocked(r, &approval)
			r.approvals[id] = approval
		}
	}
	return nil
}

// withdrawAll withdraws the approvals of a run whose runner is gone, because no answer
// can reach it. While a runner lives, only the runner writes these records.
func (j *approvals) withdrawAll(r *run) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for id := range r.approvals {
		approval, err := j.files.ReadApproval(id)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			j.opts.Log.Warn("an approval cannot be read: it is left as it is", "job", r.job, "approval", id, "err", err)
			continue
		}
		before := approval.State
		if r.conn != nil || approval.Withdraw() != nil || approval.State == before {
			continue
		}
		if err := j.files.WriteApproval(id, approval); err != nil {
			return err
		}
	}
	return nil
}
