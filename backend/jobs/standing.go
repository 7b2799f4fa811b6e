package jobs

import (
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/rule"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/rules"
)

// Rules is the part of the owner's standing rules that jobs need; *rules.Rules implements
// it. All methods are safe for concurrent use. Only TakeBack calls back into the jobs.
type Rules interface {
	// Allow returns the rule that allows the request, and counts its use durably.
	Allow(request rule.Request, user string) (rule.Rule, bool)
	// Make creates a durable rule from the owner's choice.
	Make(request rule.Request, wish rule.Wish) (rule.Rule, error)
	// Revoke revokes a rule.
	Revoke(id string) (rule.Rule, rules.Undone, error)
	// Holds reports whether an answer by that rule is still valid.
	Holds(id string) bool
}

// standingRules is the part that applies the owner's standingRules rules (NED-04). They answer
// approvals of this PC's jobs before anyone is asked.
type standingRules struct{ *core }

// requestOf returns the request of a job's approval, in the folder that rules apply to.
func requestOf(entry job.Job, approval job.Approval) rule.Request {
	if entry.Worktree != nil && entry.Worktree.RepoRoot != "" {
		return rule.RequestOf(approval, entry.Worktree.RepoRoot, entry.Workdir)
	}
	return rule.RequestOf(approval, entry.Workdir, entry.Workdir)
}

// answerLocked answers an open approval if a rule allows its request.
func (j *standingRules) answerLocked(r *run, id string) {
	approval := r.approvals[id]
	if j.opts.Rules == nil || !approval.IsOpen(j.opts.Now()) || r.unread != nil {
		return
	}
	entry, has := j.book.Get(r.job)
	if !has || entry.Run != r.number || !entry.State.IsActive() || entry.CancelAsked {
		return
	}
	used, allowed := j.opts.Rules.Allow(requestOf(entry, approval), r.job)
	if !allowed {
		return
	}
	answerer, reason := job.ByRule+used.ID, "Allowed by your rule: "+clip(used.Sentence())+"."
	if approval.Answer(answerer, job.Allow, reason, j.opts.Now()) != nil {
		return
	}
	order := api.Order{ID: "rule-answer-" + used.ID + "-" + id, Kind: api.OrderAnswer, Approval: id, Decision: job.Allow, By: answerer, Reason: reason}
	if err := j.orderLocked(r, order); err != nil {
		j.opts.Log.Error("jobs: a rule's answer could not be recorded, so the owner is asked", "job", r.job, "rule", used.ID, "err", err)
		return
	}
	r.approvals[id] = approval
}

// maxSaid limits the length of a rule's text in an approval's reason; the rule has it in full.
const maxSaid = 300

func clip(text string) string {
	if runes := []rune(text); len(runes) > maxSaid {
		return string(runes[:maxSaid]) + "…"
	}
	return text
}

// AnswerFromNowOn allows the request and creates the owner's rule for it. It fails with
// Unavailable without rules, with NotFound for an unknown approval, and with Conflict for one
// that was answered or has ended. It fails with Invalid if no such rule can be made. If the
// answer comes too late, it revokes the rule.
func (j *standingRules) AnswerFromNowOn(id string, wish rule.Wish) (job.Approval, error) {
	if j.opts.Rules == nil {
		return job.Approval{}, bridge.Errorf(bridge.Unavailable, "no standing rules are kept here")
	}
	if approval, is := j.paired.Approval(id); is {
		return approval, bridge.Errorf(bridge.Invalid, "a rule is made on the PC that runs the job: allow it once, or make the rule there")
	}
	approval, request, err := j.asked(id)
	if err != nil {
		return approval, err
	}
	made, err := j.opts.Rules.Make(request, wish)
	if err != nil {
		return job.Approval{}, err
	}
	if approval, err = j.approvals.Answer(id, job.Allow, ""); err != nil {
		if _, _, undone := j.opts.Rules.Revoke(made.ID); undone != nil {
			j.opts.Log.Error("a rule could not be taken back whose answer came too late", "rule", made.ID, "err", undone)
		}
		return approval, err
	}
	j.answerOpen()
	return approval, nil
}

