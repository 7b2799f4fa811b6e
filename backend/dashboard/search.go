package dashboard

import (
	"net/http"
	"net/url"

	"bridge/backend/search"
	"bridge/backend/store"
)

// The number of hits of GET /api/search, unless asked for another, and at most.
const (
	usualHits = 20
	mostHits  = 100
)

// searchWords answers GET /api/search?q=&kind=&before=&limit=: full-text search.
//
//   - q holds words; all must be there, in any case and with or without
//     diacritics. Words in double quotes stand side by side. No sign has another
//     meaning, so that no text is a syntax error; one without a letter or number
//     is a 400.
//   - kind is message or decision; without it both are searched.
//   - before is an exclusive time in epoch milliseconds.
//   - limit is 1 to 100, 20 when it is not given.
//
// The answer is {results: [...], behind: n}, see searchWire and hitWire. The best
// come first, among the newest 2,000 of each kind that fit; words that are in more
// than 2,000 documents do not rank, and where all are, the newest come first.
// snippet is a list of {text, hit}: plain text, never HTML. link opens the hit in
// the page. behind counts rows that were stored a moment ago and are not searched
// yet. Without an index the answer is 503 and says why.
func (d *Dashboard) searchWords(w http.ResponseWriter, r *http.Request) error {
	query, err := readWordQuery(r)
	if err != nil {
		return err
	}
	reader, err := d.reader(r.Context())
	if err != nil {
		return err
	}
	hits, behind, err := reader.SearchWords(r.Context(), query)
	if err != nil {
		return err
	}
	people, err := d.directory(r.Context(), reader, live{})
	if err != nil {
		return err
	}
	results := make([]hitWire, len(hits))
	for i, hit := range hits {
		results[i] = people.hit(hit, query.Words)
	}
	return writeJSON(w, searchWire{Results: results, Behind: behind})
}

func readWordQuery(r *http.Request) (query store.WordQuery, err error) {
	params, err := readParams(r)
	if err != nil {
		return query, err
	}
	span, err := readPage(params, usualHits, mostHits)
	if err != nil {
		return query, err
	}
	query.Before, query.Limit = span.before, span.limit
	if query.Kinds, err = search.ParseKind(params.Get("kind")); err != nil {
		return query, err
	}
	if query.Words, err = search.Parse(params.Get("q")); err != nil {
		return query, malformed(err)
	}
	return query, nil
}

func (p *directory) hit(hit store.WordHit, words search.Query) hitWire {
	if hit.Kind == search.Decision {
		rev := hit.Decision
		return hitWire{
			Kind: hit.Kind, ID: rev.ID, At: hit.At, AuthorName: rev.Author.Name, AuthorAgent: rev.Author.Agent,
			Topic: rev.Topic, Current: rev.Current,
			Snippet: words.Snippet(rev.Text), Link: "#/decisions/" + url.PathEscape(rev.Topic),
		}
	}
	row := p.archive(hit.Message)
	return hitWire{
		Kind: hit.Kind, ID: row.ID, At: hit.At, AuthorName: row.FromName, AuthorAgent: row.FromAgent,
		Target: row.ToTarget, Recipients: row.Recipients,
		Snippet: words.Snippet(row.Body), Link: "#/overview?m=" + url.QueryEscape(row.ID),
	}
}
