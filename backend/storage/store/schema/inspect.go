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

// Found says what a file is, read without changing it or anything beside it.
type Found struct {
	Version    int  // user_version
	program    int  // application_id
	Deliveries int  // version of our component, 0 when it is not there
	Ways       bool // it has delivery_ways, which came to version 1 later
	Remote     int  // version of the component "remote", 0 when it is not there
	Team       bool // it has team_decisions, which came to version 1 later
	Withdrawn  bool // it has withdrawn_decisions, which came to the version later
	Empty      bool // it has no table
}

// Identify looks at the file at path and refuses what this build must not
// touch. A missing file answers errors.Is(err, fs.ErrNotExist).
func Identify(ctx context.Context, path string) (Found, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && sqlitex.HasLog(path):
		return Found{}, sqlitex.LoneLog(path)
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
		// SQLite would take the log for a stranger's and drop it.
		return Found{}, bridge.Errorf(bridge.Storage, "the store %s is empty but its log %s-wal is not: restore a backup", path, path)
	}
	return inspectSchema(ctx, path, logged)
}

// inspectSchema reads versions and names. Without a log the file is opened
// immutable, because an ordinary read-only connection makes files beside it.
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

// Read returns the versions and the columns of every table by its name.
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

// IsUpgraded reports whether the store has all that this build adds.
func (f Found) IsUpgraded() bool {
	return f.Version == Version && f.Deliveries == DeliveriesVersion && f.Ways && f.Remote == RemoteVersion && f.Team && f.Withdrawn
}

// CheckVersion refuses what is newer than this build (VER-06), and what no step
// of any build leaves.
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

// ourProgram is the application_id of a store: none, as SQLite leaves it. Stores of
// the field have none either, and with a number every older build and every other
// program of the same layout would meet one that it did not write.
const ourProgram = 0

// CheckOurs refuses a database that is not a store: one with tables needs our
// messages among them.
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

// ErrArchive is in every error of an archive that cannot be read. Questions about
// history are then answered from the store alone: the doctor names the damage.
var ErrArchive = errors.New("the archive cannot be read")

// CheckArchive refuses an archive of a newer version.
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
