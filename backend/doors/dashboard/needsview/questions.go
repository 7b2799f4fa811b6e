package needsview

import (
	"context"
	"errors"
	"net/http"

	"bridge/backend/core/bridge"
	"bridge/backend/core/needs"
	"bridge/backend/core/question"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/httpjson"
)

// Questions are what sessions ask; *questions.Questions is one. All methods may be
// called concurrently.
type Questions interface {
	// Questions lists the open ones and the last that are over, in the order in which
	// they were asked.
	Questions() []question.Question
	// Needs are the open ones.
	Needs() []needs.QuestionFact
	// Answer gives one its answer. The question is as it is then, also beside a Conflict.
	Answer(ctx context.Context, id string, answer question.Answer) (question.Question, error)
}

// Asked are the open questions, for the list of needs.
func (q *Queue) Asked() []needs.QuestionFact {
	if q.opts.Questions == nil {
		return nil
	}
	return q.opts.Questions.Needs()
}

// List answers GET /api/questions.
func (q *Queue) List(w http.ResponseWriter, _ *http.Request) error {
	if q.opts.Questions == nil {
		return httpjson.WriteJSON(w, dto.Questions{Questions: []dto.Question{}})
	}
	return httpjson.WriteJSON(w, dto.Questions{Questions: dto.Each(q.opts.Questions.Questions(), dto.QuestionOf)})
}

// questionRequest is the body of POST /api/questions/<id>.
type questionRequest struct {
	Option string `json:"option"`
	Text   string `json:"text"`
	Pin    bool   `json:"pin"`
}

// Answer answers POST /api/questions/<id> with the question as it stands then. An answer
// that came too late is a 409 with the question that it met.
func (q *Queue) Answer(w http.ResponseWriter, r *http.Request) error {
	var request questionRequest
	if err := httpjson.ReadJSON(w, r, &request); err != nil {
		return err
	}
	if q.opts.Questions == nil {
		return bridge.Errorf(bridge.Unavailable, "questions.db cannot be used: `bridge doctor` says why")
	}
	one, err := q.opts.Questions.Answer(r.Context(), r.PathValue("id"), question.Answer{Option: request.Option, Text: request.Text, Pin: request.Pin})
	var late *bridge.Error
	if one.ID != "" && errors.As(err, &late) && late.Code == bridge.Conflict {
		return httpjson.Refuse(w, http.StatusConflict, dto.QuestionBefore{Error: dto.Error{Error: late.Message}, Question: dto.QuestionOf(one)})
	}
	if err != nil {
		return err
	}
	return httpjson.WriteJSON(w, dto.QuestionOf(one))
}
