package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"slices"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/platform/sqlitex"
)

// TeamPosition is how far this PC has read its team's stream of decisions (HUB-06).
type TeamPosition struct {
	Team     string // the hub and the team's name
	Stream   string // identifies the stream
	Sequence uint64 // of the last message read
	Mark     string // differs from that of another stream at this sequence
	since    int64  // the last decision recorded here before this PC took part
}

// TeamDecision is a decision of the team's stream.
type TeamDecision struct {
	decision.Revision
	PC       string // the deciding PC
	Own      bool   // PC is this PC
	Sequence uint64
	Number   int64  // of the signature
	Follows  string // the decision that its PC had before, "" for none
}

// TeamPosition returns how far this PC has read; the zero place before it took part. It fails
// with Storage if the store cannot be read.
func (d Remote) TeamPosition(ctx context.Context) (place TeamPosition, err error) {
	err = d.read(ctx, func(v view) error {
		place = TeamPosition{}
		if !v.layout.team {
			return nil
		}
		rows, err := v.Query(ctx, "SELECT team, stream, sequence, mark, since FROM team_place")
		return sqlitex.Each(rows, err, func(rows *sql.Rows) error {
			return rows.Scan(&place.Team, &place.Stream, &place.Sequence, &place.Mark, &place.since)
		})
	})
	return place, err
}

// RestartTeam resets the stream's position: this PC takes part from now on, or the stream is
// another one. The decisions stay. The stream orders them again, and this PC's decisions that
// it lacks are published again. It fails with Unavailable while the upgrade is deferred.
func (d Remote) RestartTeam(ctx context.Context, team, stream string) error {
	if d.deferred() {
		return errBesideOlder
	}
	return d.writer.Do(ctx, func(t *sqlitex.Tx) error {
		_, err := t.Exec("UPDATE team_decisions SET sequence = NULL WHERE sequence IS NOT NULL")
		if err == nil {
			_, err = t.Exec(`INSERT INTO team_place (one, team, stream, sequence, mark, since) VALUES (1, ?1, ?2, 0, '', (SELECT ifnull(max(revision), 0) FROM decisions))
				ON CONFLICT (one) DO UPDATE SET stream = excluded.stream, sequence = 0, mark = '', since = iif(team = excluded.team, since, excluded.since), team = excluded.team`,
				team, stream)
		}
		return err
	})
}

// ImportTeam stores messages of the stream, up to a place, in one commit. Known decisions
// get their order. Invalid ones are ignored, as on every PC; refused holds the reasons by
// sequence. It fails with Unavailable while the upgrade is deferred.
func (d Remote) ImportTeam(ctx context.Context, read []TeamDecision, upTo TeamPosition) (added int, refused map[uint64]error, err error) {
	if d.deferred() {
		return 0, nil, errBesideOlder
	}
	for i := range read {
		if read[i].Revision, err = d.withKnownSource(ctx, read[i].Revision); err != nil {
			return 0, nil, err
		}
	}
	now := d.now().UnixMilli()
	err = d.writer.Do(ctx, func(t *sqlitex.Tx) error {
		added, refused = 0, map[uint64]error{}
		for _, teamDecision := range read {
			is, err := importTeam(t, teamDecision, now)
			if code := bridge.CodeOf(err); code == bridge.Conflict || code == bridge.Denied {
				refused[teamDecision.Sequence], err = err, nil
			}
			if err != nil {
				return err
			}
			if is {
				added++
			}
		}
		_, err := t.Exec("UPDATE team_place SET sequence = ?2, mark = ?3 WHERE stream = ?1", upTo.Stream, upTo.Sequence, upTo.Mark)
		return err
	})
	return added, refused, err
}

// importTeam stores one decision of the stream, and reports whether it was not in the
// stream before.
func importTeam(t *sqlitex.Tx, teamDecision TeamDecision, now int64) (isNew bool, err error) {
	placed, err := t.Exists("SELECT EXISTS (SELECT 1 FROM team_decisions WHERE decision_id = ?1 AND sequence IS NOT NULL)", teamDecision.ID)
	if err != nil || placed {
		return false, err // a duplicate: the first one counts
	}
	passed, err := t.Exists("SELECT EXISTS (SELECT 1 FROM team_decisions WHERE pc = ?1 AND number >= ?2 AND sequence IS NOT NULL)", teamDecision.PC, teamDecision.Number)
	if err == nil && passed {
		err = bridge.Errorf(bridge.Denied, "the PC said it before what it has said since")
	}
	if err != nil {
		return false, err
	}
	known, err := knows(t, teamDecision)
	if err == nil && !known && teamDecision.Own {
		err = insertDecision(t, teamDecision.Revision) // this PC's, from a store that it lost
	} else if err == nil && !known {
		err = importDecision(t, teamDecision.Revision, teamDecision.PC, now)
	} else if err == nil {
		err = learnWithdrawn(t, teamDecision.Revision, teamDecision.PC)
	}
	if err != nil {
		return false, err
	}
	_, err = t.Exec(`INSERT INTO team_decisions (decision_id, pc, sequence, number, follows, told) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
		ON CONFLICT (decision_id) DO UPDATE SET pc = excluded.pc, sequence = excluded.sequence, number = excluded.number, follows = excluded.follows`,
		teamDecision.ID, teamDecision.PC, teamDecision.Sequence, teamDecision.Number, teamDecision.Follows, teamDecision.Own)
	return true, err
}

