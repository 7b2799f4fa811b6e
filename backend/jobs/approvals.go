package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bridge/backend/bridge"
	"bridge/backend/broker"
	"bridge/backend/disk"
	"bridge/backend/ipc/api"
	"bridge/backend/job"
)

const maxApprovalBytes = 1 << 20

// approvals is the part about what jobs ask before they go on.
type approvals struct{ *core }

func (j *approvals) approvalPath(id string) string {
	return filepath.Join(j.opts.Home.Dir(), "approvals", id+".json")
}

// askLocked takes in what a runner says of its questions, and returns those that are
// new and open: somebody has to be asked.
func (j *approvals) askLocked(r *run, said []job.Approval) (asked []job.Approval) {
	for _, approval := range said {
		if approval.Job != r.job || bridge.CheckID("the approval", approval.ID) != nil {
			continue
		}
		known, has := r.approvals[approval.ID]
		if approval.State == job.ApprovalAsked {
			if has && known.State == job.ApprovalAnswered {
				continue // the answer is on its way
			}
			j.answerAgainLocked(r, &approval)
		}
		r.approvals[approval.ID] = approval
		if !has && approval.State == job.ApprovalAsked {
			asked = append(asked, approval)
		}
	}
	if len(said) > 0 {
		j.opts.Broker.Changed()
	}
	return asked
}

// answerAgainLocked gives the approval the answer that its runner has not heard yet.
func (j *approvals) answerAgainLocked(r *run, approval *job.Approval) {
	for _, order := range r.orders {
		if order.Kind == api.OrderAnswer && order.Approval == approval.ID {
			_ = approval.Answer(order.By, order.Decision, order.Reason, j.opts.Now()) // it may have expired: it says so then
		}
	}
}

// put tells the supervisor of a question. Only an answer that names it counts:
// plain words never do (JOB-07).
func (j *approvals) put(ctx context.Context, r *run, approval job.Approval) error {
	one, err := j.get(r.job)
	if err != nil {
		return err
	}
	body := fmt.Sprintf("%s asks before it goes on (%s):\n\n%s", one.Name, approval.What, approval.Detail)
	if approval.Why != "" {
		body += "\n\nIt says: " + approval.Why
	}
	body += fmt.Sprintf("\n\nAnswer by message_subagent with job %q, approval_id %q and decision allow or deny, or leave it to your user, who can answer in the dashboard. Allow only what your user wants; without an answer in ten minutes it is denied.", one.Name, approval.ID)
	return j.results.deliver(ctx, one, "approval-"+approval.ID, "approval-"+approval.ID, body)
}

// Approvals lists the questions of the jobs that go on, the oldest first.
func (j *approvals) Approvals() []job.Approval {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := []job.Approval{}
	for _, r := range j.runs {
		for _, approval := range r.approvals {
			approval.Expire(j.opts.Now())
			list = append(list, approval)
		}
	}
	slices.SortFunc(list, func(a, b job.Approval) int { return int(a.AskedAt - b.AskedAt) })
	return list
}

// Answer decides a question for the owner. The record is as it is then, also beside
// an error.
func (j *approvals) Answer(id string, decision job.Decision, reason string) (job.Approval, error) {
	return j.answer(id, broker.Asker{Owner: true, Address: bridge.OwnerAddress()}, decision, reason)
}

// answer decides a question; the first answer wins. It is done when the runner says
// so: until then it is answered, and no more.
func (j *approvals) answer(id string, by broker.Asker, decision job.Decision, reason string) (job.Approval, error) {
	if err := bridge.CheckID("approval_id", id); err != nil {
		return job.Approval{}, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	r, approval, err := j.approvalLocked(id)
	if err != nil {
		return approval, err
	}
	one, has := j.book.Get(approval.Job)
	if !has || mayControl(by, one) != nil {
		return job.Approval{}, bridge.Errorf(bridge.Denied, "only the owner or %s can answer this", approval.By)
	}
	if !one.State.IsActive() || one.Run != r.number {
		_ = approval.Withdraw() // what expired stays so
		return approval, bridge.Errorf(bridge.Conflict, "the question is gone: this answer did nothing")
	}
	if err := approval.Answer(by.Address.Name, decision, reason, j.opts.Now()); err != nil {
		return approval, err
	}
	order := api.Order{ID: "answer-" + id, Kind: api.OrderAnswer, Approval: id, Decision: decision, By: by.Address.Name, Reason: reason}
	if err := j.orderLocked(r, order); err != nil {
		return approval, err
	}
	r.approvals[id] = approval
	j.opts.Broker.Changed()
	return approval, nil
}

// approvalLocked finds a question. One of a run that is over is a Conflict, with its
// record.
func (j *approvals) approvalLocked(id string) (*run, job.Approval, error) {
	for _, r := range j.runs {
		if approval, has := r.approvals[id]; has {
			return r, approval, nil
		}
	}
	approval, err := j.readApproval(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, approval, bridge.Errorf(bridge.NotFound, "there is no approval %q", id)
	}
	if err == nil {
		err = bridge.Errorf(bridge.Conflict, "the question is gone: this answer did nothing")
	}
	return nil, approval, err
}

func (j *approvals) readApproval(id string) (approval job.Approval, err error) {
	data, err := disk.ReadLimited(j.approvalPath(id), maxApprovalBytes)
	if err == nil {
		err = json.Unmarshal(data, &approval)
	}
	return approval, err
}

// load takes up the questions of runs that were active when the last broker ended:
// their runners may be gone.
func (j *approvals) load() error {
	entries, err := os.ReadDir(filepath.Dir(j.approvalPath("x")))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		id, isRecord := strings.CutSuffix(entry.Name(), ".json")
		if !isRecord {
			continue
		}
		approval, err := j.readApproval(id)
		if err != nil {
			j.opts.Log.Warn("an approval cannot be read: it is left as it is", "file", entry.Name(), "err", err)
			continue
		}
		if r := j.runs[approval.Job]; r != nil && approval.Run == r.number && approval.ID == id {
			j.answerAgainLocked(r, &approval)
			r.approvals[id] = approval
		}
	}
	return nil
}

// withdrawAll closes the questions of a run whose runner is gone: no answer reaches
// anybody any more. While a runner lives, its records are its own.
func (j *approvals) withdrawAll(r *run) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for id := range r.approvals {
		approval, err := j.readApproval(id)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		before := approval.State
		if r.conn != nil || approval.Withdraw() != nil || approval.State == before {
			continue
		}
		data, err := json.Marshal(approval)
		if err != nil {
			return err
		}
		if err := disk.WriteAtomic(j.approvalPath(id), data, disk.PrivateFile); err != nil {
			return err
		}
	}
	return nil
}
