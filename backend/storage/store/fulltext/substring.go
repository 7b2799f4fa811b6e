package fulltext

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/schema"
)

// Holds is the condition of a row that contains ?1 and is older than ?2.
const Holds = "ifnull(created_at, 0) < ?2 AND (?1 = '' OR instr(body, ?1) > 0)"

// SubstringQuery selects messages by a piece of text.
type SubstringQuery struct {
	Text   string
	Before int64 // Unix milliseconds, exclusive
	Limit  int
}

// grouped is the result of the groups of the index, and how far the groups reach.
type grouped struct {
	found []sqlitex.Stamp
	upto  map[string]cursor // by source
}

// Substring returns the newest messages that contain a piece of text. It reads only
// candidates, and rows that the groups do not reach yet. usable is false if a full scan
// is better: there is no readable index, or it has no groups yet. It fails if the store
// is unreadable; it ignores an unreadable archive.
func (x *Index) Substring(ctx context.Context, p SubstringQuery) (found []sqlitex.Stamp, usable bool, err error) {
	g, err := x.grouped(ctx, p)
	if isNoIndex(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	// The archive comes last: a row that moves there meanwhile is seen at least once.
	lists := [][]sqlitex.Stamp{g.found}
	for _, from := range slices.Backward(sources) {
		if from.kind != messageDocument {
			continue
		}
		list, err := x.beyond(ctx, from, g.upto[from.name], p)
		if err != nil && !errors.Is(err, schema.ErrArchive) {
			return nil, false, err
		}
		lists = append(lists, list)
	}
	return sqlitex.MergeStamps(lists, p.Limit), true, nil
}

// beyond searches the rows of a source behind a cursor.
func (x *Index) beyond(ctx context.Context, from source, upto cursor, p SubstringQuery) (found []sqlitex.Stamp, err error) {
	err = x.readSource(ctx, from, func(v View) error {
		found, err = sqlitex.ReadStamps(ctx, v, p.Limit, from.beyond, p.Text, p.Before, upto.row)
		return err
	})
	return found, err
}

// errNoIndex is the error of a query that runs better without the index.
var errNoIndex = bridge.Errorf(bridge.Unavailable, "the index has no groups yet")

// isNoIndex reports whether a search can continue without the index: it is missing or
// unreadable.
func isNoIndex(err error) bool {
	code := bridge.CodeOf(err)
	return code == bridge.Unavailable || code == bridge.Storage || code == bridge.Unsupported
}

// messageGroup is a group of the index.
type messageGroup struct {
	first, last, oldest, newest int64
	inOrder                     bool
	upto                        map[string]cursor
}

// grouped queries the groups, those with the newest messages first, until the remaining
// groups cannot change the result.
func (x *Index) grouped(ctx context.Context, p SubstringQuery) (g grouped, err error) {
	err = x.asked(func(a sqlitex.Querier) error {
		groups, err := readGroups(ctx, a)
		if err != nil {
			return err
		}
		if len(groups) == 0 {
			return errNoIndex
		}
		if g.upto, err = x.reliable(ctx, groups); err != nil {
			return err
		}
		slices.SortFunc(groups, func(a, b messageGroup) int { return cmp.Compare(b.newest, a.newest) })
		ongoing := substringSearch{SubstringQuery: p, asker: a, index: x, pattern: patternOf(p.Text), seen: map[string]bool{}}
		for _, group := range groups {
			if ongoing.hasAll(group.newest) {
				break
			}
			if group.oldest >= p.Before {
				continue
			}
			if err := ongoing.search(ctx, group); err != nil {
				return err
			}
		}
		g.found = ongoing.found
		return nil
	})
	return g, err
}

func readGroups(ctx context.Context, a sqlitex.Querier) (groups []messageGroup, err error) {
	rows, err := a.Query(ctx, "SELECT first, last, oldest, newest, in_order, upto FROM search_groups")
	return groups, sqlitex.Each(rows, err, func(rows *sql.Rows) error {
		var g messageGroup
		var upto string
		if err := rows.Scan(&g.first, &g.last, &g.oldest, &g.newest, &g.inOrder, &upto); err != nil {
			return err
		}
		var places map[string][2]any
		if err := json.Unmarshal([]byte(upto), &places); err != nil {
			return damagedIndex{"the places of a group cannot be read"}
		}
		g.upto = map[string]cursor{}
		for source, at := range places {
			row, _ := at[0].(float64)
			id, _ := at[1].(string)
			g.upto[source] = cursor{int64(row), id}
		}
		groups = append(groups, g)
		return nil
	})
}

// reliable returns for each source the furthest cursor of a group whose row still exists.
// Row ids before an existing row are never reused, so every row up to it is in a group.
func (x *Index) reliable(ctx context.Context, groups []messageGroup) (map[string]cursor, error) {
	upto := map[string]cursor{}
	for _, from := range sources {
		var places []cursor
		for _, g := range groups {
			places = append(places, g.upto[from.name])
		}
		slices.SortFunc(places, func(a, b cursor) int { return cmp.Compare(b.row, a.row) })
		for _, at := range slices.Compact(places) {
			exists, err := x.holds(ctx, from, at)
			if err != nil {
				return nil, err
			}
			if exists {
				upto[from.name] = at
				break
			}
		}
	}
	return upto, nil
}

// holds reports whether the row of a cursor is unchanged.
func (x *Index) holds(ctx context.Context, from source, at cursor) (exists bool, err error) {
	err = x.readSource(ctx, from, func(v View) error {
		exists = false
		rows, err := v.Query(ctx, from.rows, at.row, 1)
		return sqlitex.Each(rows, err, func(rows *sql.Rows) error {
			var d sourceRow
			err := rows.Scan(&d.row, sqlitex.Text(&d.id), sqlitex.Number(&d.at), sqlitex.Text(&d.text))
			exists = d.cursor == at
			return err
		})
	})
	return exists, err
}

// substringSearch is one search through the groups.
type substringSearch struct {
	SubstringQuery
	asker   sqlitex.Querier
	index   *Index
	pattern pattern
	found   []sqlitex.Stamp // newest first
	seen    map[string]bool
}

// hasAll reports whether there are enough results that are not older than the remaining
// groups.
func (h *substringSearch) hasAll(newestLeft int64) bool {
	return len(h.found) >= h.Limit && h.found[h.Limit-1].At >= newestLeft
}

// verified is how many candidates are checked together.
const verified = 128

// search searches one group, newest candidates first.
func (h *substringSearch) search(ctx context.Context, g messageGroup) error {
	candidates, err := h.candidates(ctx, g)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(candidates, verified) {
		documents, err := h.documentsOf(ctx, some)
		if err != nil {
			return err
		}
		if err := h.verify(ctx, documents); err != nil {
			return err
		}
		if g.inOrder && len(documents) > 0 && h.hasAll(documents[len(documents)-1].at) {
			return nil
		}
	}
	return nil
}

// candidates returns the documents of a group that have the trigrams, last first.
func (h *substringSearch) candidates(ctx context.Context, g messageGroup) ([]int64, error) {
	size := int(g.last-g.first) + 1
	set, err := h.positions(ctx, g.last, size)
	if err != nil {
		return nil, err
	}
	var found []int64
	for at := size - 1; at >= 0; at-- {
		if set[at/64]&(1<<(at%64)) != 0 {
			found = append(found, g.first+int64(at))
		}
	}
	return found, nil
}

func (h *substringSearch) positions(ctx context.Context, group int64, size int) (positions, error) {
	set := newPositions(size)
	call := func(rows *sql.Rows) error {
		var docs sql.RawBytes
		err := rows.Scan(&docs)
		set.add(docs)
		return err
	}
	if h.pattern.all == nil {
		rows, err := h.asker.Query(ctx, "SELECT docs FROM search_grams WHERE last = ?1 AND gram BETWEEN ?2 AND ?3", group, h.pattern.from, h.pattern.to)
		return set, sqlitex.Each(rows, err, call)
	}
	list, err := json.Marshal(h.pattern.all)
	if err != nil {
		return nil, fmt.Errorf("listing trigrams: %w", err)
	}
	met := 0
	rows, err := h.asker.Query(ctx, "SELECT docs FROM json_each(?2) wanted CROSS JOIN search_grams g ON g.last = ?1 AND g.gram = wanted.value", group, string(list))
	err = sqlitex.Each(rows, err, func(rows *sql.Rows) error {
		if met++; met == 1 {
			return call(rows)
		}
		before := set
		set = newPositions(size)
		err := call(rows)
		set.keep(before)
		return err
	})
	if met < len(h.pattern.all) {
		return newPositions(size), err
	}
	return set, err
}

// documentsOf returns the documents with these numbers, last first.
func (h *substringSearch) documentsOf(ctx context.Context, numbers []int64) (documents []document, err error) {
	list, err := json.Marshal(numbers)
	if err != nil {
		return nil, fmt.Errorf("listing documents: %w", err)
	}
	rows, err := h.asker.Query(ctx, "SELECT d.doc, d.id, d.at FROM json_each(?1) wanted CROSS JOIN search_documents d ON d.doc = wanted.value WHERE d.at < ?2", string(list), h.Before)
	return documents, sqlitex.Each(rows, err, func(rows *sql.Rows) error {
		var m document
		err := rows.Scan(&m.doc, &m.id, &m.at)
		documents = append(documents, m)
		return err
	})
}

// verify adds the documents whose text really contains the piece.
func (h *substringSearch) verify(ctx context.Context, documents []document) error {
	ids := make([]string, len(documents))
	for i, m := range documents {
		ids[i] = m.id
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return fmt.Errorf("listing message ids: %w", err)
	}
	hit := map[string]bool{}
	err = h.index.everywhere(ctx, func(v View) error {
		rows, err := v.Query(ctx, sqlitex.UnionAll(bodies(v, "1", "instr(m.body, ?2) > 0")), string(list), h.Text)
		return sqlitex.Each(rows, err, func(rows *sql.Rows) error {
			var id string
			var number int
			err := rows.Scan(&id, &number)
			hit[id] = true
			return err
		})
	})
	if errors.Is(err, schema.ErrArchive) {
		err = nil
	}
	for _, m := range documents {
		if hit[m.id] && !h.seen[m.id] {
			h.seen[m.id] = true
			h.found = append(h.found, sqlitex.Stamp{ID: m.id, At: m.at})
		}
	}
	slices.SortStableFunc(h.found, func(a, b sqlitex.Stamp) int { return cmp.Compare(b.At, a.At) })
	return err
}
