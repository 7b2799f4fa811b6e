package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/sqlitex"
)

// Found describes a file, read without any change to it or its folder.
type Found struct {
	Version    int  // user_version
	program    int  // application_id
	Deliveries int  // version of the component "deliveries", 0 if it is missing
	Ways       bool // it has delivery_ways, which version 1 got later
	Remote     int  // version of the component "remote", 0 if it is missing
	Team       bool // it has team_decisions, which version 1 got later
	Withdrawn  bool // it has withdrawn_decisions, which the version got later
	Empty      bool // it has no table
}

// Identify reads the file at path. It fails for a file that this build must not touch,
// and with fs.ErrNotExist for a missing one.
func Identify(ctx context.Context, path string) (Found, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && sqlitex.HasLog(path):
		return Found{}, sqlitex.OrphanLog(path)
	case errors.Is(err, fs.ErrNotExist):
		return Found{}, bridge.WithCause(bridge.NotFound, err, fmt.Sprintf("there is no store at %s", path))
	case err != nil:
		return Found{}, bridge.WithCause(bridge.Storage, err, fmt.Sprintf("the store %s cannot be opened: %v", path, sqlitex.Reason(err)))
	case info.Mode()&fs.ModeSymlink != 0:
		return Found{}, bridge.Errorf(bridge.Storage, "the store %s is a symbolic link: put the file itself there", path)
	case info.IsDir():
		return Found{}, bridge.Errorf(bridge.Storage, "the store %s is a folder, not a file", path)
	case !info.Mode().IsRegular():
		return Found{}, bridge.Errorf(bridge.Storage, "the store %s is not a regular file", path)
	}
	logged := sqlitex.HasLog(path)
	if info.Size() == 0 && logged {
		// SQLite would take the log for a foreign one and drop it.
		return Found{}, bridge.Errorf(bridge.Storage, "the store %s is empty but its log %s-wal is not: restore a backup", path, path)
	}
	return inspectSchema(ctx, path, logged)
}

// inspectSchema reads versions and names. Without a log it opens the file immutable,
// because an ordinary read-only connection creates files next to it.
func inspectSchema(ctx context.Context, path string, logged bool) (Found, error) {
	params := []string{"mode=ro", "_pragma=query_only(1)"}
	if !logged {
		params = append(params, "immutable=1")
	}
	pool, err := sql.Open("sqlite", sqlitex.DSN(path, params...))
	if err != nil {
		return Found{}, fmt.Errorf("opening the store %s: %w", path, err)
	}
	defer pool.Close()
	pool.SetMaxOpenConns(1)
	f, tables, err := Read(ctx, pool)
	if err != nil {
		return Found{}, sqlitex.Error(path, err)
	}
	if err := f.CheckVersion(path); err != nil {
		return Found{}, err
	}
	f.Empty = len(tables) == 0
	return f, CheckOurs(path, f, tables)
}

// Read returns the versions, and the columns of every table by its name. It fails with
// SQLite's error for a file that is damaged or no database.
func Read(ctx context.Context, pool *sql.DB) (f Found, tables map[string]string, err error) {
	if err := pool.QueryRowContext(ctx, "SELECT user_version, application_id FROM pragma_user_version, pragma_application_id").Scan(&f.Version, &f.program); err != nil {
		return f, nil, err
	}
	tables = map[string]string{}
	rows, err := pool.QueryContext(ctx, `SELECT s.name, (SELECT group_concat(name, ' ') FROM pragma_table_info(s.name))
		FROM sqlite_schema s WHERE s.type = 'table' AND s.name NOT LIKE 'sqlite\_%' ESCAPE '\' AND s.sql NOT LIKE 'CREATE VIRTUAL%'`)
	err = sqlitex.Each(rows, err, func(rows *sql.Rows) error {
		var name string
		var columns sql.NullString
		err := rows.Scan(&name, &columns)
		tables[name] = columns.String
		return err
	})
	_, f.Ways = tables["delivery_ways"]
	_, f.Team = tables["team_decisions"]
	_, f.Withdrawn = tables["withdrawn_decisions"]
	if _, ok := tables["bridge_components"]; err == nil && ok {
		const component = "(SELECT ifnull(max(CAST(version AS INTEGER)), 0) FROM bridge_components WHERE name = "
		err = pool.QueryRowContext(ctx, "SELECT "+component+"'deliveries'), "+component+"'remote')").Scan(&f.Deliveries, &f.Remote)
	}
	return f, tables, err
}

// IsUpgraded reports whether the store has everything that this build adds.
func (f Found) IsUpgraded() bool {
	return f.Version == Version && f.Deliveries == DeliveriesVersion && f.Ways && f.Remote == RemoteVersion && f.Team && f.Withdrawn
}

// CheckVersion fails with Unsupported for a version that is newer than this build
// (VER-06), and for one that no build writes.
func (f Found) CheckVersion(path string) error {
	switch {
	case f.Version < 0:
		return bridge.Errorf(bridge.Unsupported, "the store %s has schema version %d, which no Bridge writes: restore a snapshot with `bridge doctor --restore latest`", path, f.Version)
	case f.Version > Version:
		return bridge.Errorf(bridge.Unsupported, "the store %s has schema version %d and this Bridge knows versions up to %d: use a newer Bridge", path, f.Version, Version)
	case f.Deliveries > DeliveriesVersion:
		return bridge.Errorf(bridge.Unsupported, "the store %s has deliveries version %d and this Bridge knows versions up to %d: use a newer Bridge", path, f.Deliveries, DeliveriesVersion)
	case f.Remote > RemoteVersion:
		return bridge.Errorf(bridge.Unsupported, "the store %s has remote version %d and this Bridge knows versions up to %d: use a newer Bridge", path, f.Remote, RemoteVersion)
	}
	return nil
}

// ourProgram is the application_id of a store: none, SQLite's default. Other stores of
// this layout have none either. With a number, every older build and every other program
// of the same layout would find one that it did not write.
const ourProgram = 0

// CheckOurs fails with Unsupported for a database that is not a store: one with tables
// needs our table messages.
func CheckOurs(path string, f Found, tables map[string]string) error {
	if f.program != ourProgram {
		return bridge.Errorf(bridge.Unsupported, "the file %s is not a Bridge store: it belongs to the program with the application id %d (0x%08x)", path, f.program, uint32(f.program))
	}
	if len(tables) == 0 && f.Version == 0 {
		return nil
	}
	for column := range strings.FieldsSeq("id recipient from_id from_name from_agent to_target conversation_id reply_to hop body created_at read_at") {
		if !strings.Contains(" "+tables["messages"]+" ", " "+column+" ") {
			return bridge.Errorf(bridge.Unsupported, "the file %s is not a Bridge store", path)
		}
	}
	return nil
}

// ErrArchive is in every error of an unreadable archive. Queries of the history then use
// the store alone: the doctor reports the damage.
var ErrArchive = errors.New("the archive cannot be read")

// CheckArchive fails with Unsupported for an archive of a newer version.
func CheckArchive(ctx context.Context, path string) error {
	var seen Found
	err := sqlitex.Quietly(ctx, path, true, func(pool *sql.DB) (err error) {
		seen, _, err = Read(ctx, pool)
		return err
	})
	if err == nil && seen.Version > ArchiveVersion {
		err = bridge.Errorf(bridge.Unsupported, "the archive %s has schema version %d and this Bridge knows version %d: use a newer Bridge", path, seen.Version, ArchiveVersion)
	}
	return sqlitex.Error(path, err)
}
