package store

import (
	"context"
	"database/sql"
	"errors"

	"bridge/backend/bridge"
	"bridge/backend/sqlitex"
)

// errArchive is in every error of an archive that can not be read. Questions about
// history are then answered from the store alone: the doctor names the damage.
var errArchive = errors.New("the archive can not be read")

// checkArchive refuses an archive of a newer version.
func checkArchive(ctx context.Context, path string) error {
	var seen found
	err := sqlitex.Quietly(ctx, path, true, func(pool *sql.DB) (err error) {
		seen, _, err = readSchema(ctx, pool)
		return err
	})
	if err == nil && seen.version > ArchiveVersion {
		err = bridge.Errorf(bridge.Unsupported, "the archive %s has schema version %d and this Bridge knows version %d: use a newer Bridge", path, seen.version, ArchiveVersion)
	}
	return sqlitex.Error(path, err)
}
