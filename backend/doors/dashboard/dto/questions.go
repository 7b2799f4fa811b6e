package dto

import (
	"bridge/backend/core/bridge"
	"bridge/backend/core/question"
)

// Questions is the answer of GET /api/questions: the open questions and the last
// ended ones, oldest first.
type Questions struct {
	Questions []Question `json:"questions"`
}

// Question is a session's question to its owner.
type Question struct {
	ID       string             `json:"id"`
	By       string             `json:"by"` // the session's name
	Agent    bridge.AgentKind   `json:"agent"`
	Project  string             `json:"project"` // its folder
	Title    string             `json:"title"`
	Context  string             `json:"context"`
	Topic    string             `json:"topic"`
	Options  []question.Option  `json:"options"` // none for a free-text answer
	Blocking bool               `json:"blocking"`
	State    question.State     `json:"state"`
	AskedAt  bridge.UnixMillis  `json:"askedAt"`
	EndedAt  *bridge.UnixMillis `json:"endedAt"` // null while it is open
	Answer   *QuestionAnswer    `json:"answer"`  // null without an answer
}

// QuestionAnswer is the owner's answer and its delivery.
type QuestionAnswer struct {
	Option string `json:"option"` // "" for a free-text answer
	Text   string `json:"text"`
	Words  string `json:"words"` // both, as sent
	Pinned bool   `json:"pinned"`
	// Receipt is the message that delivers it to the session; "" until it is sent.
	Receipt string `json:"receipt"`
}

// QuestionBefore is the refusal of a late answer, with the current question.
type QuestionBefore struct {
	Error
	Question Question `json:"question"`
}

// QuestionOf returns a question in the page's form.
func QuestionOf(q question.Question) Question {
	item := Question{
		ID: q.ID, By: q.By.Name, Agent: q.By.Agent, Project: q.Project, Title: q.Title, Context: q.Context, Topic: q.Topic, Options: List(q.Options),
		Blocking: q.Blocking, State: q.State, AskedAt: q.AskedAt,
	}
	if q.EndedAt != 0 {
		item.EndedAt = &q.EndedAt
	}
	if q.Answer != nil {
		item.Answer = &QuestionAnswer{Option: q.Answer.Option, Text: q.Answer.Text, Words: q.Answer.Words(), Pinned: q.Pinned}
		if q.Carried {
			item.Answer.Receipt = q.Message
		}
	}
	return item
}
