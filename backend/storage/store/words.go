package store

import (
	"context"
	"errors"
	"slices"

	"bridge/backend/core/decision"
	"bridge/backend/core/mail"
	"bridge/backend/core/search"
	"bridge/backend/storage/store/fulltext"
	"bridge/backend/storage/store/schema"
)

// WordQuery selects messages, decisions and lines of jobs' transcripts by their words.
type WordQuery struct {
	Words  search.Query
	Kinds  []search.Kind
	Before int64 // Unix milliseconds, exclusive; 0 for no bound
	Skip   int   // hits to skip before the first
	Limit  int
	// Fits filters the hits; nil accepts all.
	Fits func(WordHit) bool
}

// WordHit holds a Message, a Decision or a Said, depending on its kind.
type WordHit struct {
	Kind     search.Kind
	ID       string
	At       int64
	Message  mail.HistoryRow
	Decision decision.Revision
	Said     Said
}

// SearchWords returns the hits that contain all the words, best first by BM25. Among
// equals, newer ones come first. behind is how many rows the index lacks. It ranks the
// newest 2,000 hits of each kind, by those words that are in at most 2,000 documents. If
// all words are in more, the newest come first. It returns no hits beyond those. It fails
// without an index, with a sentence that states why.
func (r *Reader) SearchWords(ctx context.Context, q WordQuery) (hits []WordHit, behind int64, err error) {
	ranked, behind, err := r.index.Rank(ctx, fulltext.WordQuery{Words: q.Words, Kinds: q.Kinds, Before: q.Before, Most: q.Skip + q.Limit, Choosy: q.Fits != nil})
	if err != nil {
		return nil, 0, err
	}
	hits = []WordHit{}
	passed := 0
	for chunk := range slices.Chunk(ranked, max(q.Skip+q.Limit, 1)) {
		found, err := r.hits(ctx, chunk)
		if err != nil {
			return nil, 0, err
		}
		for _, hit := range found {
			if len(hits) == q.Limit || q.Fits != nil && !q.Fits(hit) {
				continue
			}
			if passed++; passed > q.Skip {
				hits = append(hits, hit)
			}
		}
		if len(hits) == q.Limit {
			break
		}
	}
	return hits, behind, nil
}

// hits reads the content of the documents, in order. It omits documents that the store no
// longer has after an older state was restored.
func (r *Reader) hits(ctx context.Context, documents []fulltext.Ranked) ([]WordHit, error) {
	ids := map[search.Kind][]string{}
	for _, document := range documents {
		ids[document.Kind] = append(ids[document.Kind], document.ID)
	}
	rows, err := r.named(ctx, ids[search.Message])
	if err != nil {
		return nil, err
	}
	revisions, err := r.revisionsNamed(ctx, ids[search.Decision])
	if err != nil {
		return nil, err
	}
	lines, err := r.saidNamed(ctx, ids[search.Run])
	if err != nil {
		return nil, err
	}
	var hits []WordHit
	for _, document := range documents {
		hit := WordHit{Kind: document.Kind, ID: document.ID, At: document.At}
		var found bool
		switch document.Kind {
		case search.Message:
			hit.Message, found = rows[document.ID]
		case search.Decision:
			hit.Decision, found = revisions[document.ID]
		case search.Run:
			hit.Said, found = lines[document.ID]
		}
		if found {
			hits = append(hits, hit)
		}
	}
	return hits, nil
}

// inOrder returns the stored ones of the given messages, in the order of the ids.
func (r *Reader) inOrder(ctx context.Context, ids []string) ([]mail.HistoryRow, error) {
	found, err := r.named(ctx, ids)
	rows := make([]mail.HistoryRow, 0, len(ids))
	for _, id := range ids {
		if row, exists := found[id]; exists {
			rows = append(rows, row)
		}
	}
	return rows, err
}

// named returns the stored ones of the given messages, with their deliveries from the
// store and the archive.
func (r *Reader) named(ctx context.Context, ids []string) (map[string]mail.HistoryRow, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	wanted := make([]mail.HistoryRow, len(ids))
	for i, id := range ids {
		wanted[i].ID = id
	}
	found, err := r.byID(ctx, wanted)
	if err != nil {
		return nil, err
	}
	archive, err := r.archive(ctx)
	var archived map[string]mail.HistoryRow
	if archive != nil && err == nil {
		archived, err = archive.byID(ctx, wanted)
	}
	if errors.Is(err, schema.ErrArchive) {
		err = nil
	}
	for id, row := range archived {
		if local, has := found[id]; has {
			row = local.With(row)
		}
		found[id] = row
	}
	return found, err
}

// revisionsNamed returns the stored ones of the given revisions of decisions.
func (r *Reader) revisionsNamed(ctx context.Context, ids []string) (map[string]decision.Revision, error) {
	found := map[string]decision.Revision{}
	if len(ids) == 0 {
		return found, nil
	}
	all, err := r.Decisions(ctx, decision.Lookup{History: true})
	for _, rev := range all {
		if slices.Contains(ids, rev.ID) {
			found[rev.ID] = rev
		}
	}
	return found, err
}
