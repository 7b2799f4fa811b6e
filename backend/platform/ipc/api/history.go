package api

import (
	"context"

	"bridge/backend/core/bridge"
	"bridge/backend/core/search"
)

// SearchArgs asks for what a session may know of by its words. Kind "" means all,
// Limit 0 the usual number.
type SearchArgs struct {
	Caller
	Query string `json:"query"`
	Kind  string `json:"kind,omitempty"`
	Limit int    `json:"limit,omitempty"`
}

// SearchResult is the answer of the tool `search_history`, the best hit first.
type SearchResult struct {
	Results []SearchHit `json:"results"`
	Behind  int64       `json:"behind"` // rows that were stored a moment ago and are not searched yet
}

// SearchHit is a message or a decision. To and ConversationID are a message's,
// Topic and Current a decision's.
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

// HistoryCalls are the operations about what was said before.
type HistoryCalls struct{ link Link }

// SearchHistory looks messages and decisions up by their words.
func (c HistoryCalls) SearchHistory(ctx context.Context, args SearchArgs) (SearchResult, error) {
	return OpSearch.Call(ctx, c.link, args)
}
