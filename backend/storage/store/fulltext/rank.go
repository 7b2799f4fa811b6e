package fulltext

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"

	"bridge/backend/core/search"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/schema"
)

// rankedDocuments is how many of the newest matching documents are ranked. A word in more
// documents is too common to rank by: it has no meaning, and FTS5 would scan all of it. A
// query that accepts only some of the hits searches further.
const (
	rankedDocuments     = 2_000
	rankedWithSeldomFit = 20_000
)

// WordQuery selects documents by their words.
type WordQuery struct {
	Words  search.Query
	Kinds  []search.Kind
	Before int64 // Unix milliseconds, exclusive; 0 for no bound
	Most   int   // how many are read, unless Choosy
	Choosy bool  // only some of the found ones will fit
}

// Rank returns the documents that contain all the words, best first by BM25, newer ones
// first among equals. behind is how many rows the index lacks. It ranks the newest 2,000 of
// each kind, by those words that are in at most 2,000 documents. If all words are in more,
// the newest come first. It fails without an index, with a sentence that states why.
func (x *Index) Rank(ctx context.Context, q WordQuery) (found []Ranked, behind int64, err error) {
	err = x.asked(func(a sqlitex.Querier) error {
		found = nil
		// First: rows that are indexed meanwhile may or may not be among the hits.
		if behind, err = x.behind(ctx, a); err != nil {
			return err
		}
		telling, err := telling(ctx, a, q.Words)
		if err != nil {
			return err
		}
		for _, kind := range q.Kinds {
			some, err := rank(ctx, a, kind, q, telling)
			if err != nil {
				return err
			}
			found = append(found, some...)
		}
		return nil
	})
	slices.SortStableFunc(found, func(a, b Ranked) int {
		return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(b.At, a.At))
	})
	return found, behind, err
}

// Ranked is a matching document; a lower score is better.
type Ranked struct {
	Kind  search.Kind
	ID    string
	At    int64
	doc   int64
	score float64
}

// kindsStored maps kinds to their stored numbers.
var kindsStored = map[search.Kind]documentKind{search.Message: messageDocument, search.Decision: decisionDocument, search.Run: runDocument}

// telling returns the phrases that are rare enough to rank by.
func telling(ctx context.Context, a sqlitex.Querier, query search.Query) ([]search.Query, error) {
	var telling []search.Query
	for _, phrase := range query.Phrases() {
		common, err := isCommon(ctx, a, phrase)
		if err != nil {
			return nil, err
		}
		if !common {
			telling = append(telling, phrase)
		}
	}
	return telling, nil
}

// isCommon reports whether a phrase is too common to rank by: it, or every word of it, is
// in too many documents. To count a phrase of such words, FTS5 would scan all documents
// with them.
func isCommon(ctx context.Context, a sqlitex.Querier, phrase search.Query) (bool, error) {
	terms := phrase.Words()
	for _, term := range terms {
		if common, err := inMany(ctx, a, term); !common || err != nil {
			if len(terms) > 1 && err == nil {
				return inMany(ctx, a, phrase)
			}
			return false, err
		}
	}
	return true, nil
}

// inMany reports whether too many documents contain the phrase to rank them.
func inMany(ctx context.Context, a sqlitex.Querier, phrase search.Query) (bool, error) {
	var count int
	rows, err := a.Query(ctx, "SELECT count(*) FROM (SELECT 1 FROM search_words WHERE search_words MATCH ?1 LIMIT ?2)", phrase.FTS5(), rankedDocuments+1)
	err = sqlitex.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&count) })
	return count > rankedDocuments, err
}

// rank returns the newest matching documents, and scores them by the telling phrases.
// FTS5 scans its lists from either end; scoring costs ten times as much.
func rank(ctx context.Context, a sqlitex.Querier, kind search.Kind, q WordQuery, telling []search.Query) ([]Ranked, error) {
	found, err := newest(ctx, a, kind, q, len(telling) > 0)
	if err != nil || len(found) == 0 || len(telling) == 0 {
		return found, err
	}
	from, to := found[0].doc, found[len(found)-1].doc
	scores := make(map[int64]float64, len(found))
	rows, err := a.Query(ctx, "SELECT rowid, rank FROM search_words WHERE search_words MATCH ?1 AND rowid BETWEEN ?2 AND ?3",
		search.All(telling).FTS5(), min(from, to), max(from, to))
	err = sqlitex.Each(rows, err, func(rows *sql.Rows) error {
		var doc int64
		var score float64
		err := rows.Scan(&doc, &score)
		scores[doc] = score
		return err
	})
	for i := range found {
		found[i].score = scores[found[i].doc]
	}
	return found, err
}

// The newest ?2 documents that contain ?1, created before ?3: the numbers of messages
// count up, those of others, of kind ?4, count down.
const (
	newestMessages = `SELECT d.doc, d.id, d.at FROM search_words w CROSS JOIN search_documents d ON d.doc = w.rowid
		WHERE search_words MATCH ?1 AND w.rowid >= 0 AND d.at < ?3 ORDER BY w.rowid DESC LIMIT ?2`
	newestOthers = `SELECT d.doc, d.id, d.at FROM search_words w CROSS JOIN search_documents d ON d.doc = w.rowid
		WHERE search_words MATCH ?1 AND w.rowid < 0 AND d.at < ?3 AND d.kind = ?4 ORDER BY w.rowid LIMIT ?2`
)

func newest(ctx context.Context, a sqlitex.Querier, kind search.Kind, q WordQuery, ranked bool) (found []Ranked, err error) {
	window, before, text := rankedDocuments, q.Before, newestMessages
	switch {
	case q.Choosy:
		window = rankedWithSeldomFit
	case !ranked:
		window = min(q.Most, rankedDocuments)
	}
	if before == 0 {
		before = math.MaxInt64
	}
	args := []any{q.Words.FTS5(), window, before}
	if stored := kindsStored[kind]; stored != messageDocument {
		text, args = newestOthers, append(args, stored)
	}
	rows, err := a.Query(ctx, text, args...)
	return found, sqlitex.Each(rows, err, func(rows *sql.Rows) error {
		hit := Ranked{Kind: kind}
		err := rows.Scan(&hit.doc, &hit.ID, &hit.At)
		found = append(found, hit)
		return err
	})
}

// behind returns the number of rows that are not indexed yet.
func (x *Index) behind(ctx context.Context, a sqlitex.Querier) (count int64, err error) {
	for _, from := range sources {
		var upto int64
		rows, err := a.Query(ctx, "SELECT row FROM search_upto WHERE source = ?1", from.name)
		if err := sqlitex.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&upto) }); err != nil {
			return 0, err
		}
		last, err := x.last(ctx, from)
		if errors.Is(err, schema.ErrArchive) {
			continue
		}
		if err != nil {
			return 0, err
		}
		count += max(0, last-upto)
	}
	return count, nil
}
