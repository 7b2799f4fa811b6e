// Package upgrade makes bridge.db ready to be opened: a new one gets its schema,
// an older one is brought up to date after a verified copy, and takes in what was
// kept beside it. While older programs of the home are alive their store keeps
// its schema, and what this build needs beyond it is in compat.db beside it; the
// same file stands in for tables that a store has lost.
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

// Options are what Prepare needs from outside. Now and Log are required.
type Options struct {
	Now func() time.Time
	Log *slog.Logger
	// OldestReader is the newest schema version that every live program of the
	// home can read; 0 when none is older than this build (VER-04).
	OldestReader int
	// Existing says that there is a store: none is made, should it be gone.
	Existing bool
	// Step, when set, is told each named point of an upgrade, with the connection
	// that migrates; its error stops the upgrade there.
	Step func(name string, on *sql.Conn) error
}

func (o Options) at(name string, on *sql.Conn) error {
	if o.Step == nil {
		return nil
	}
	return o.Step(name, on)
}

// Ready says how a store is to be opened.
type Ready struct {
	Version int    // of the schema in force
	Sidecar string // the sidecar of a store that keeps its schema, "" for none
}

// Prepare makes the store at path ready to be opened: it is created when
// there is none, and upgraded after a verified copy when its schema is older
// (VER-01, VER-02). What is refused is left unchanged (VER-06). While an older
// program is alive, the upgrade of an older store is deferred (VER-04).
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

// errVanished is for a store that was there and is not any more: its place stays
// empty until its owner says otherwise.
func errVanished(path string) error {
	return bridge.Errorf(bridge.Storage, "the store %s was there a moment ago and is gone or empty now: nothing was made in its place", path)
}

// upgradeWhole upgrades the store and brings in what was kept beside it while
// older programs read it. sidecar is the sidecar of a store that lost tables.
func upgradeWhole(ctx context.Context, path string, is schema.Found, opts Options) (sidecar string, err error) {
	if !is.Empty { // an upgrade would make empty tables in the place of lost ones
		lacks, err := schema.Lacks(ctx, path, schema.PrimaryStore, true)
		if err == nil {
			sidecar, err = standIn(ctx, path, lacks, opts)
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
