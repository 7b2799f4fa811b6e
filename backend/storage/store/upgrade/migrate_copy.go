package upgrade

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/schema"
)

// safeCopy is what is kept of a store before its schema changes: a whole copy next to it.
// Before the additive step 8 to 9 it is a snapshot of its schema and small tables. The
// zero value means that there is nothing to keep.
type safeCopy struct {
	pending  string // "" if nothing had to be copied
	final    string // the name under which it is published
	complete bool
}

func (c safeCopy) where() string {
	if c.final == "" {
		return ""
	}
	return " as " + c.final
}

// discard removes an unpublished copy: the store itself still has all its data.
func (c safeCopy) discard() error {
	if c.pending == "" {
		return nil
	}
	return os.Remove(c.pending)
}

// copyStore copies the store to a pending name and checks the copy. An empty store and
// one whose schema version stays need no copy.
func (m *migration) copyStore(ctx context.Context) (safeCopy, error) {
	var err error
	if m.from, err = m.number(ctx, "PRAGMA user_version"); err != nil {
		return safeCopy{}, err
	}
	names, err := m.tables(ctx)
	if err != nil || len(names) == 0 || m.from == schema.Version {
		return safeCopy{}, err
	}
	if m.from == schema.Version-1 {
		return m.snapshotMetadata(ctx, names)
	}
	return m.copyWhole(ctx)
}

func (m *migration) copyWhole(ctx context.Context) (safeCopy, error) {
	final := fmt.Sprintf("%s.backup-%d-to-%d-%s", m.path, m.from, schema.Version, stampName(m.Now()))
	backup := safeCopy{pending: pendingName(final), final: final, complete: true}
	if err := sqlitex.CreateEmpty(backup.pending); err != nil {
		return safeCopy{}, err
	}
	err := m.conn.Raw(func(driver any) error { return backUp(driver, backup.pending) })
	if err == nil {
		err = m.at("copy written")
	}
	if err == nil {
		err = checkCopy(ctx, backup.pending, m.from)
	}
	if err == nil {
		err = sqlitex.SyncFile(backup.pending)
	}
	if err != nil {
		return safeCopy{}, errors.Join(fmt.Errorf("copying the store before its upgrade: %w", err), backup.discard())
	}
	return backup, nil
}

// backUp copies every page as one consistent state; other programs may read and write
// meanwhile.
func backUp(driver any, target string) error {
	source, ok := driver.(interface {
		NewBackup(string) (*sqlite.Backup, error)
	})
	if !ok {
		return fmt.Errorf("the driver %T cannot back up", driver)
	}
	backup, err := source.NewBackup("file:" + sqlitex.EscapePath(target))
	if err != nil {
		return err
	}
	_, err = backup.Step(-1)
	return errors.Join(err, backup.Finish())
}

// checkCopy reads the whole copy without creating files next to it.
func checkCopy(ctx context.Context, path string, version int) error {
	pool, err := sql.Open("sqlite", sqlitex.DSN(path, "mode=ro", "immutable=1"))
	if err != nil {
		return err
	}
	defer pool.Close()
	var verdict string
	if err := pool.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&verdict); err != nil {
		return err
	}
	if verdict != "ok" {
		return bridge.Errorf(bridge.Storage, "the store is damaged, so it is not upgraded: %s", verdict)
	}
	var copied int
	if err := pool.QueryRowContext(ctx, "PRAGMA user_version").Scan(&copied); err != nil {
		return err
	}
	if copied != version {
		return fmt.Errorf("the copy has version %d, not %d", copied, version)
	}
	return nil
}

// publish renames the copy to its final name. It runs under the store's lock, so the copy
// is exactly what is upgraded. The returned copy has no pending file.
func (m *migration) publish(backup safeCopy) (safeCopy, error) {
	if backup.pending == "" {
		return backup, m.at("copy published")
	}
	wanted := backup.final
	err := disk.Publish(backup.pending, backup.final)
	for n := 2; errors.Is(err, fs.ErrExist); n++ {
		ext := filepath.Ext(wanted)
		backup.final = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(wanted, ext), n, ext)
		err = disk.Publish(backup.pending, backup.final)
	}
	if err != nil {
		return backup, err
	}
	m.Log.Info("the store was copied before its upgrade", "copy", backup.final, "whole", backup.complete)
	backup.pending = ""
	return backup, m.at("copy published")
}

// MetadataSnapshot is the file kept before the additive step 8 to 9 (VER-03).
type MetadataSnapshot struct {
	Kind       string                `json:"kind"` // always "schema-and-metadata"
	FullBackup bool                  `json:"fullBackup"`
	Note       string                `json:"note"`
	Store      string                `json:"store"`
	From       int                   `json:"from"`
	To         int                   `json:"to"`
	CreatedAt  int64                 `json:"createdAt"` // Unix milliseconds
	Schema     []string              `json:"schema"`    // SQL, in the order of creation
	RowCounts  map[string]int        `json:"rowCounts"`
	Tables     map[string][][]string `json:"tables"` // SQL literals, the first row holds the column names
}

const snapshotNote = "This is not a full backup: it holds the schema and the identity tables, no messages, no decisions and no history."

