package store

import (
	"context"
	"fmt"

	"bridge/backend/sqlitex"
)

// stamp is an id's place in a list, by its time.
type stamp struct {
	ID string
	At int64
}

// newestStamps merges the lists that the queries of id and time give, each newest
// first, and returns the first limit different ids.
func newestStamps(ctx context.Context, q sqlitex.Querier, limit int, queries []string, args ...any) ([]stamp, error) {
	lists := make([][]stamp, len(queries))
	for i, query := range queries {
		var err error
		if lists[i], err = readStamps(ctx, q, limit, query, args...); err != nil {
			return nil, err
		}
	}
	return mergeStamps(lists, limit), nil
}

// readStamps reads the first limit different ids: rows of one id are few but not
// always side by side.
func readStamps(ctx context.Context, q sqlitex.Querier, limit int, query string, args ...any) ([]stamp, error) {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := make([]stamp, 0, limit)
	seen := make(map[string]bool, limit)
	for len(list) < limit && rows.Next() {
		var s stamp
		if err := rows.Scan(sqlitex.Text(&s.ID), sqlitex.Number(&s.At)); err != nil {
			return nil, fmt.Errorf("reading a row: %w", err)
		}
		if !seen[s.ID] {
			seen[s.ID] = true
			list = append(list, s)
		}
	}
	return list, rows.Err()
}

// mergeStamps takes the newest head of the lists again and again. The order within
// each list stays, even where a clock jumped.
func mergeStamps(lists [][]stamp, limit int) []stamp {
	merged := make([]stamp, 0, limit)
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
