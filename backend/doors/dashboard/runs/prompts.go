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

// Prompts are the permission prompts of interactive sessions; *prompts.Prompts is one.
// All methods may be called concurrently.
type Prompts interface {
	// Approvals lists the open ones and the last that are over, the oldest first.
	Approvals() []job.Approval
	// Has reports whether one has that id.
	Has(id string) bool
	// Answer decides one for the owner. The record is as it is then, also beside a
	// Conflict.
	Answer(id string, decision job.Decision, reason string) (job.Approval, error)
	// Choose answers what a model asks in its own words, like Answer.
	Choose(id string, answers [][]string) (job.Approval, error)
	// Prompting tells how it stands with them.
	Prompting() api.Prompting
	// SetAway switches away mode.
	SetAway(on bool) (api.Prompting, error)
}

// approvals are what jobs ask and what sessions ask, the oldest first.
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

// answer decides what a job or a session asks.
func (s *Runs) answer(id string, decision job.Decision, reason string) (job.Approval, error) {
	switch {
	case s.prompts != nil && s.prompts.Has(id):
		return s.prompts.Answer(id, decision, reason)
	case s.jobs == nil:
		return job.Approval{}, noJobs()
	}
	return s.jobs.Answer(id, decision, reason)
}

// choose answers what the model of a session asks itself.
func (s *Runs) choose(id string, answers [][]string) (job.Approval, error) {
	if s.prompts == nil || !s.prompts.Has(id) {
		return job.Approval{}, bridge.Errorf(bridge.Invalid, "answers are for the questions of a session's model: this has none")
	}
	return s.prompts.Choose(id, answers)
}

// Rules are the owner's standing rules, as far as prompts of sessions need them;
// *rules.Rules is one.
type Rules interface {
	// Make makes a rule from what the owner chose, durably.
	Make(request rule.Request, wish rule.Wish) (rule.Rule, error)
	// TakeBack ends a rule.
	TakeBack(id string) (rule.Rule, rules.Undone, error)
}

// answerFromNowOn allows what a job or a session asks, and makes a standing rule of it.
// Where the answer does nothing there is no rule either.
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
		return s.prompts.Answer(id, job.Allow, "") // it says why not
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
		_, _, undone := s.rules.TakeBack(made.ID)
		return approval, errors.Join(err, undone)
	}
	return approval, nil
}

// fromNowOn says what rule may be made of an open question; nil of one that cannot be
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

// prompting is how it stands with prompts of sessions.
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

// SetAway answers POST /api/away with how it stands after it.
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
