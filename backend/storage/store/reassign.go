package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"math"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/store/schema"
)

// Reassign moves the unread mail of one peer id to another: a process with a temporary id turned out to be a
// known host session. A message that the other id already has stays. It fails if the store cannot be written.
func (d *DB) Reassign(ctx context.Context, from, to string) error {
	return d.reassign(ctx, from, to, math.MinInt64, "")
}

// ReassignMessage is [DB.Reassign] for one message, and fails as that does.
func (d *DB) ReassignMessage(ctx context.Context, messageID, from, to string) error {
	return d.reassign(ctx, from, to, math.MinInt64, messageID)
}

// reassign is Reassign for mail sent at since, Unix milliseconds, or later, and only for
// one message if only is set.
func (d *DB) reassign(ctx context.Context, from, to string, since int64, only string) error {
	if from == to || from == "" || to == "" {
		return nil
	}
	return d.writer.Do(ctx, func(t *sqlitex.Tx) error {
		_, err := t.Exec("UPDATE OR IGNORE messages SET recipient = ?2 WHERE recipient = ?1 AND read_at IS NULL AND created_at >= ?3 AND (?4 = '' OR id = ?4)", from, to, since, only)
		if err != nil {
			return err
		}
		for _, about := range []string{"delivery_stages", "delivery_ways"} {
			_, err = t.Exec(`UPDATE OR IGNORE `+about+` SET recipient = ?2 WHERE recipient = ?1
				AND EXISTS (SELECT 1 FROM messages WHERE id = message_id AND recipient = ?2)
				AND NOT EXISTS (SELECT 1 FROM messages WHERE id = message_id AND recipient = ?1)`, from, to)
			if err != nil {
				return err
			}
		}
		_, err = t.Exec(`INSERT OR IGNORE INTO message_peers (peer, created_at, message_id)
			SELECT recipient, created_at, id FROM messages WHERE recipient = ?1 AND read_at IS NULL`, to)
		if err != nil {
			return err
		}
		return schema.FollowMessages(t)
	})
}

// ClaimByName gives peer the unread mail that other programs of the same layout stored under a
// name (VER-01). They address mail by name, and record which host session had which name. Only
// the same host session of the same agent claims it. If others had the name too, it gets the
// mail sent since it last took the name: a reused name inherits nothing (MSG-12). While older
// programs run, the mail stays theirs (VER-04). It fails if the store cannot be written.
func (d *DB) ClaimByName(ctx context.Context, peer Peer) error {
	if peer.SessionID == "" || d.deferred() {
		return nil
	}
	claims, err := d.nameClaims(ctx)
	if err != nil {
		return err
	}
	for name, all := range claims {
		since, isOwn := lastClaim(all, peer)
		if !isOwn {
			continue
		}
		unread, err := d.UnreadCount(ctx, name)
		if err == nil && unread > 0 {
			err = d.reassign(ctx, name, peer.ID, since, "")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// nameClaim records that a host session had a name; at is when that was learned.
type nameClaim struct {
	agent   bridge.AgentKind
	session string // "" if not recorded
	at      int64  // Unix milliseconds
}

// lastClaim returns since when the peer's host session was the last to have the name. If
// no other ever had it, that is math.MinInt64.
func lastClaim(all []nameClaim, peer Peer) (since int64, isOwn bool) {
	isMine := func(c nameClaim) bool { return c.agent == peer.Agent && c.session == peer.SessionID }
	others := int64(math.MinInt64)
	for _, claim := range all {
		if !isMine(claim) {
			others = max(others, claim.at)
		}
	}
	since = math.MaxInt64
	for _, claim := range all {
		if isMine(claim) && claim.at > others {
			since, isOwn = min(since, claim.at), true
		}
	}
	if others == math.MinInt64 {
		since = math.MinInt64
	}
	return since, isOwn
}

// ownIdentity is the form of Bridge's own peer ids. Their mail is addressed to them,
// never to a name.
const ownIdentity = "'________-____-____-____-____________'"

// nameClaims returns by name what the records of other programs contain.
func (d *DB) nameClaims(ctx context.Context) (claims map[string][]nameClaim, err error) {
	err = d.read(ctx, func(v view) error {
		claims = map[string][]nameClaim{}
		bound, err := v.bindings(ctx)
		if err != nil {
			return err
		}
		named := map[string]bool{}
		rows, err := v.Query(ctx, `SELECT identity, ifnull(name, ''), ifnull(agent, ''), ifnull(session_id, ''), ifnull(learned_at, 0)
			FROM peer_names WHERE identity NOT LIKE `+ownIdentity)
		err = sqlitex.Each(rows, err, func(rows *sql.Rows) error {
			var identity, name string
			var claim nameClaim
			if err := rows.Scan(sqlitex.Text(&identity), sqlitex.Text(&name), sqlitex.Text((*string)(&claim.agent)), sqlitex.Text(&claim.session), sqlitex.Number(&claim.at)); err != nil {
				return err
			}
			named[identity] = true
			if claim.session != "" || len(bound[identity]) == 0 {
				claims[name] = append(claims[name], claim)
			}
			for _, binding := range bound[identity] {
				claims[name] = append(claims[name], nameClaim{claim.agent, binding.session, max(claim.at, binding.at)})
			}
			return nil
		})
		for identity, bindings := range bound {
			agent, name := described(identity)
			if named[identity] {
				continue
			}
			for _, binding := range bindings { // from before names were recorded
				claims[name] = append(claims[name], nameClaim{agent, binding.session, binding.at})
			}
		}
		maps.DeleteFunc(claims, func(name string, _ []nameClaim) bool { return name == "" || named[name] }) // a peer id is no name
		return err
	})
	return claims, err
}

// bindings returns the host sessions that identities of other programs had.
func (v view) bindings(ctx context.Context) (map[string][]nameClaim, error) {
	bound := map[string][]nameClaim{}
	rows, err := v.Query(ctx, "SELECT identity, session_id, ifnull(learned_at, 0) FROM session_bindings WHERE session_id <> '' AND identity NOT LIKE "+ownIdentity)
	return bound, sqlitex.Each(rows, err, func(rows *sql.Rows) error {
		var identity string
		var claim nameClaim
		err := rows.Scan(sqlitex.Text(&identity), sqlitex.Text(&claim.session), sqlitex.Number(&claim.at))
		bound[identity] = append(bound[identity], claim)
		return err
	})
}

// described returns agent and name from an identity that describes a process: a JSON
// array of agent, process id, its creation, folder and name.
func described(identity string) (agent bridge.AgentKind, name string) {
	var parts []any
	if json.Unmarshal([]byte(identity), &parts) != nil || len(parts) != 5 {
		return "", ""
	}
	kind, _ := parts[0].(string)
	name, _ = parts[4].(string)
	return bridge.AgentKind(kind), name
}
