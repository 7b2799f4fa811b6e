package store

import (
	"context"
	"database/sql"

	"bridge/backend/bridge"
)

// Peer is what the store knows of a session that was here.
type Peer struct {
	ID        string // peer id
	Name      string // its latest name
	Agent     bridge.AgentKind
	SessionID string // host session id, "" until known
	SeenAt    int64  // Unix milliseconds
}

// SavePeer stores a peer's name, host session and time. The name is its own
// from then on.
func (d *DB) SavePeer(ctx context.Context, peer Peer) error {
	if peer.ID == "" || peer.Name == "" {
		return bridge.Errorf(bridge.Invalid, "a peer needs an id and a name")
	}
	return d.writer.do(ctx, func(t *tx) error { return savePeer(t, peer) })
}

func savePeer(t *tx, peer Peer) error {
	if peer.SessionID != "" {
		_, err := t.exec(`INSERT INTO session_bindings (identity, session_id, learned_at) VALUES (?1, ?2, ?3)
			ON CONFLICT (identity, session_id) DO UPDATE SET learned_at = max(learned_at, excluded.learned_at)`, peer.ID, peer.SessionID, peer.SeenAt)
		if err != nil {
			return err
		}
	}
	_, err := t.exec(`INSERT INTO peer_names (identity, name, session_id, agent, learned_at) VALUES (?1, ?2, nullif(?3, ''), ?4, ?5)
		ON CONFLICT (identity, name) DO UPDATE SET session_id = ifnull(excluded.session_id, session_id), agent = excluded.agent,
			learned_at = max(learned_at, excluded.learned_at)`, peer.ID, peer.Name, peer.SessionID, string(peer.Agent), peer.SeenAt)
	if err != nil {
		return err
	}
	_, err = t.exec("INSERT INTO peer_name_owners (name, identity) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET identity = excluded.identity", peer.Name, peer.ID)
	if err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO peer_last_seen (name, seen_at) VALUES (?1, ?2)
		ON CONFLICT (name) DO UPDATE SET seen_at = max(seen_at, excluded.seen_at)`, peer.Name, peer.SeenAt)
	return err
}

// Peers returns every peer that was here, the one seen last first. Identities
// of the field's own form, a JSON array that describes a process, are no peer
// ids and are passed over.
func (r *Reader) Peers(ctx context.Context) (peers []Peer, err error) {
	err = r.read(ctx, func(v view) error {
		peers = []Peer{}
		if !v.layout.names {
			return nil
		}
		seen := "NULL"
		if v.layout.seen {
			seen = "(SELECT l.seen_at FROM peer_last_seen l JOIN peer_name_owners o ON o.name = l.name WHERE l.name = n.name AND o.identity = n.identity)"
		}
		rows, err := v.query(ctx, `SELECT n.identity, n.name, ifnull(n.agent, ''),
				coalesce((SELECT b.session_id FROM session_bindings b WHERE b.identity = n.identity ORDER BY b.learned_at DESC, b.rowid DESC LIMIT 1), n.session_id, ''),
				max(ifnull(n.learned_at, 0), ifnull(`+seen+`, 0)) AS seen_at
			FROM peer_names n
			WHERE n.identity NOT LIKE '[%' AND n.rowid = (SELECT k.rowid FROM peer_names k WHERE k.identity = n.identity ORDER BY k.learned_at DESC, k.rowid DESC LIMIT 1)
			ORDER BY seen_at DESC, n.rowid DESC`)
		return each(rows, err, func(rows *sql.Rows) error {
			var peer Peer
			err := rows.Scan(&peer.ID, &peer.Name, &peer.Agent, &peer.SessionID, &peer.SeenAt)
			peers = append(peers, peer)
			return err
		})
	})
	return peers, err
}
