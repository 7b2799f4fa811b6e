package store

import (
	"context"
	"database/sql"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/cache"
	"bridge/backend/storage/store/schema"
)

// Peer is the store's data of a session that was here.
type Peer struct {
	ID        string // peer id
	Name      string // its latest name
	Agent     bridge.AgentKind
	SessionID string // host session id, "" until known
	SeenAt    int64  // Unix milliseconds
}

// SavePeer stores a peer's name, host session and time. The peer owns the name from then
// on. It fails with Invalid without an id and a name.
func (d *DB) SavePeer(ctx context.Context, peer Peer) error {
	if peer.ID == "" || peer.Name == "" {
		return bridge.Errorf(bridge.Invalid, "a peer needs an id and a name")
	}
	return d.writer.DoFor(ctx, func() []cache.Invalidation { return []cache.Invalidation{{Peer: peer.ID}} }, func(t *sqlitex.Tx) error { return savePeer(t, peer) })
}

func savePeer(t *sqlitex.Tx, peer Peer) error {
	if peer.SessionID != "" {
		err := upsert(t, "UPDATE session_bindings SET learned_at = max(learned_at, ?3) WHERE identity = ?1 AND session_id = ?2",
			"INSERT OR IGNORE INTO session_bindings (identity, session_id, learned_at) VALUES (?1, ?2, ?3)", peer.ID, peer.SessionID, peer.SeenAt)
		if err != nil {
			return err
		}
	}
	err := upsert(t, `UPDATE peer_names SET session_id = ifnull(nullif(?3, ''), session_id), agent = ?4, learned_at = max(learned_at, ?5)
			WHERE identity = ?1 AND name = ?2`,
		"INSERT OR IGNORE INTO peer_names (identity, name, session_id, agent, learned_at) VALUES (?1, ?2, nullif(?3, ''), ?4, ?5)",
		peer.ID, peer.Name, peer.SessionID, string(peer.Agent), peer.SeenAt)
	if err != nil {
		return err
	}
	err = upsert(t, "UPDATE peer_name_owners SET identity = ?2 WHERE name = ?1",
		"INSERT OR IGNORE INTO peer_name_owners (name, identity) VALUES (?1, ?2)", peer.Name, peer.ID)
	if err != nil {
		return err
	}
	return upsert(t, "UPDATE peer_last_seen SET seen_at = max(seen_at, ?2) WHERE name = ?1",
		"INSERT OR IGNORE INTO peer_last_seen (name, seen_at) VALUES (?1, ?2)", peer.Name, peer.SeenAt)
}

// upsert updates the existing row, or inserts one. It depends on no key of the table: the
// tables of peers are known by their columns only, and a foreign store may have other
// keys or none (VER-01). If such a key is narrower than ours, the first row stays.
func upsert(t *sqlitex.Tx, update, insert string, args ...any) error {
	changed, err := t.Exec(update, args...)
	if err != nil || changed > 0 {
		return err
	}
	_, err = t.Exec(insert, args...)
	return err
}

// Peers returns every peer that was here, last seen first. It skips foreign identities in
// the form of a JSON array that describes a process. It fails if the store cannot be read.
func (r *Reader) Peers(ctx context.Context) ([]Peer, error) {
	return r.cache.Peers(func() (peers []Peer, err error) {
		err = r.read(ctx, func(v view) (err error) {
			peers, err = peersOf(ctx, v)
			return err
		})
		return peers, err
	})
}

func peersOf(ctx context.Context, v view) ([]Peer, error) {
	peers := []Peer{}
	if !v.layout.names {
		return peers, nil
	}
	rows, err := v.Query(ctx, schema.PeersQuery(v.layout.seen))
	err = sqlitex.Each(rows, err, func(rows *sql.Rows) error {
		var peer Peer
		err := rows.Scan(sqlitex.Text(&peer.ID), sqlitex.Text(&peer.Name), sqlitex.Text((*string)(&peer.Agent)), sqlitex.Text(&peer.SessionID), sqlitex.Number(&peer.SeenAt))
		peers = append(peers, peer)
		return err
	})
	return peers, err
}
