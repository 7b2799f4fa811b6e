package transfer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/schema"
)

// VerifyStart reads from the store at path what the start of a broker reads, and nothing
// else: the end of the messages and the known sessions. It leaves the file and its folder
// unchanged. live is set if a process may be writing. It fails with Storage if one of these
// parts is damaged. Anything else, also a missing file or an unreadable schema, is left to
// the start.
func VerifyStart(ctx context.Context, path string, live bool) error {
	err := sqlitex.Quietly(ctx, path, live, func(pool *sql.DB) error {
		_, tables, err := schema.Read(ctx, pool)
		if err != nil {
			return nil //nolint:nilerr // nothing of the file can be read: the start reports that itself
		}
		on := sqlitex.OnPool(pool)
		if err := damaged("its messages", schema.VerifyCatchUp(ctx, on)); err != nil {
			return err
		}
		_, seen := tables["peer_last_seen"]
		return damaged("the known sessions", schema.VerifyPeers(ctx, on, seen))
	})
	var part *damagedPart
	if errors.As(err, &part) {
		return bridge.WithCause(bridge.Storage, err, fmt.Sprintf("the store %s is damaged: Bridge cannot read %s", path, part.name))
	}
	return ctx.Err()
}

// damagedPart is a damaged part of a store.
type damagedPart struct {
	name  string
	cause error
}

func (p *damagedPart) Error() string { return p.name + ": " + p.cause.Error() }
func (p *damagedPart) Unwrap() error { return p.cause }

// damaged returns a damagedPart if err is about damage, or else nil: a missing table, for
// example, is no damage of the file.
func damaged(name string, err error) error {
	if !sqlitex.IsDamage(err) {
		return nil
	}
	return &damagedPart{name, err}
}