// identityTables are small, and step 9 adds to them.
var identityTables = []string{"session_bindings", "peer_names", "peer_name_owners"}

func (m *migration) snapshotMetadata(ctx context.Context, names []string) (safeCopy, error) {
	snapshot := MetadataSnapshot{
		Kind: "schema-and-metadata", Note: snapshotNote, Store: filepath.Base(m.path), From: m.from, To: schema.Version,
		CreatedAt: m.Now().UnixMilli(), RowCounts: map[string]int{}, Tables: map[string][][]string{},
	}
	var err error
	if snapshot.Schema, err = m.texts(ctx, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid"); err != nil {
		return safeCopy{}, err
	}
	for _, name := range names {
		if snapshot.RowCounts[name], err = m.number(ctx, "SELECT count(*) FROM "+sqlitex.QuoteName(name)); err != nil {
			return safeCopy{}, err
		}
	}
	for _, name := range identityTables {
		if snapshot.Tables[name], err = m.literals(ctx, name); err != nil {
			return safeCopy{}, err
		}
	}
	dir := filepath.Join(filepath.Dir(m.path), ".migration-snapshots")
	if err := disk.MakeDir(dir); err != nil {
		return safeCopy{}, err
	}
	final := filepath.Join(dir, fmt.Sprintf("%s.schema-and-metadata-%d-to-%d-%s.json", filepath.Base(m.path), m.from, schema.Version, stampName(m.Now())))
	return m.writeSnapshot(snapshot, safeCopy{pending: pendingName(final), final: final})
}

func (m *migration) writeSnapshot(snapshot MetadataSnapshot, backup safeCopy) (safeCopy, error) {
	data, err := json.MarshalIndent(snapshot, "", "  ")
	if err != nil {
		return safeCopy{}, fmt.Errorf("describing the store before its upgrade: %w", err)
	}
	if err := disk.WriteNew(backup.pending, data, disk.PrivateFile); err != nil {
		return safeCopy{}, err
	}
	if err := m.at("copy written"); err != nil {
		return safeCopy{}, errors.Join(err, backup.discard())
	}
	return backup, nil
}

// literals returns a table's rows as SQL literals after a row of column names.
func (m *migration) literals(ctx context.Context, table string) ([][]string, error) {
	columns, err := m.texts(ctx, "SELECT name FROM pragma_table_info('"+table+"') ORDER BY cid")
	if err != nil || len(columns) == 0 {
		return nil, err
	}
	quoted := make([]string, len(columns))
	for i, column := range columns {
		quoted[i] = "quote(" + sqlitex.QuoteName(column) + ")"
	}
	all := [][]string{columns}
	rows, err := m.conn.QueryContext(ctx, "SELECT "+strings.Join(quoted, ", ")+" FROM "+table) //nolint:gosec // names of the store's own tables and columns, quoted
	err = sqlitex.Each(rows, err, func(rows *sql.Rows) error {
		cells := make([]string, len(columns))
		into := make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		err := rows.Scan(into...)
		all = append(all, cells)
		return err
	})
	return all, err
}

func (m *migration) texts(ctx context.Context, query string) ([]string, error) {
	var texts []string
	rows, err := m.conn.QueryContext(ctx, query)
	err = sqlitex.Each(rows, err, func(rows *sql.Rows) error {
		var text string
		err := rows.Scan(&text)
		texts = append(texts, text)
		return err
	})
	return texts, err
}

// restore compares every table with the whole copy and writes back the rows of those that
// differ. A metadata snapshot has no rows to compare.
func (m *migration) restore(ctx context.Context, backup safeCopy) error {
	if !backup.complete {
		return nil
	}
	if _, err := m.conn.ExecContext(ctx, "ATTACH DATABASE ? AS kept", "file:"+sqlitex.EscapePath(backup.final)+"?mode=ro&immutable=1"); err != nil {
		return fmt.Errorf("opening the copy %s: %w", backup.final, err)
	}
	names, err := m.tables(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := m.restoreTable(ctx, sqlitex.QuoteName(name)); err != nil {
			return fmt.Errorf("restoring the table %s: %w", name, err)
		}
	}
	return nil
}

func (m *migration) restoreTable(ctx context.Context, name string) error {
	differs, err := m.number(ctx, fmt.Sprintf(`SELECT (SELECT count(*) FROM main.%[1]s) <> (SELECT count(*) FROM kept.%[1]s)
		OR EXISTS (SELECT * FROM main.%[1]s EXCEPT SELECT * FROM kept.%[1]s)
		OR EXISTS (SELECT * FROM kept.%[1]s EXCEPT SELECT * FROM main.%[1]s)`, name))
	if err != nil || differs == 0 {
		return err
	}
	return m.exec(ctx, fmt.Sprintf("DELETE FROM main.%[1]s; INSERT INTO main.%[1]s SELECT * FROM kept.%[1]s", name))
}

// pendingName returns the name of an unfinished file next to final, in the form that the
// doctor knows.
func pendingName(final string) string {
	return filepath.Join(filepath.Dir(final), "."+filepath.Base(final)+".bridge-tmp-"+rand.Text()[:10])
}

func stampName(at time.Time) string { return at.UTC().Format("20060102T150405.000Z") }
