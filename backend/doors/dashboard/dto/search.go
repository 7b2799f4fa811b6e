package dto

import (
	"bridge/backend/core/bridge"
	"bridge/backend/core/search"
)

// Search is the answer of GET /api/search, the best hit first.
type Search struct {
	Results []Hit  `json:"results"`
	Behind  int64  `json:"behind"` // rows that are not indexed yet
	Next    string `json:"next"`   // the cursor of the next page, "" after the last
}

// Hit is one hit. Author is the author of the message or decision, or the job of a
// run. Target and Recipients belong to a message, Topic and Current to a decision,
// Said to a run.
type Hit struct {
	Kind        search.Kind       `json:"kind"` // message, decision or run
	ID          string            `json:"id"`
	At          bridge.UnixMillis `json:"at"`
	AuthorName  string            `json:"author_name"`
	AuthorAgent bridge.AgentKind  `json:"author_agent"`
	Target      string            `json:"to_target"`
	Recipients  string            `json:"recipients"` // names, joined by ", "
	Topic       string            `json:"topic"`
	Current     bool              `json:"current"`
	Said        string            `json:"said"`    // prompt, message, text, call, question, answer or end; "" for other kinds
	Snippet     []search.Part     `json:"snippet"` // plain text in parts
	Link        string            `json:"link"`    // within the page, as "#/decisions/release"
}
