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

// standIn opens a store that lost tables with a sidecar, as with an older schema: the
// sidecar holds their data until a snapshot is restored. It does not recreate the tables,
// so that the doctor keeps reporting them. It fails with Storage for a table that lost
// columns.
func standIn(ctx context.Context, path string, missing []schema.Lack, opts Options) (sidecar string, err error) {
	var tables, changed []string
	for _, lack := range missing {
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

// complete recreates what a store lacks without loss of data: indexes, keys and triggers.
// What cannot be created stays missing; the doctor reports it.
func complete(ctx context.Context, path string, opts Options) error {
	missing, err := schema.Lacks(ctx, path, schema.PrimaryStore, true)
	missing = slices.DeleteFunc(missing, schema.Lack.IsData)
	if err != nil || len(missing) == 0 {
		return err
	}
	pool, err := sql.Open("sqlite", sqlitex.WriterDSN(path))
	if err != nil {
		return fmt.Errorf("opening the store %s: %w", path, err)
	}
	defer pool.Close()
	pool.SetMaxOpenConns(1)
	for _, lack := range missing {
		err := completeOne(ctx, pool, lack)
		if sqlitex.IsDiskError(err) || ctx.Err() != nil {
			return errors.Join(sqlitex.Error(path, err), ctx.Err())
		}
		opts.Log.Warn("the store lacked a part of its schema that holds no data", "store", path, "lacked", lack.String(), "made anew", err == nil, "err", err)
	}
	return nil
}

// completeOne replaces whatever has the name of the missing item.
func completeOne(ctx context.Context, pool *sql.DB, lack schema.Lack) error {
	drop := ""
	if lack.Kind != schema.LacksKey {
		drop = "DROP " + strings.ToUpper(string(lack.Kind)) + " IF EXISTS " + sqlitex.QuoteName(lack.Name) + ";"
	}
	_, err := pool.ExecContext(ctx, "BEGIN IMMEDIATE;"+drop+lack.SQL+";COMMIT")
	if err != nil {
		_, _ = pool.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") // no effect if it did not begin
	}
	return err
}
