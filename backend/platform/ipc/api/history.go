package api

import (
	"context"

	"bridge/backend/core/bridge"
	"bridge/backend/core/search"
)

// SearchArgs is a full-text search in the history visible to a session. Kind ""
// means all kinds, Limit 0 the default number.
type SearchArgs struct {
	Caller
	Query string `json:"query"`
	Kind  string `json:"kind,omitempty"`
	Limit int    `json:"limit,omitempty"`
}

// SearchResult is the result of the tool `search_history`, best hit first.
type SearchResult struct {
	Results []SearchHit `json:"results"`
	Behind  int64       `json:"behind"` // recently stored rows that are not indexed yet
}

// SearchHit is a message or a decision. To and ConversationID belong to a message,
// Topic and Current to a decision.
type SearchHit struct {
	Kind           search.Kind       `json:"kind"`
	ID             string            `json:"id"`
	From           bridge.Address    `json:"from"`
	To             string            `json:"to,omitempty"`
	ConversationID string            `json:"conversationId,omitempty"`
	Topic          string            `json:"topic,omitempty"`
	Current        bool              `json:"current,omitempty"`
	CreatedAt      bridge.UnixMillis `json:"createdAt"`
	Snippet        string            `json:"snippet"`
}

// HistoryCalls holds the operations on the history.
type HistoryCalls struct{ link Link }

// SearchHistory searches the text of messages and decisions. It fails with Denied before
// Register, and with Invalid for a bad query, kind or limit.
func (c HistoryCalls) SearchHistory(ctx context.Context, args SearchArgs) (SearchResult, error) {
	return OpSearch.Call(ctx, c.link, args)
}
