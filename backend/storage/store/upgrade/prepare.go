// Package upgrade prepares bridge.db for opening. A new store gets its schema. An older
// one is upgraded after a verified copy, and gets the data of its sidecar. While older
// programs of the home run, their store keeps its schema. The additional data of this
// build is then in compat.db next to it. The same file replaces tables that a store has
// lost.
package upgrade

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"log/slog"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/schema"
)

// Options configures Prepare. Now and Log are required.
type Options struct {
	Now func() time.Time
	Log *slog.Logger
	// OldestReader is the newest schema version that every live program of the home can
	// read; 0 if none is older than this build (VER-04).
	OldestReader int
	// Existing is set if there must be a store: if it is gone, none is created.
	Existing bool
	// Step, if set, is called at each named point of an upgrade, with the migrating
	// connection; its error stops the upgrade there.
	Step func(name string, on *sql.Conn) error
}

func (o Options) at(name string, on *sql.Conn) error {
	if o.Step == nil {
		return nil
	}
	return o.Step(name, on)
}

// Ready states how to open a store.
type Ready struct {
	Version int    // of the schema in force
	Sidecar string // the sidecar of a store that keeps its schema, "" for none
}

// Prepare prepares the store at path for opening. It creates a missing store, and
// upgrades an older schema after a verified copy (VER-01, VER-02). If it refuses a store,
// that stays unchanged (VER-06). While an older program runs, it defers the upgrade of an
// older store (VER-04). It fails with Unsupported for a newer or foreign file, and with
// Storage if the file is unreadable or Existing is set and it is gone.
func Prepare(ctx context.Context, path string, opts Options) (ready Ready, err error) {
	is, err := schema.Identify(ctx, path)
	made := errors.Is(err, fs.ErrNotExist)
	if opts.Existing && (made || err == nil && is.Empty) {
		return ready, errVanished(path)
	}
	if made {
		is.Empty, err = true, sqlitex.CreateEmpty(path)
	}
	if err != nil {
		return ready, err
	}
	if made {
		defer func() { err = sqlitex.DropEmpty(path, err) }()
	}
	if opts.defers(is) {
		sidecar := SidecarPath(path)
		return Ready{is.Version, sidecar}, prepareSidecar(ctx, sidecar, is.Version)
	}
	sidecar, err := upgradeWhole(ctx, path, is, opts)
	return Ready{schema.Version, sidecar}, err
}

// errVanished returns the error for a store that existed and is gone: no new one is
// created until the owner decides.
func errVanished(path string) error {
	return bridge.Errorf(bridge.Storage, "the store %s was there a moment ago and is gone or empty now: nothing was made in its place", path)
}

// upgradeWhole upgrades the store and merges the sidecar that older programs required.
// sidecar is the path of the sidecar of a store that lost tables.
func upgradeWhole(ctx context.Context, path string, is schema.Found, opts Options) (sidecar string, err error) {
	if !is.Empty { // an upgrade would create empty tables instead of lost ones
		missing, err := schema.Lacks(ctx, path, schema.PrimaryStore, true)
		if err == nil {
			sidecar, err = standIn(ctx, path, missing, opts)
		}
		if err != nil || sidecar != "" {
			return sidecar, err
		}
	}
	if err := migrate(ctx, path, is, opts); err != nil {
		return "", err
	}
	if !is.Empty {
		if err := complete(ctx, path, opts); err != nil {
			return "", err
		}
	}
	return "", carryOver(ctx, path, opts)
}
