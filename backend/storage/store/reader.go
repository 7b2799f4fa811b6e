package store

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/cache"
	"bridge/backend/storage/store/fulltext"
	"bridge/backend/storage/store/schema"
	"bridge/backend/storage/store/upgrade"
)

// Reader reads bridge.db and cannot change it: its connections are read-only and it has
// no method that writes (DEC-19). It works with or without a live broker, on every schema
// version up to schema.Version. Tables that an older version lacks are returned as empty
// lists. Its methods may be called concurrently.
type Reader struct {
	path string
	own  bool // in the process of the writer: the schema is complete
	file *sqlitex.ReadOnly

	index *fulltext.Index // nil if there is none
	cache cache.ReadCache[Peer]

	archiveMu sync.Mutex
	archived  *Reader // of the archive; nil until history needs it
}

// OpenReader opens the store at path for reading, without migration. It fails with
// fs.ErrNotExist if there is no file, and with bridge.Unsupported for a newer or foreign
// file.
func OpenReader(ctx context.Context, path string) (*Reader, error) {
	if _, err := schema.Identify(ctx, path); err != nil {
		return nil, err
	}
	return &Reader{path: path, file: sqlitex.NewReadOnly(path, upgrade.Attach(upgrade.SidecarPath(path)), false)}, nil
}

// Close closes the reader's connections. Later reads fail with Unavailable.
func (r *Reader) Close() error {
	return errors.Join(r.file.Close(), r.closeArchive())
}

// read runs ask with a view of the store. ask may run again and must reset its results.
func (r *Reader) read(ctx context.Context, ask func(view) error) error {
	err := r.file.Read(ctx, func(pool *sqlitex.ReadPool) (err error) {
		v := view{pool, fullLayout}
		if !r.own {
			v.layout, err = readLayout(ctx, pool, r.path)
		}
		if err != nil {
			return err
		}
		return ask(v)
	})
	return ofArchive(r.path, err)
}

// view is the state of the store that one query sees.
type view struct {
	*sqlitex.ReadPool
	layout layout
}

// layout states which tables the schema has; a Reader may read any version.
type layout struct {
	messages, archive, stages, ways, peers, decisions, receipts, names, seen, records, outbox, imports, team, withdrawn bool

	brief bool // only the beginning of a body is needed
}

var fullLayout = layout{
	messages: true, archive: true, stages: true, ways: true, peers: true, decisions: true, receipts: true, names: true, seen: true, records: true,
	outbox: true, imports: true, team: true, withdrawn: true,
}

func readLayout(ctx context.Context, q sqlitex.Querier, path string) (layout, error) {
	var l layout
	names := map[string]*bool{
		"messages": &l.messages, "archived_messages": &l.archive, "delivery_stages": &l.stages, "delivery_ways": &l.ways, "message_peers_upto": &l.peers,
		"decisions": &l.decisions, "decision_deliveries": &l.receipts, "peer_names": &l.names, "peer_last_seen": &l.seen,
		"conversation_records": &l.records, "remote_outbox": &l.outbox, "remote_decisions": &l.imports, "team_decisions": &l.team, "withdrawn_decisions": &l.withdrawn,
	}
	var version int
	rows, err := q.Query(ctx, "SELECT name, user_version FROM pragma_user_version LEFT JOIN pragma_table_list ON type = 'table'")
	err = sqlitex.Each(rows, err, func(rows *sql.Rows) error {
		var name sql.NullString
		if err := rows.Scan(&name, &version); err != nil {
			return err
		}
		if has := names[name.String]; has != nil {
			*has = true
		}
		return nil
	})
	if err == nil {
		err = schema.Found{Version: version}.CheckVersion(path)
	}
	return l, err
}
