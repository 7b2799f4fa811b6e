package sqlitex

import (
	"context"
	"fmt"
)

// Stamp is an id's position in a list, by time.
type Stamp struct {
	ID string
	At int64
}

// NewestStamps runs the queries of id and time, each sorted newest first. It merges
// their rows and returns the first limit different ids. It fails if one of the
// queries does.
func NewestStamps(ctx context.Context, q Querier, limit int, queries []string, args ...any) ([]Stamp, error) {
	lists := make([][]Stamp, len(queries))
	for i, query := range queries {
		var err error
		if lists[i], err = ReadStamps(ctx, q, limit, query, args...); err != nil {
			return nil, err
		}
	}
	return MergeStamps(lists, limit), nil
}

// ReadStamps returns the first limit different ids of a query. An id has few rows,
// but they are not always adjacent. It fails with SQLite's error, or if a row
// cannot be read.
func ReadStamps(ctx context.Context, q Querier, limit int, query string, args ...any) ([]Stamp, error) {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := make([]Stamp, 0, limit)
	seen := make(map[string]bool, limit)
	for len(list) < limit && rows.Next() {
		var s Stamp
		if err := rows.Scan(Text(&s.ID), Number(&s.At)); err != nil {
			return nil, fmt.Errorf("reading a row: %w", err)
		}
		if !seen[s.ID] {
			seen[s.ID] = true
			list = append(list, s)
		}
	}
	return list, rows.Err()
}

// MergeStamps repeatedly takes the newest head of the lists. The order within each
// list stays, even after a clock jump.
func MergeStamps(lists [][]Stamp, limit int) []Stamp {
	merged := make([]Stamp, 0, limit)
	seen := make(map[string]bool, limit)
	for len(merged) < limit {
		newest := -1
		for i, list := range lists {
			if len(list) > 0 && (newest < 0 || list[0].At > lists[newest][0].At) {
				newest = i
			}
		}
		if newest < 0 {
			break
		}
		head := lists[newest][0]
		lists[newest] = lists[newest][1:]
		if !seen[head.ID] {
			seen[head.ID] = true
			merged = append(merged, head)
		}
	}
	return merged
}
