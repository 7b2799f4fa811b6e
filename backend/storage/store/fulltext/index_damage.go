package fulltext

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/schema"
)

// setAside moves a damaged index away, unchanged, so that a new one can be created. It
// fails with Storage if the file holds more than the index: then the owner must decide.
func (x *Index) setAside(ctx context.Context, damage error) error {
	if HoldsMore(ctx, x.path, false) {
		return bridge.WithCause(bridge.Storage, damage, fmt.Sprintf(
			"the search index %s is damaged, and is not rebuilt because the file holds more than the index: restore a snapshot, or move it away yourself", x.path))
	}
	folder := filepath.Join(filepath.Dir(x.path), "archive", "orphaned", fmt.Sprintf("%013d-%s", x.now().UnixMilli(), uuid.NewString()))
	for _, dir := range []string{filepath.Dir(filepath.Dir(folder)), filepath.Dir(folder), folder} {
		if err := disk.MakeDir(dir); err != nil {
			return err
		}
	}
	// The log first: without it the file is older, but still the same.
	for _, suffix := range []string{"-wal", "-shm", ""} {
		from := x.path + suffix
		if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := disk.Move(from, filepath.Join(folder, filepath.Base(from))); err != nil {
			return err
		}
	}
	x.log.Warn("the search index was damaged; it is kept and rebuilt", "kept", folder, "err", damage)
	return nil
}

// HoldsMore reports whether the history.db at path holds more than a search index, which
// can be rebuilt from the store. A file too damaged to read holds nothing readable.
// HoldsMore reads the file like Inspect, without changing it.
func HoldsMore(ctx context.Context, path string, live bool) bool {
	names, err := tablesOf(ctx, path, live)
	return err != nil && !sqlitex.IsDamage(err) || slices.ContainsFunc(names, isForeign)
}

// OnlyIndex reports whether the history.db at path holds only a search index: the
// stricter check, for a file that is deleted and not set aside.
func OnlyIndex(ctx context.Context, path string, live bool) bool {
	names, err := tablesOf(ctx, path, live)
	return err == nil && slices.Contains(names, "search_documents") && !slices.ContainsFunc(names, isForeign)
}

func isForeign(table string) bool {
	return !strings.HasPrefix(table, "search_") && table != "bridge_components"
}

func tablesOf(ctx context.Context, path string, live bool) (names []string, err error) {
	err = sqlitex.Quietly(ctx, path, live, func(pool *sql.DB) (err error) {
		names, err = sqlitex.Texts(ctx, pool, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'`)
		return err
	})
	return names, err
}

// indexVersion returns the version of the index in a database with the tables, 0 if there
// is none.
func indexVersion(ctx context.Context, pool *sql.DB, tables []string) (version int, err error) {
	if slices.Contains(tables, "bridge_components") {
		err = pool.QueryRowContext(ctx, "SELECT ifnull(max(CAST(version AS INTEGER)), 0) FROM bridge_components WHERE name = 'search'").Scan(&version)
	}
	isIndex := func(table string) bool { return strings.HasPrefix(table, "search_") }
	if err == nil && version == 0 && slices.ContainsFunc(tables, isIndex) {
		err = damagedIndex{"it does not say which version it has"}
	}
	return version, err
}

// tornPairs are pairs of index tables of which neither can be empty alone.
var tornPairs = [][2]string{{"search_documents", "search_words_docsize"}, {"search_groups", "search_grams"}}

// torn returns a damagedIndex if an index with its component lacks a table or an index,
// or one of its tables was emptied.
func torn(ctx context.Context, pool *sql.DB) error {
	missing, err := schema.MissingFrom(ctx, pool, schema.IndexStore)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return damagedIndex{"it lacks " + missing[0].String()}
	}
	var unreadable bool
	err = pool.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM search_groups WHERE NOT iif(json_valid(upto), json_type(upto) = 'object', false))").Scan(&unreadable)
	if err == nil && unreadable {
		err = damagedIndex{"the places of a group cannot be read"}
	}
	if err != nil {
		return err
	}
	for _, pair := range tornPairs {
		for _, tables := range [][2]string{pair, {pair[1], pair[0]}} {
			var alone bool
			err := pool.QueryRowContext(ctx, fmt.Sprintf("SELECT EXISTS (SELECT 1 FROM %s) AND NOT EXISTS (SELECT 1 FROM %s)", tables[0], tables[1])).Scan(&alone)
			if err != nil {
				return err
			}
			if alone {
				return damagedIndex{"its table " + tables[1] + " is empty"}
			}
		}
	}
	return nil
}

// Drop removes the search index from the history.db at path, which no process has open,
// and leaves its other content. The next DB creates the index again. The caller has a
// copy of the file. It fails with Storage if the file cannot be written.
func Drop(ctx context.Context, path string) error {
	pool, err := sql.Open("sqlite", sqlitex.DSN(path, "_txlock=immediate", "_pragma=synchronous(FULL)"))
	if err != nil {
		return sqlitex.Error(path, err)
	}
	defer pool.Close()
	pool.SetMaxOpenConns(1)
	_, err = pool.ExecContext(ctx, `BEGIN IMMEDIATE;
		DROP TABLE IF EXISTS search_words; DROP TABLE IF EXISTS search_documents; DROP TABLE IF EXISTS search_upto;
		DROP TABLE IF EXISTS search_groups; DROP TABLE IF EXISTS search_grams;
		DELETE FROM bridge_components WHERE name = 'search'; COMMIT`)
	return sqlitex.Error(path, err)
}
