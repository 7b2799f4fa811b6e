package upgrade

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/schema"
)

// maxCopies limits how often a copy is repeated because another process wrote between the
// copy and the lock.
const maxCopies = 10

// migration upgrades a store's schema (VER-01, VER-02, VER-03).
type migration struct {
	Options
	path string
	conn *sql.Conn
	from int
}

// migrate upgrades an older store after copying it; the copy is kept. It does nothing to
// a current store. After an error the store is unchanged.
func migrate(ctx context.Context, path string, is schema.Found, opts Options) error {
	if is.IsUpgraded() {
		return nil
	}
	pool, err := sql.Open("sqlite", sqlitex.WriterDSN(path))
	if err != nil {
		return fmt.Errorf("opening the store %s: %w", path, err)
	}
	defer pool.Close()
	pool.SetMaxOpenConns(1)
	conn, err := pool.Conn(ctx)
	if err != nil {
		return sqlitex.Error(path, err)
	}
	defer conn.Close()
	m := migration{Options: opts, path: path, conn: conn}
	return sqlitex.Error(path, m.run(ctx))
}

func (m *migration) run(ctx context.Context) error {
	backup, err := m.lockWithCopy(ctx)
	if err != nil {
		return err
	}
	err = m.apply(ctx)
	if err == nil {
		return m.at("committed")
	}
	// The caller's context may have caused the failure; the recovery must not depend on it.
	if recoverErr := m.recover(context.WithoutCancel(ctx), backup); recoverErr != nil {
		return bridge.WithCause(bridge.Storage, errors.Join(err, recoverErr), m.failure(err, backup))
	}
	return fmt.Errorf("upgrading the schema from version %d: %w", m.from, err)
}

// failure returns the message of a failed upgrade. A new store has no copy, because it
// held nothing.
func (m *migration) failure(cause error, backup safeCopy) string {
	why := sqlitex.Error(m.path, cause).Error()
	if m.from == 0 && backup.final == "" {
		return fmt.Sprintf("no new store could be made: %s. Nothing was in it yet: mend that and start Bridge again", why)
	}
	return fmt.Sprintf("upgrading the store %s failed, and nothing was changed; its copy is kept%s: %s", m.path, backup.where(), why)
}

// lockWithCopy returns with the writer's lock held, in a transaction, and with a
// published copy of exactly the locked state.
func (m *migration) lockWithCopy(ctx context.Context) (safeCopy, error) {
	for range maxCopies {
		before, err := m.number(ctx, "PRAGMA data_version")
		if err != nil {
			return safeCopy{}, err
		}
		pending, err := m.copyStore(ctx)
		if err != nil {
			return safeCopy{}, err
		}
		backup, same, err := m.lockAndPublish(ctx, pending, before)
		if err != nil || same {
			return backup, err
		}
		m.Log.Info("another program wrote to the store during its copy; copying again", "store", m.path)
	}
	return safeCopy{}, bridge.Errorf(bridge.Storage, "the store %s cannot be upgraded while another program keeps writing to it", m.path)
}

// lockAndPublish takes the writer's lock. It publishes the copy if no other program has
// committed since the data version was read; otherwise it releases both.
func (m *migration) lockAndPublish(ctx context.Context, pending safeCopy, before int) (backup safeCopy, same bool, err error) {
	if err = m.at("copied"); err == nil {
		err = m.exec(ctx, "BEGIN IMMEDIATE")
	}
	if err != nil {
		return safeCopy{}, false, errors.Join(err, pending.discard())
	}
	backup = pending
	after, err := m.number(ctx, "PRAGMA data_version")
	if err == nil {
		err = m.at("locked")
	}
	if same = after == before; err == nil && same {
		backup, err = m.publish(pending)
	}
	if err == nil && same {
		return backup, true, nil
	}
	if backup.pending != "" {
		err = errors.Join(err, backup.discard())
	}
	return safeCopy{}, false, errors.Join(err, m.exec(context.WithoutCancel(ctx), "ROLLBACK"))
}

