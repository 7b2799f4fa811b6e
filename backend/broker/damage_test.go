package broker

import (
	"database/sql"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/testkit"
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

// damage overwrites the root page of a table or an index while no broker runs.
func (b *bench) damage(name string) {
	b.t.Helper()
	b.stop()
	testkit.DamagePage(b.t, b.home.DB(), name, testkit.RootPage)
	b.start()
}

// TestSTO_18_ADamagedPageLeavesTheStatus: what can be read is there, and a count that cannot
// be read is unknown, never 0.
func TestSTO_18_ADamagedPageLeavesTheStatus(t *testing.T) {
	for _, tt := range []struct {
		name            string
		unread, waiting bridge.Count
	}{
		{"messages_unread", bridge.UnknownCount, bridge.UnknownCount},
		{"delivery_stages", 1, bridge.UnknownCount}, // the waiting mail is without what was handed over
		{"decisions", 1, 1},
	} {
		t.Run("STO-18 "+tt.name, func(t *testing.T) {
			b := newBench(t)
			alice := b.join(api.Register{Name: "alice", SessionID: "s-alice"})
			b.join(api.Register{Name: "bob", SessionID: "s-bob"})
			alice.mustSend(api.SendArgs{To: "bob", Body: "hello"})
			b.damage(tt.name)
			for _, session := range []string{"alice", "bob"} { // live, even if a registration cannot read all of its mail
				args := api.Register{Kind: bridge.Claude, Cwd: "/code/shop", Name: session, SessionID: "s-" + session}
				if _, err := b.dial(api.RoleSession).Register(t.Context(), args); err != nil && bridge.CodeOf(err) != bridge.Storage {
					t.Fatal(err)
				}
			}
			status, err := b.broker.Status(t.Context())
			if err != nil || len(status.Peers) != 2 {
				t.Fatalf("the status: %+v, %v", status, err)
			}
			if status.Unread != tt.unread || (len(status.Unreadable) > 0) != !tt.unread.IsKnown() {
				t.Errorf("unread: %s, unreadable: %q; want %s", status.Unread, status.Unreadable, tt.unread)
			}
			for _, p := range status.Peers {
				if p.Unread.IsKnown() != tt.unread.IsKnown() {
					t.Errorf("%s has %s unread", p.Name, p.Unread)
				}
			}
			args := api.ExchangeArgs{A: "alice", B: "bob", Action: api.ExchangePause}
			paused, err := api.OpExchange.Call(t.Context(), b.dial(api.RoleOwner), args)
			if err != nil || !paused.Paused || paused.Waiting != tt.waiting {
				t.Errorf("the pause: %+v, %v; want %s waiting", paused, err, tt.waiting)
			}
			facts, err := b.broker.Exchanges.Facts(t.Context())
			if (err != nil) != !tt.waiting.IsKnown() || len(facts) != 1 || facts[0].Messages != tt.waiting {
				t.Errorf("the facts: %+v, %v; want %s waiting", facts, err, tt.waiting)
			}
		})
	}
}
