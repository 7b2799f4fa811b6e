package dto

import (
	"bridge/backend/core/bridge"
	"bridge/backend/core/search"
)

// Search is the answer of GET /api/search, the best hit first.
type Search struct {
	Results []Hit  `json:"results"`
	Behind  int64  `json:"behind"` // rows that the index does not reach yet
	Next    string `json:"next"`   // the cursor of the next page, "" after the last
}

// Hit is one hit. Author is who wrote the message, decided or, of a run, the job in
// which it was said; Target and Recipients are a message's, Topic and Current a
// decision's, Said a run's.
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
	Said        string            `json:"said"`    // prompt, message, text, call, question, answer or end; "" of the others
	Snippet     []search.Part     `json:"snippet"` // plain text in pieces
	Link        string            `json:"link"`    // within the page, as "#/decisions/release"
}
