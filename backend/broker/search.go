package broker

import (
	"context"

	"bridge/backend/broker/lookup"
	"bridge/backend/platform/ipc/api"
)

// history is the part of the broker that searches messages and decisions.
type history struct{ *core }

// searchHistory searches messages and decisions by their text, for a session.
func (p *history) searchHistory(ctx context.Context, l *link, args api.SearchArgs) (api.SearchResult, error) {
	s, err := p.sessions.callerOf(ctx, l, args.Caller)
	if err != nil {
		return api.SearchResult{}, err
	}
	result, err := lookup.Search(ctx, p.opts.DB, p.TargetOf(s), args)
	if err != nil {
		return api.SearchResult{}, err
	}
	return result, p.activity.noteActivity(ctx, s, "tool search_history")
}
