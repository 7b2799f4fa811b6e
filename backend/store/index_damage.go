package store

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

	"bridge/backend/bridge"
	"bridge/backend/disk"
)

// setAside moves a damaged index away, byte for byte, so that a new one can be
// made. It does so only where the file itself still says that it holds nothing
// but the index: history.db may hold what is nowhere else.
func (x *index) setAside(ctx context.Context, damage error) error {
	if !OnlyIndex(ctx, x.path, false) {
		return bridge.WithCause(bridge.Storage, damage, fmt.Sprintf(
			"the search index %s is damaged, and is not made anew because the file may hold more than the index: restore a snapshot, or move it away yourself", x.path))
	}
	folder := filepath.Join(filepath.Dir(x.path), "archive", "orphaned", fmt.Sprintf("%013d-%s", x.now().UnixMilli(), uuid.NewString()))
	for _, dir := range []string{filepath.Dir(filepath.Dir(folder)), filepath.Dir(folder), folder} {
		if err := disk.MakeDir(dir); err != nil {
			return err
		}
	}
	// The log first: without it the file is older, not another one.
	for _, suffix := range []string{"-wal", "-shm", ""} {
		from := x.path + suffix
		if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := disk.Move(from, filepath.Join(folder, filepath.Base(from))); err != nil {
			return err
		}
	}
	x.log.Warn("the search index was damaged; it is kept and made anew", "kept", folder, "error", damage)
	return nil
}

// OnlyIndex reports whether the history.db at path says that it holds nothing but
// a search index, which can be made anew from the store. One that can not say
// what it holds does not. The file is left as it is, like by Inspect.
func OnlyIndex(ctx context.Context, path string, live bool) bool {
	var names []string
	err := quietly(ctx, path, live, func(pool *sql.DB) (err error) {
		names, err = lines(ctx, pool, "SELECT name FROM sqlite_schema WHERE type = 'table'")
		return err
	})
	foreign := slices.ContainsFunc(names, func(name string) bool {
		return !strings.HasPrefix(name, "search_") && name != "bridge_components"
	})
	return err == nil && !foreign && slices.Contains(names, "search_documents")
}
