package dto

import (
	"bridge/backend/core/bridge"
	"bridge/backend/core/question"
)

// Questions is the answer of GET /api/questions: the open ones and the last that are
// over, in the order in which they were asked.
type Questions struct {
	Questions []Question `json:"questions"`
}

// Question is what a session asks its owner.
type Question struct {
	ID       string             `json:"id"`
	By       string             `json:"by"` // the session's name
	Agent    bridge.AgentKind   `json:"agent"`
	Project  string             `json:"project"` // its folder
	Title    string             `json:"title"`
	Context  string             `json:"context"`
	Topic    string             `json:"topic"`
	Options  []question.Option  `json:"options"` // none for an answer in words
	Blocking bool               `json:"blocking"`
	State    question.State     `json:"state"`
	AskedAt  bridge.UnixMillis  `json:"askedAt"`
	EndedAt  *bridge.UnixMillis `json:"endedAt"` // null while it is open
	Answer   *QuestionAnswer    `json:"answer"`  // null while there is none
}

// QuestionAnswer is the owner's answer, and how far it came.
type QuestionAnswer struct {
	Option string `json:"option"` // of words alone ""
	Text   string `json:"text"`
	Words  string `json:"words"` // both, as they are said
	Pinned bool   `json:"pinned"`
	// Receipt is the message that takes it to the session; "" while it waits to be sent.
	Receipt string `json:"receipt"`
}

// QuestionBefore is the refusal of an answer that came too late: with the question as it
// stands.
type QuestionBefore struct {
	Error
	Question Question `json:"question"`
}

// QuestionOf is a question as the page has it.
func QuestionOf(q question.Question) Question {
	one := Question{
		ID: q.ID, By: q.By.Name, Agent: q.By.Agent, Project: q.Project, Title: q.Title, Context: q.Context, Topic: q.Topic, Options: List(q.Options),
		Blocking: q.Blocking, State: q.State, AskedAt: q.AskedAt,
	}
	if q.EndedAt != 0 {
		one.EndedAt = &q.EndedAt
	}
	if q.Answer != nil {
		one.Answer = &QuestionAnswer{Option: q.Answer.Option, Text: q.Answer.Text, Words: q.Answer.Words(), Pinned: q.Pinned}
		if q.Carried {
			one.Answer.Receipt = q.Message
		}
	}
	return one
}
