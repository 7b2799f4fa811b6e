package runs

import (
	"cmp"
	"errors"
	"net/http"
	"slices"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/rule"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/httpjson"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/rules"
)

// Prompts are the permission prompts of interactive sessions; *prompts.Prompts
// implements it. All methods are safe for concurrent use.
type Prompts interface {
	// Approvals returns the open ones and the last ended ones, oldest first.
	Approvals() []job.Approval
	// Has reports whether a prompt has that id.
	Has(id string) bool
	// Answer decides a prompt for the owner. It returns the new record, also with a
	// Conflict.
	Answer(id string, decision job.Decision, reason string) (job.Approval, error)
	// Choose answers the questions of a model, like Answer.
	Choose(id string, answers [][]string) (job.Approval, error)
	// Prompting returns the state of the handling of prompts.
	Prompting() api.Prompting
	// SetAway switches away mode.
	SetAway(on bool) (api.Prompting, error)
}

// approvals returns the approvals of jobs and sessions, oldest first.
func (s *Runs) approvals() []job.Approval {
	var all []job.Approval
	if s.jobs != nil {
		all = s.jobs.Approvals()
	}
	if s.prompts != nil {
		all = append(all, s.prompts.Approvals()...)
		slices.SortStableFunc(all, func(a, b job.Approval) int { return cmp.Compare(a.AskedAt, b.AskedAt) })
	}
	return all
}

// answer decides an approval of a job or a session.
func (s *Runs) answer(id string, decision job.Decision, reason string) (job.Approval, error) {
	switch {
	case s.prompts != nil && s.prompts.Has(id):
		return s.prompts.Answer(id, decision, reason)
	case s.jobs == nil:
		return job.Approval{}, noJobs()
	}
	return s.jobs.Answer(id, decision, reason)
}

// choose answers the questions of a session's model.
func (s *Runs) choose(id string, answers [][]string) (job.Approval, error) {
	if s.prompts == nil || !s.prompts.Has(id) {
		return job.Approval{}, bridge.Errorf(bridge.Invalid, "answers are for the questions of a session's model: this has none")
	}
	return s.prompts.Choose(id, answers)
}

// Rules are the owner's standing rules, as far as sessions' prompts need them;
// *rules.Rules implements it.
type Rules interface {
	// Make durably makes a rule from the owner's choice.
	Make(request rule.Request, wish rule.Wish) (rule.Rule, error)
	// Revoke revokes a rule.
	Revoke(id string) (rule.Rule, rules.Undone, error)
}

// answerFromNowOn allows the request of a job or a session and makes a standing
// rule of it. If the answer has no effect, it makes no rule.
func (s *Runs) answerFromNowOn(id string, wish rule.Wish) (job.Approval, error) {
	switch {
	case s.prompts != nil && s.prompts.Has(id):
		return s.promptFromNowOn(id, wish)
	case s.jobs == nil:
		return job.Approval{}, noJobs()
	}
	return s.jobs.AnswerFromNowOn(id, wish)
}

func (s *Runs) promptFromNowOn(id string, wish rule.Wish) (job.Approval, error) {
	all := s.prompts.Approvals()
	at := slices.IndexFunc(all, func(a job.Approval) bool { return a.ID == id })
	if at < 0 || all[at].State != job.ApprovalAsked || all[at].OnlyTold != "" {
		return s.prompts.Answer(id, job.Allow, "") // its error gives the reason
	}
	if s.rules == nil {
		return job.Approval{}, bridge.Errorf(bridge.Unavailable, "no standing rules are kept here")
	}
	made, err := s.rules.Make(rule.OfSession(all[at]), wish)
	if err != nil {
		return job.Approval{}, err
	}
	approval, err := s.prompts.Answer(id, job.Allow, "")
	if err != nil {
		_, _, undone := s.rules.Revoke(made.ID)
		return approval, errors.Join(err, undone)
	}
	return approval, nil
}

// fromNowOn returns the possible rule for an open question, or nil if it cannot be
// answered here.
func (s *Runs) fromNowOn(a job.Approval) *dto.FromNowOn {
	switch {
	case a.State != job.ApprovalAsked || a.OnlyTold != "":
		return nil
	case s.prompts != nil && s.prompts.Has(a.ID):
		return dto.FromNowOnOf(rule.OfferFor(rule.OfSession(a)), a.Cwd)
	case s.jobs == nil:
		return nil
	}
	return dto.FromNowOnOf(s.jobs.FromNowOn(a))
}

// prompting returns the state of the handling of sessions' prompts.
func (s *Runs) prompting() dto.Prompting {
	if s.prompts == nil {
		return dto.Prompting{AnswerPrompts: "off"}
	}
	return promptingShape(s.prompts.Prompting())
}

func promptingShape(p api.Prompting) dto.Prompting {
	return dto.Prompting{AnswerPrompts: string(p.AnswerPrompts), Away: p.Away}
}

// awayRequest is the body of POST /api/away.
type awayRequest struct {
	On *bool `json:"on"`
}

// SetAway answers POST /api/away with the new state.
func (s *Runs) SetAway(w http.ResponseWriter, r *http.Request) error {
	var request awayRequest
	if err := httpjson.ReadJSON(w, r, &request); err != nil {
		return err
	}
	if request.On == nil {
		return bridge.Errorf(bridge.Invalid, "on must be true or false")
	}
	if s.prompts == nil {
		return bridge.Errorf(bridge.Unavailable, "prompts of sessions are not answered from here")
	}
	now, err := s.prompts.SetAway(*request.On)
	if err != nil {
		return err
	}
	return httpjson.WriteJSON(w, promptingShape(now))
}