// asked returns an open approval and its request.
func (j *standingRules) asked(id string) (job.Approval, rule.Request, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, approval, err := j.approvals.approvalLocked(id)
	if err == nil && !approval.IsOpen(j.opts.Now()) {
		err = approval.Answer(bridge.OwnerName, job.Allow, "", j.opts.Now()) // the error has the reason
	}
	entry, _ := j.book.Get(approval.Job)
	return approval, requestOf(entry, approval), err
}

// FromNowOn returns the rule that the owner may create from an approval, and its folder.
func (j *standingRules) FromNowOn(approval job.Approval) (offer rule.Offer, folder string) {
	if j.opts.Rules == nil {
		return rule.Offer{Why: "no standing rules are kept here"}, ""
	}
	entry, err := j.get(approval.Job)
	if err != nil || entry.Mirror != nil {
		return rule.Offer{Why: "a rule is made on the PC that runs the job"}, ""
	}
	request := requestOf(entry, approval)
	return rule.OfferFor(request), request.Folder
}

// answerOpen answers the open approvals that a rule now allows.
func (j *standingRules) answerOpen() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range j.runs {
		for id := range r.approvals {
			j.answerLocked(r, id)
		}
	}
	j.publish()
}

// withdrawRevoked withdraws answers by rules that were revoked while this broker did not run or
// was ending. It also answers the approvals of that time. It is called once, before any
// runner connects.
func (j *standingRules) withdrawRevoked() {
	if j.opts.Rules == nil {
		return
	}
	for _, r := range j.runs {
		for _, order := range slices.Clone(r.orders) {
			if id, is := strings.CutPrefix(order.By, job.ByRule); is && order.Kind == api.OrderAnswer && !j.opts.Rules.Holds(id) {
				j.withdrawLocked(r, order)
			}
		}
	}
	j.answerOpen()
}

// TookBack withdraws a revoked rule's answers that no runner received (NED-04) and asks
// them again. It is the Undo of the rules.
func (j *standingRules) TookBack(id string) (undone rules.Undone) {
	j.mu.Lock()
	for _, r := range j.runs {
		for _, approval := range r.approvals {
			if approval.AnsweredBy != job.ByRule+id || approval.IsSettled() {
				continue
			}
			at := slices.IndexFunc(r.orders, func(o api.Order) bool { return o.Approval == approval.ID && o.By == approval.AnsweredBy })
			if approval.State == job.ApprovalAnswered && at >= 0 && !r.sent[r.orders[at].ID] && j.withdrawLocked(r, r.orders[at]) {
				undone.Asked = append(undone.Asked, approval.ID)
			} else {
				undone.Handed = append(undone.Handed, approval.ID)
			}
		}
	}
	j.publish()
	j.mu.Unlock()
	slices.Sort(undone.Asked)
	slices.Sort(undone.Handed)
	j.logged("ask again what a rule had answered", j.approvals.put(j.tasks.Context()))
	return undone
}

// withdrawLocked durably withdraws an answer that waits for its runner, and reports
// whether it succeeded.
func (j *standingRules) withdrawLocked(r *run, order api.Order) bool {
	orders := r.orders
	r.orders = slices.DeleteFunc(slices.Clone(r.orders), func(o api.Order) bool { return o.ID == order.ID })
	if err := j.saveLocked(r); err != nil {
		r.orders = orders
		j.opts.Log.Error("jobs: a rule's answer could not be taken back", "job", r.job, "approval", order.Approval, "err", err)
		return false
	}
	if approval, has := r.approvals[order.Approval]; has && approval.AskAgain() == nil {
		r.approvals[order.Approval] = approval
	}
	return true
}