// knows reports whether a decision is here. It fails with Conflict if another decision
// has the id.
func knows(t *sqlitex.Tx, teamDecision TeamDecision) (known bool, err error) {
	rows, err := t.Query(context.Background(), "SELECT topic = ?2 AND body = ?3 AND (instr(author_name, '/') = 0) = ?4 FROM decisions WHERE id = ?1", teamDecision.ID, teamDecision.Topic, teamDecision.Text, teamDecision.Own)
	err = sqlitex.Each(rows, err, func(rows *sql.Rows) error {
		known = true
		var same bool
		err := rows.Scan(&same)
		if err == nil && !same {
			err = bridge.Errorf(bridge.Conflict, "the id %s is that of another decision", teamDecision.ID)
		}
		return err
	})
	return known, err
}

// TeamNumber returns the number of a PC's last decision in the stream. It fails if the store cannot be read.
func (d Remote) TeamNumber(ctx context.Context, pc string) (number int64, err error) {
	err = d.read(ctx, func(v view) error {
		rows, err := v.Query(ctx, "SELECT ifnull(max(number), 0) FROM team_decisions WHERE pc = ?1", pc)
		return sqlitex.Each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&number) })
	})
	return number, err
}

// ForTeam returns the decisions of this PC that the stream lacks, in the order of their
// creation. It fails with Storage if the store cannot be read.
func (d Remote) ForTeam(ctx context.Context) (own []decision.OrderedRevision, err error) {
	place, err := d.TeamPosition(ctx)
	if err != nil {
		return nil, err
	}
	err = eachTopic(ctx, d.Reader, "", func(topic []decision.OrderedRevision) { own = append(own, decision.ForTeam(topic, place.since)...) })
	slices.SortFunc(own, func(a, b decision.OrderedRevision) int { return cmp.Compare(a.Place, b.Place) })
	return own, err
}

// eachTopic calls with for each topic that has revisions, or for that one, with the
// revisions in order, oldest first.
func eachTopic(ctx context.Context, r *Reader, topic string, with func([]decision.OrderedRevision)) error {
	var all []decision.OrderedRevision
	err := r.read(ctx, func(v view) (err error) {
		if all = nil; v.layout.decisions {
			all, err = readRevisions(ctx, v, topic)
		}
		return err
	})
	topics := decision.Topics(all)
	for _, name := range slices.Sorted(maps.Keys(topics)) {
		with(topics[name])
	}
	return err
}

// Together returns the revisions of a topic that PCs of the team made concurrently: for
// each id, the id of the next one in the stream. It fails if the store cannot be read.
func (r *Reader) Together(ctx context.Context, topic string) (next map[string]string, err error) {
	next = map[string]string{}
	err = eachTopic(ctx, r, topic, func(topic []decision.OrderedRevision) {
		inStream := decision.InStream(topic)
		for i := 1; i < len(inStream); i++ {
			if decision.AtOnce(inStream[i-1], inStream[i]) {
				next[inStream[i-1].ID] = inStream[i].ID
			}
		}
	})
	return next, err
}

// ConcurrentOwn returns, by id, other PCs' decisions that are last in the team's stream and
// concurrent with one of this PC's, with that own decision. It fails if the store cannot be read.
func (d Remote) ConcurrentOwn(ctx context.Context) (beside map[string]*decision.Revision, err error) {
	beside = map[string]*decision.Revision{}
	err = eachTopic(ctx, d.Reader, "", func(topic []decision.OrderedRevision) {
		inStream := decision.InStream(topic)
		if last := len(inStream) - 1; last > 0 {
			if own := decision.ConcurrentOwn(inStream, last); own != nil {
				beside[inStream[last].ID] = own
			}
		}
	})
	return beside, err
}

// TeamNews returns the news for this PC's sessions of the team's decisions, oldest of each
// topic first. News are others' decisions in force, valid withdrawals, and decisions
// concurrent with one of this PC's. silent are decisions without news. If this PC's own
// decision on a topic has no place in the stream yet, the topic is skipped: only its place
// shows which decisions are concurrent. It fails if the store cannot be read.
func (d Remote) TeamNews(ctx context.Context) (news []decision.News, silent []string, err error) {
	untold := map[string]bool{}
	err = d.read(ctx, func(v view) error {
		clear(untold)
		rows, err := v.Query(ctx, "SELECT decision_id FROM team_decisions WHERE told = 0 AND sequence IS NOT NULL")
		return sqlitex.Each(rows, err, func(rows *sql.Rows) error {
			var id string
			err := rows.Scan(&id)
			untold[id] = true
			return err
		})
	})
	if err != nil || len(untold) == 0 {
		return nil, nil, err
	}
	place, err := d.TeamPosition(ctx)
	if err != nil {
		return nil, nil, err
	}
	err = eachTopic(ctx, d.Reader, "", func(topic []decision.OrderedRevision) {
		if len(decision.ForTeam(topic, place.since)) > 0 {
			return
		}
		inStream := decision.InStream(topic)
		for i, revision := range inStream {
			beside, newest := decision.ConcurrentOwn(inStream, i), revision.ID == topic[len(topic)-1].ID
			switch {
			case !untold[revision.ID]:
			case newest || beside != nil:
				news = append(news, decision.News{Revision: revision.Revision, Beside: beside, Newest: newest})
			default:
				silent = append(silent, revision.ID)
			}
		}
	})
	return news, silent, err
}

// ClearTeamNews records that no news remain of those decisions. It fails if it cannot write that.
func (d Remote) ClearTeamNews(ctx context.Context, ids []string) error {
	list, err := json.Marshal(append([]string{}, ids...))
	if err != nil || len(ids) == 0 {
		return err
	}
	return d.writer.Do(ctx, func(t *sqlitex.Tx) error {
		_, err := t.Exec("UPDATE team_decisions SET told = 1 WHERE decision_id IN (SELECT value FROM json_each(?1))", string(list))
		return err
	})
}
