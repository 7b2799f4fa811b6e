package runs

import (
	"errors"
	"net/http"

	"github.com/google/uuid"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/rule"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/httpjson"
	"bridge/backend/platform/ipc/api"
)

// answerRequest is the body of POST /api/approvals/<id>.
type answerRequest struct {
	Decision string `json:"decision"`
	Reason   string `json:"reason"`
	// Rule makes the answer a standing rule: "from now on" instead of "once" (NED-04).
	Rule *rule.Wish `json:"rule"`
	// Answers are the choices for each question of a model, in order.
	Answers [][]string `json:"answers"`
}

// Answer answers POST /api/approvals/<id> (JOB-07) with the record, which is
// answered but not yet applied. A late answer is a 409 with the existing record.
func (s *Runs) Answer(w http.ResponseWriter, r *http.Request) error {
	var request answerRequest
	if err := httpjson.ReadJSON(w, r, &request); err != nil {
		return err
	}
	decision, err := job.ParseDecision(request.Decision)
	if err != nil {
		return err
	}
	var approval job.Approval
	switch {
	case request.Answers != nil && (decision != job.Allow || request.Reason != "" || request.Rule != nil):
		return bridge.Errorf(bridge.Invalid, "answers go with the decision allow, no reason and no rule")
	case request.Answers != nil:
		approval, err = s.choose(r.PathValue("id"), request.Answers)
	case request.Rule == nil:
		approval, err = s.answer(r.PathValue("id"), decision, request.Reason)
	case decision != job.Allow || request.Reason != "":
		return bridge.Errorf(bridge.Invalid, "a rule only allows: it goes with the decision allow and no reason")
	default:
		approval, err = s.answerFromNowOn(r.PathValue("id"), *request.Rule)
	}
	var late *bridge.Error
	if approval.ID != "" && errors.As(err, &late) && late.Code == bridge.Conflict {
		return httpjson.Refuse(w, http.StatusConflict, dto.AnsweredBefore{Error: dto.Error{Error: late.Message}, Approval: approvalShape(approval)})
	}
	if err != nil {
		return err
	}
	return httpjson.WriteJSON(w, s.approvalShape(approval))
}

// messageRequest is the body of POST /api/subagents/message.
type messageRequest struct {
	Job  string `json:"job"`
	Body string `json:"body"`
}

// Message answers POST /api/subagents/message: it sends the owner's message to a
// job, as its supervisor's would be (JOB-05).
func (s *Runs) Message(w http.ResponseWriter, r *http.Request) error {
	var request messageRequest
	if err := httpjson.ReadJSON(w, r, &request); err != nil {
		return err
	}
	if err := httpjson.CheckOwnerBody(request.Body); err != nil {
		return err
	}
	return s.say(w, job.MessageArgs{Job: request.Job, Message: request.Body})
}

// settingsRequest is the body of POST /api/subagents/settings.
type settingsRequest struct {
	Job    string `json:"job"`
	Title  string `json:"title"`
	Model  string `json:"model"`
	Effort string `json:"effort"`
	Access string `json:"access"`
}

// Settings answers POST /api/subagents/settings: it applies the title immediately,
// the rest with the job's next turn.
func (s *Runs) Settings(w http.ResponseWriter, r *http.Request) error {
	var request settingsRequest
	if err := httpjson.ReadJSON(w, r, &request); err != nil {
		return err
	}
	if request == (settingsRequest{Job: request.Job}) {
		return bridge.Errorf(bridge.Invalid, "nothing is to be changed: name title, model, effort or access")
	}
	return s.say(w, job.MessageArgs{
		Job: request.Job, Title: request.Title, Model: request.Model, Effort: request.Effort, Access: request.Access,
	})
}

func (s *Runs) say(w http.ResponseWriter, args job.MessageArgs) error {
	control, err := args.Check()
	if err != nil {
		return err
	}
	if s.jobs == nil {
		return noJobs()
	}
	if err := s.bound(); err != nil {
		return err
	}
	control.By = bridge.OwnerName
	result, err := s.jobs.Say(uuid.NewString(), control)
	if err != nil {
		return err
	}
	return httpjson.WriteJSON(w, saidShape(result))
}

// cancelRequest is the body of POST /api/subagents/cancel.
type cancelRequest struct {
	Job string `json:"job"`
}

// Cancel answers POST /api/subagents/cancel (JOB-06). A running job has ended only
// after its runner reports that.
func (s *Runs) Cancel(w http.ResponseWriter, r *http.Request) error {
	var request cancelRequest
	if err := httpjson.ReadJSON(w, r, &request); err != nil {
		return err
	}
	if err := job.CheckTarget(request.Job); err != nil {
		return err
	}
	if s.jobs == nil {
		return noJobs()
	}
	status, err := s.jobs.Cancel(request.Job)
	if err != nil {
		return err
	}
	return httpjson.WriteJSON(w, saidShape(api.JobMessaged{JobStatus: status}))
}

func saidShape(result api.JobMessaged) dto.Said {
	return dto.Said{Job: result.Job, Status: result.Status, Delivery: result.Delivery}
}
