package broker

import (
	"database/sql"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/platform/ipc/api"
)

// inStore runs SQL on the store from outside, as another program would.
func (b *bench) inStore(script string) {
	b.t.Helper()
	pool, err := sql.Open("sqlite", b.home.DB())
	if err != nil {
		b.t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(script); err != nil {
		b.t.Fatalf("%s: %v", script, err)
	}
}

func topics(revisions []decision.Revision) (list []string) {
	for _, r := range revisions {
		list = append(list, r.Topic+" "+r.ID)
	}
	return list
}

// TestSTO_18_OneBadRowShutsOutNobody: a decision that cannot be read is passed
// over by everything that a session does.
func TestSTO_18_OneBadRowShutsOutNobody(t *testing.T) {
	for name, scope := range map[string]string{"empty": ``, "a list": `["bob"]`, "of a newer release": `{"team":"core"}`} {
		t.Run("STO-18 DEC-05 DEC-13 a scope that is "+name, func(t *testing.T) {
			b := newBench(t)
			alice := b.join(api.Register{Name: "alice", SessionID: "s-alice"})
			all := decision.AllSessions()
			if _, err := alice.Decide(t.Context(), api.DecideArgs{ID: "d1", Topic: "style", Text: "Tabs", Scope: &all}); err != nil {
				t.Fatal(err)
			}
			alice.read()
			b.inStore("INSERT INTO decisions (id, topic, body, scope, author_id, author_name, author_agent, created_at) VALUES ('odd', 'db', 'x', '" + scope + "', 'p', 'p', 'claude', 1)")

			bob := b.join(api.Register{Name: "bob", SessionID: "s-bob"})
			wantBodies(t, "bob is told of what can be read", bob.read(), alice.mustFindNote("d1"))
			if bob.Note == "" {
				t.Error("no note at the start")
			}
			bob.mustSend(api.SendArgs{To: "alice", Body: "hello"})
			wantBodies(t, "alice reads", alice.read(), "hello")
			result, err := bob.Decide(t.Context(), api.DecideArgs{ID: "d2", Topic: "db", Text: "SQLite", Scope: &all})
			if err != nil || result.Decision.Supersedes == nil || *result.Decision.Supersedes != "odd" {
				t.Errorf("decide on the same topic: %+v, %v", result, err)
			}
			found, err := alice.Decisions(t.Context(), api.DecisionsArgs{})
			if err != nil || len(found) != 2 {
				t.Errorf("decisions: %v, %v", topics(found), err)
			}
			b.restart()
			carol := b.join(api.Register{Name: "carol", SessionID: "s-carol", Kind: bridge.Codex})
			if got := carol.read(); len(got) != 2 {
				t.Errorf("carol is told of %q", got)
			}
		})
	}
}

// mustFindNote is the text of the message that told of a decision.
func (p peer) mustFindNote(id string) string {
	p.b.t.Helper()
	found, err := p.Decisions(p.b.t.Context(), api.DecisionsArgs{History: true})
	if err != nil {
		p.b.t.Fatal(err)
	}
	for _, r := range found {
		if r.ID == id {
			return decision.NotificationBody(r)
		}
	}
	p.b.t.Fatalf("no decision %s", id)
	return ""
}
