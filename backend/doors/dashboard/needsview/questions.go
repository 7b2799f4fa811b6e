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

// Questions are the sessions' questions; *questions.Questions implements it. All
// methods are safe for concurrent use.
type Questions interface {
	// Questions returns the open questions and the last ended ones, oldest first.
	Questions() []question.Question
	// Needs returns the open questions.
	Needs() []needs.QuestionFact
	// Answer stores an answer and returns the question's new state, also with a Conflict.
	Answer(ctx context.Context, id string, answer question.Answer) (question.Question, error)
}

// Asked returns the open questions, for the list of needs.
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

// Answer answers POST /api/questions/<id> with the question's new state. A late
// answer is a 409 with the existing question.
func (q *Queue) Answer(w http.ResponseWriter, r *http.Request) error {
	var request questionRequest
	if err := httpjson.ReadJSON(w, r, &request); err != nil {
		return err
	}
	if q.opts.Questions == nil {
		return bridge.Errorf(bridge.Unavailable, "questions.db cannot be used: `bridge doctor` says why")
	}
	item, err := q.opts.Questions.Answer(r.Context(), r.PathValue("id"), question.Answer{Option: request.Option, Text: request.Text, Pin: request.Pin})
	var late *bridge.Error
	if item.ID != "" && errors.As(err, &late) && late.Code == bridge.Conflict {
		return httpjson.Refuse(w, http.StatusConflict, dto.QuestionBefore{Error: dto.Error{Error: late.Message}, Question: dto.QuestionOf(item)})
	}
	if err != nil {
		return err
	}
	return httpjson.WriteJSON(w, dto.QuestionOf(item))
}