// apply runs the missing steps in a savepoint and commits.
func (m *migration) apply(ctx context.Context) error {
	if err := m.at("before savepoint"); err != nil {
		return err
	}
	if err := m.exec(ctx, "SAVEPOINT upgrade"); err != nil {
		return err
	}
	before, err := m.census(ctx)
	if err != nil {
		return err
	}
	for version := m.from + 1; version <= schema.Version; version++ {
		if err := m.runFile(ctx, fmt.Sprint(version)); err != nil {
			return err
		}
	}
	for _, part := range schema.LaterParts() {
		if err := m.runFile(ctx, part); err != nil {
			return err
		}
	}
	if err := m.verify(ctx, before); err != nil {
		return err
	}
	if err := m.exec(ctx, fmt.Sprintf("PRAGMA user_version = %d", schema.Version)); err != nil {
		return err
	}
	if err := m.at("verified"); err != nil {
		return err
	}
	if err := m.exec(ctx, "RELEASE upgrade"); err != nil {
		return err
	}
	if err := m.at("before commit"); err != nil {
		return err
	}
	return m.exec(ctx, "COMMIT")
}

func (m *migration) runFile(ctx context.Context, name string) error {
	text, err := schema.Script(name)
	if err != nil {
		return err
	}
	if err := m.exec(ctx, text); err != nil {
		return fmt.Errorf("schema step %s: %w", name, err)
	}
	return m.at("step " + name)
}

// census counts the rows of every table and the broken references, for comparison after
// the steps: no step removes or changes a row.
func (m *migration) census(ctx context.Context) (map[string]int, error) {
	names, err := m.tables(ctx)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, name := range names {
		if counts[name], err = m.number(ctx, "SELECT count(*) FROM "+sqlitex.QuoteName(name)); err != nil {
			return nil, err
		}
	}
	rows, err := m.conn.QueryContext(ctx, "PRAGMA foreign_key_check")
	err = sqlitex.Each(rows, err, func(*sql.Rows) error {
		counts[brokenReferences]++
		return nil
	})
	return counts, err
}

// brokenReferences is the census's key for rows of foreign_key_check; no table has an
// empty name.
const brokenReferences = ""

func (m *migration) verify(ctx context.Context, before map[string]int) error {
	after, err := m.census(ctx)
	if err != nil {
		return err
	}
	if after[brokenReferences] > before[brokenReferences] {
		return fmt.Errorf("%s would be broken", bridge.Counted(after[brokenReferences]-before[brokenReferences], "reference"))
	}
	for name, count := range before {
		if name == "bridge_components" && after[name] > count {
			continue // another program's components, and ours
		}
		if name != brokenReferences && after[name] != count {
			return fmt.Errorf("the table %s would have %s, not %d", name, bridge.Counted(after[name], "row"), count)
		}
	}
	return nil
}

// recover restores everything under the held lock: the savepoint restores the schema, the
// copy restores the rows. If that fails too, it rolls back the whole transaction.
func (m *migration) recover(ctx context.Context, backup safeCopy) error {
	err := m.exec(ctx, "ROLLBACK TO upgrade")
	if err == nil {
		err = m.exec(ctx, "RELEASE upgrade")
	}
	if err == nil {
		err = m.at("schema restored")
	}
	if err == nil {
		err = m.restore(ctx, backup)
	}
	if err == nil {
		err = m.exec(ctx, "COMMIT")
	}
	if err != nil {
		_ = m.exec(ctx, "ROLLBACK") // SQLite may have ended the transaction already
	}
	return err
}

func (m *migration) at(name string) error { return m.Options.at(name, m.conn) }

func (m *migration) exec(ctx context.Context, script string) error {
	_, err := m.conn.ExecContext(ctx, script)
	return err
}

func (m *migration) number(ctx context.Context, query string) (n int, err error) {
	err = m.conn.QueryRowContext(ctx, query).Scan(&n)
	return n, err
}

// tables returns the tables that hold rows; the rows of a virtual table are in other
// tables.
func (m *migration) tables(ctx context.Context) ([]string, error) {
	var names []string
	rows, err := m.conn.QueryContext(ctx, `SELECT name FROM sqlite_schema
		WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' AND name NOT LIKE 'sqlite\_stat%' ESCAPE '\' ORDER BY name`)
	err = sqlitex.Each(rows, err, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		names = append(names, name)
		return err
	})
	return names, err
}
