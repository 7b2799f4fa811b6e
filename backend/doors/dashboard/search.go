package dashboard

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/search"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/httpjson"
	"bridge/backend/storage/store"
)

// The default and the maximum number of hits of GET /api/search.
const (
	usualHits = 20
	mostHits  = 100
)

// search answers GET /api/search?q=&kind=&before=&limit=: full-text search.
//
//   - q holds words; all must be there, in any case and with or without
//     diacritics. Words in double quotes stand side by side. No sign has another
//     meaning, so that no text is a syntax error; one without a letter or number
//     is a 400.
//   - kind is message, decision or run, what was said in the runs of delegated jobs;
//     without it all are searched.
//   - before is an exclusive time in epoch milliseconds, after an inclusive one.
//   - from is the name of the author: a session, a job, or you.
//   - limit is 1 to 100, 20 when it is not given.
//   - cursor is the next of an answer: the same question goes on behind that page.
//
// The answer is {results: [...], behind: n, next: "..."}, see dto.Search and
// dto.Hit. It ranks the newest 2,000 matches of each kind, best first. Words in
// more than 2,000 documents do not rank; if all words are such, the newest come
// first. snippet is a list of {text, hit}: plain text, never HTML. link opens the
// hit in the page. behind counts recently stored rows that are not indexed yet.
// Without an index the answer is a 503 with the reason. With from or after q may be
// empty: the answer then lists messages, newest first.
func (m messages) search(w http.ResponseWriter, r *http.Request) error {
	query, some, err := readWordQuery(r)
	if err != nil {
		return err
	}
	limit := query.Limit
	query.Limit++ // one more shows whether there are further ones
	reader, err := m.reader(r.Context())
	if err != nil {
		return err
	}
	find := reader.SearchWords
	if some.wordless {
		find = func(ctx context.Context, query store.WordQuery) ([]store.WordHit, int64, error) {
			hits, err := listMessages(ctx, reader, query, some.after)
			return hits, 0, err
		}
	}
	hits, behind, err := find(r.Context(), query)
	if err != nil {
		return err
	}
	people, err := m.directory(r.Context(), reader, live{})
	if err != nil {
		return err
	}
	answer := dto.Search{Results: make([]dto.Hit, min(len(hits), limit)), Behind: behind}
	for i := range answer.Results {
		answer.Results[i] = people.hit(hits[i], query.Words)
	}
	if len(hits) > limit {
		answer.Next = cursorAfter(query, hits[:limit], m.now())
	}
	return httpjson.WriteJSON(w, answer)
}

// mostSkipped bounds the paging of a search: no more are ranked.
const mostSkipped = 10_000

// cursorAfter returns the start of the next page: the number of earlier hits and
// the time of the search, so that new messages do not shift the hits.
func cursorAfter(query store.WordQuery, page []store.WordHit, now time.Time) string {
	before := query.Before
	if before == 0 {
		before = now.UnixMilli() + 1
		for _, hit := range page {
			before = max(before, hit.At+1) // another clock may be ahead
		}
	}
	return fmt.Sprintf("%d.%d", query.Skip+len(page), before)
}

func readCursor(cursor string, query *store.WordQuery) error {
	skip, before, _ := strings.Cut(cursor, ".")
	skipped, ok := httpjson.WholeNumber(skip)
	at, timed := httpjson.WholeNumber(before)
	if !ok || !timed || skipped > mostSkipped {
		return bridge.Errorf(bridge.Invalid, "cursor must be the next of an earlier answer")
	}
	query.Skip, query.Before = int(skipped), at
	if at == 0 {
		query.Before = math.MinInt64 // as in httpjson.ReadPage
	}
	return nil
}

func readWordQuery(r *http.Request) (query store.WordQuery, some filter, err error) {
	params, err := httpjson.Params(r)
	if err != nil {
		return query, some, err
	}
	span, err := httpjson.ReadPage(params, usualHits, mostHits)
	if err != nil {
		return query, some, err
	}
	query.Before, query.Limit = span.Before, span.Limit
	if params.Has("cursor") {
		if params.Has("before") {
			return query, some, bridge.Errorf(bridge.Invalid, "cursor goes on with the time of the first page: leave before out")
		}
		if err := readCursor(params.Get("cursor"), &query); err != nil {
			return query, some, err
		}
	}
	if query.Kinds, err = search.ParseKind(params.Get("kind"), search.Kinds()); err != nil {
		return query, some, err
	}
	if some, err = readFilter(params); err != nil {
		return query, some, err
	}
	query.Fits = some.fits()
	if some.wordless {
		return query, some, nil
	}
	if query.Words, err = search.Parse(params.Get("q")); err != nil {
		return query, some, malformed(err)
	}
	return query, some, nil
}

func (p *directory) hit(hit store.WordHit, query search.Query) dto.Hit {
	if hit.Kind == search.Decision {
		rev := hit.Decision
		return dto.Hit{
			Kind: hit.Kind, ID: rev.ID, At: hit.At, AuthorName: rev.Author.Name, AuthorAgent: rev.Author.Agent,
			Topic: rev.Topic, Current: rev.Current,
			Snippet: query.Snippet(rev.Text), Link: "#/decisions/" + url.PathEscape(rev.Topic),
		}
	}
	if hit.Kind == search.Run {
		statement := hit.Said
		return dto.Hit{
			Kind: hit.Kind, ID: hit.ID, At: hit.At, AuthorName: statement.Job, AuthorAgent: statement.Agent, Said: statement.Kind,
			Snippet: query.Snippet(statement.Body), Link: "#/runs/" + url.PathEscape(statement.Job),
		}
	}
	row := p.archive(hit.Message)
	return dto.Hit{
		Kind: hit.Kind, ID: row.ID, At: hit.At, AuthorName: row.FromName, AuthorAgent: row.FromAgent,
		Target: row.ToTarget, Recipients: row.Recipients,
		Snippet: query.Snippet(row.Body), Link: "#/overview?m=" + url.QueryEscape(row.ID),
	}
}
