package upgrade

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/schema"
)

// standIn opens what a store that lost tables still is: what belongs in them is in
// the sidecar, as beside an older schema, until a snapshot is restored. Nothing
// is made in their place, so that the doctor goes on naming what was lost. A table
// that lost columns cannot be stood in for.
func standIn(ctx context.Context, path string, lacks []schema.Lack, opts Options) (sidecar string, err error) {
	var tables, changed []string
	for _, lack := range lacks {
		switch {
		case lack.Kept:
		case lack.Kind == schema.LacksTable:
			tables = append(tables, lack.Table)
		case lack.Kind == schema.LacksColumn:
			changed = append(changed, lack.String())
		}
	}
	if len(changed) > 0 {
		return "", bridge.Errorf(bridge.Storage, "the store %s lacks what its version has: %s. Restore a snapshot with `bridge doctor --restore latest`; `bridge doctor` says more",
			path, strings.Join(changed, ", "))
	}
	if len(tables) == 0 {
		return "", nil
	}
	opts.Log.Error("the store has lost tables; everything else goes on, and what belongs in them is kept beside it until a snapshot is restored", "store", path, "lost", tables)
	return SidecarPath(path), prepareSidecar(ctx, SidecarPath(path), 1)
}

// complete makes anew what a store lacks without having lost anything by it:
// indexes, keys and triggers. What cannot be made stays lacking; the doctor says so.
func complete(ctx context.Context, path string, opts Options) error {
	lacks, err := schema.Lacks(ctx, path, schema.PrimaryStore, true)
	lacks = slices.DeleteFunc(lacks, schema.Lack.IsData)
	if err != nil || len(lacks) == 0 {
		return err
	}
	pool, err := sql.Open("sqlite", sqlitex.WriterDSN(path))
	if err != nil {
		return fmt.Errorf("opening the store %s: %w", path, err)
	}
	defer pool.Close()
	pool.SetMaxOpenConns(1)
	for _, lack := range lacks {
		err := completeOne(ctx, pool, lack)
		if sqlitex.IsDiskError(err) || ctx.Err() != nil {
			return errors.Join(sqlitex.Error(path, err), ctx.Err())
		}
		opts.Log.Warn("the store lacked a part of its schema that holds no data", "store", path, "lacked", lack.String(), "made anew", err == nil, "err", err)
	}
	return nil
}

// completeOne puts the promised one in the place of whatever has its name.
func completeOne(ctx context.Context, pool *sql.DB, lack schema.Lack) error {
	drop := ""
	if lack.Kind != schema.LacksKey {
		drop = "DROP " + strings.ToUpper(string(lack.Kind)) + " IF EXISTS " + sqlitex.QuoteName(lack.Name) + ";"
	}
	_, err := pool.ExecContext(ctx, "BEGIN IMMEDIATE;"+drop+lack.SQL+";COMMIT")
	if err != nil {
		_, _ = pool.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") // nothing where it did not begin
	}
	return err
}
