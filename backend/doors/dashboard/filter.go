package dashboard

import (
	"context"
	"net/url"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/search"
	"bridge/backend/doors/dashboard/httpjson"
	"bridge/backend/storage/store"
)

// filter selects the hits of a search by author and time.
type filter struct {
	from     string // name of the author, "" for all
	after    int64  // inclusive, epoch milliseconds; 0 for no bound
	wordless bool   // list messages, because no words are given
}

// readFilter parses from and after. It fails with Invalid for a malformed value, and
// for another kind than message if there are no words.
func readFilter(params url.Values) (some filter, err error) {
	if some.from = params.Get("from"); params.Has("from") {
		if err := bridge.CheckText("from", some.from, bridge.MaxQueryChars); err != nil {
			return some, malformed(err)
		}
	}
	if params.Has("after") {
		after, ok := httpjson.WholeNumber(params.Get("after"))
		if !ok {
			return some, bridge.Errorf(bridge.Invalid, "after must be a time in epoch milliseconds")
		}
		some.after = after
	}
	some.wordless = strings.TrimSpace(params.Get("q")) == "" && (params.Has("from") || params.Has("after"))
	if kind := params.Get("kind"); some.wordless && kind != "" && search.Kind(kind) != search.Message {
		return some, bridge.Errorf(bridge.Invalid, "without words only messages can be searched: add a word")
	}
	return some, nil
}

// fits returns what [store.WordQuery] accepts hits by, nil for all.
func (f filter) fits() func(store.WordHit) bool {
	if f.from == "" && f.after == 0 {
		return nil
	}
	return func(hit store.WordHit) bool {
		return hit.At >= f.after && (f.from == "" || strings.EqualFold(authorOf(hit), f.from))
	}
}

// authorOf returns the name that the page shows as the author of a hit.
func authorOf(hit store.WordHit) string {
	switch hit.Kind {
	case search.Decision:
		return hit.Decision.Author.Name
	case search.Run:
		return hit.Said.Job
	default:
		return hit.Message.From.Name
	}
}

// The messages that are read at once for a search without words, and at most in all.
const (
	listPage = 500
	mostRead = 50_000
)

// listMessages returns the messages that the query accepts, newest first, none before
// after. It reads at most the newest mostRead before query.Before.
func listMessages(ctx context.Context, reader Reader, query store.WordQuery, after int64) ([]store.WordHit, error) {
	hits, seen := []store.WordHit{}, map[string]bool{}
	before, passed := query.Before, 0
	for len(seen) < mostRead {
		rows, err := reader.Search(ctx, "", before, listPage)
		if err != nil {
			return nil, err
		}
		read := len(seen)
		for _, row := range rows {
			hit := store.WordHit{Kind: search.Message, ID: row.ID, At: row.CreatedAt, Message: row}
			if seen[row.ID] || row.CreatedAt < after {
				continue
			}
			seen[row.ID] = true
			if query.Fits != nil && !query.Fits(hit) {
				continue
			}
			if passed++; passed > query.Skip {
				hits = append(hits, hit)
			}
			if len(hits) == query.Limit {
				return hits, nil
			}
		}
		if len(rows) < listPage || len(seen) == read {
			break
		}
		// The bound excludes its own millisecond, which other messages may share.
		before = rows[len(rows)-1].CreatedAt + 1
	}
	return hits, nil
}
