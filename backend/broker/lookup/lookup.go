// Package lookup searches messages and decisions by their text, for a session. It holds
// the one rule about what of the history a session may read, and returns results as
// snippets.
package lookup

import (
	"context"
	"slices"

	"bridge/backend/core/decision"
	"bridge/backend/core/mail"
	"bridge/backend/core/search"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/store"
)

// Search returns the results of a session's search. The specification does not define
// what of the history a session may read. Therefore it gets only what it knows already:
// messages that it sent or received, and decisions whose scope reaches it.
func Search(ctx context.Context, db *store.DB, target decision.Target, args api.SearchArgs) (api.SearchResult, error) {
	query, err := wordQuery(args)
	if err != nil {
		return api.SearchResult{}, err
	}
	query.Fits = func(hit store.WordHit) bool { return mayRead(target, hit) }
	hits, behind, err := db.SearchWords(ctx, query)
	if err != nil {
		return api.SearchResult{}, err
	}
	result := api.SearchResult{Results: []api.SearchHit{}, Behind: behind}
	for _, hit := range hits {
		result.Results = append(result.Results, searchHit(hit, query.Words))
	}
	return result, nil
}

func wordQuery(args api.SearchArgs) (query store.WordQuery, err error) {
	if query.Limit, err = args.Hits(); err != nil {
		return query, err
	}
	// Only the owner may read what the runs of jobs contain.
	if query.Kinds, err = search.ParseKind(args.Kind, []search.Kind{search.Message, search.Decision}); err != nil {
		return query, err
	}
	query.Words, err = search.Parse(args.Query)
	return query, err
}

// mayRead reports whether the session sent or received the message, or the decision
// reaches it.
func mayRead(s decision.Target, hit store.WordHit) bool {
	if hit.Kind == search.Decision {
		return hit.Decision.Scope.Reaches(s)
	}
	if hit.Kind != search.Message {
		return false
	}
	isRecipient := func(d mail.Delivery) bool { return d.Recipient == s.ID }
	return hit.Message.From.ID == s.ID || slices.ContainsFunc(hit.Message.Deliveries, isRecipient)
}

func searchHit(hit store.WordHit, query search.Query) api.SearchHit {
	if hit.Kind == search.Decision {
		rev := hit.Decision
		return api.SearchHit{
			Kind: hit.Kind, ID: rev.ID, From: rev.Author, Topic: rev.Topic, Current: rev.Current, CreatedAt: hit.At,
			Snippet: search.Plain(query.Snippet(rev.Text)),
		}
	}
	row := hit.Message
	return api.SearchHit{
		Kind: hit.Kind, ID: row.ID, From: row.From, To: row.To, ConversationID: mail.Thread(row.ConversationID), CreatedAt: hit.At,
		Snippet: search.Plain(query.Snippet(row.Body)),
	}
}
