package broker

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/remote"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/store"
)

// onePC is a paired PC that no link leads to.
type onePC struct{ is remote.PC }

func (o onePC) PC(name string) (remote.PC, error) {
	if name != o.is.Name {
		return remote.PC{}, bridge.Errorf(bridge.NotFound, "no PC named %q is paired with this one", name)
	}
	return o.is, nil
}
func (onePC) Keeps() []string                              { return nil }
func (onePC) Waiting(string)                               {}
func (onePC) Sessions(context.Context) []api.RemoteSession { return nil }

var desk = remote.PC{ID: "desk-id", Name: "desk"}

func TestRMT_21_MailThatWaitsForAPairedPCExpiresAndItsSenderSeesThat(t *testing.T) {
	for _, tt := range []struct {
		name         string
		after        time.Duration
		expiredCount int
	}{
		{"in its time", 24*time.Hour - time.Minute, 0},
		{"too late", 24*time.Hour + time.Minute, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.broker.Share(onePC{desk})
			from := b.join(api.Register{Name: "from", SessionID: "h1"})
			sent := from.mustSend(api.SendArgs{To: "desk/api", Body: "in vain"})
			const waits = "accepted, durable, waiting for desk"
			for _, result := range []api.SendResult{sent, from.mustSend(api.SendArgs{To: "desk/api", Body: "in vain", MessageID: sent.ID, Again: true})} {
				if want := (api.SendResult{ID: sent.ID, ConversationID: sent.ID, Recipients: []api.Recipient{{Name: "desk/api", Note: waits}}}); !reflect.DeepEqual(want, result) {
					t.Errorf("the send answers %+v, want %+v", result, want)
				}
			}
			from.wantStatus("before", sent.ID, api.SentStage{Name: "desk/api", Stage: "durable", Evidence: waits})
			b.now = func() time.Time { return time.Now().Add(tt.after) }
			b.restart()
			b.broker.Share(onePC{desk})
			from = b.join(api.Register{Name: "from", SessionID: "h1"})
			if n, err := b.broker.Expire(t.Context()); n != tt.expiredCount || err != nil {
				t.Fatalf("Expire = %d, %v; want %d", n, err, tt.expiredCount)
			}
			if tt.expiredCount == 1 {
				from.wantStatus("then", sent.ID, api.SentStage{Name: "desk/api", Stage: "expired", Evidence: "waited too long for its session"})
			}
			waiting, err := b.db.Remote().Waiting(t.Context(), desk.ID, 10, 1000)
			if err != nil || len(waiting) != 1-tt.expiredCount {
				t.Errorf("%+v would still be sent, %v", waiting, err)
			}
		})
	}
}

func TestRMT_22_AnImportedDecisionIsToldEachSessionOnce(t *testing.T) {
	b := newBench(t)
	p := b.join(api.Register{Name: "p", SessionID: "s1", Cwd: "/a"})
	revision := func(id, text string, at int64) decision.Revision {
		return decision.Revision{
			ID: id, Topic: "db", Text: text, Scope: decision.AllSessions(), CreatedAt: at,
			Author: bridge.Address{ID: "desk/api", Name: "desk/api", Agent: bridge.Codex},
		}
	}
	first := revision("d1", "SQLite <of desk>", 1000)
	imported := func(tell bool, all ...decision.Revision) {
		t.Helper()
		if _, err := b.broker.Import(t.Context(), desk, all, tell); err != nil {
			t.Fatal(err)
		}
	}
	imported(false, first)
	if got := tellings(t, p, "SQLite <of desk>"); got != 0 {
		t.Errorf("before all of them came it is told %d times", got)
	}
	imported(true, first)
	imported(true, first)
	imported(true)
	late := b.join(api.Register{Name: "late", SessionID: "s2", Cwd: "/b"})
	imported(true, first)
	for _, who := range []peer{p, late} {
		if got := tellings(t, who, "SQLite <of desk>"); got != 1 {
			t.Errorf("it is told %d times, want once", got)
		}
	}
	b.restart()
	p, late = b.join(api.Register{Name: "p", SessionID: "s1", Cwd: "/a"}), b.join(api.Register{Name: "late", SessionID: "s2", Cwd: "/b"})
	imported(true, first)
	// Of two that came at once only the one that holds is told.
	imported(true, revision("d2", "Postgres <of desk>", 2000), revision("d3", "SQLite <again>", 3000))
	for _, who := range []peer{p, late} {
		for text, want := range map[string]int{"SQLite <of desk>": 1, "Postgres <of desk>": 0, "SQLite <again>": 1} {
			if got := tellings(t, who, text); got != want {
				t.Errorf("after a restart %q is told %d times, want %d", text, got, want)
			}
		}
	}
}

// TestSEC_12_AFloodOfDecisionsIsToldAsANumber brings 100 decisions of another PC: sessions
// that are here, and one that comes later, are told of the newest 20 and of the number.
func TestSEC_12_AFloodOfDecisionsIsToldAsANumber(t *testing.T) {
	b := newBench(t)
	here := b.join(api.Register{Name: "here", SessionID: "s1", Cwd: "/a"})
	var all []decision.Revision
	for i := range 100 {
		all = append(all, decision.Revision{
			ID: fmt.Sprintf("d-%03d", i), Topic: fmt.Sprintf("topic-%03d", i), Text: fmt.Sprintf("word-%03d", i), Scope: decision.AllSessions(), CreatedAt: int64(1000 + i),
			Author: bridge.Address{ID: "desk/api", Name: "desk/api", Agent: bridge.Codex},
		})
	}
	imported := func(revisions ...decision.Revision) {
		t.Helper()
		if _, err := b.broker.Import(t.Context(), desk, revisions, true); err != nil {
			t.Fatal(err)
		}
	}
	imported(all[:99]...)
	late := b.join(api.Register{Name: "late", SessionID: "s2", Cwd: "/b"})
	imported(all...)
	for _, who := range []peer{here, late} {
		count := 0
		inboxText := strings.Join(append(who.read(), who.read()...), "\n") // an inbox shows 20 at a time
		for i, revision := range all {
			got := strings.Count(inboxText, revision.Text)
			if count += got; got != 0 && i < 79 || got != 1 && i >= 79 {
				t.Errorf("%s is told %d times", revision.Text, got)
			}
		}
		if count != 21 {
			t.Errorf("it is told of %d decisions, want 20 and the one that came later", count)
		}
		if got := strings.Count(inboxText, "79 older ones are in force here"); got != 1 {
			t.Errorf("the number is told %d times, want once", got)
		}
	}
	b.restart()
	here = b.join(api.Register{Name: "here", SessionID: "s1", Cwd: "/a"})
	imported(all...)
	if got := tellings(t, here, "word-070"); got != 0 {
		t.Errorf("after a restart an older decision is told %d times", got)
	}
	if notices, err := b.db.DecisionNotices(t.Context(), "topic-050"); err != nil || len(notices) != 0 {
		t.Errorf("of an older decision the history has %d notices, %v", len(notices), err)
	}
}

func TestHUB_06_SessionsAreToldOnceOfWhatWasDecidedAtTheSameTime(t *testing.T) {
	b := newBench(t)
	nobody := decision.News{Revision: decision.Revision{
		ID: "d1", Topic: "db", Text: "Postgres <of desk>", Scope: decision.AllSessions(), CreatedAt: 1000,
		Author: bridge.Address{ID: "desk/api", Name: "desk/api", Agent: bridge.Codex},
	}}
	if _, err := b.broker.Import(t.Context(), desk, []decision.Revision{nobody.Revision}, false); err != nil {
		t.Fatal(err)
	}
	nobody.Beside = &decision.Revision{ID: "d2", Author: bridge.Address{Name: "planner"}}
	tell := func(want bool) {
		t.Helper()
		notified, err := b.broker.NotifyDecisions(t.Context(), []decision.News{nobody})
		if err != nil || notified["d1"] != want {
			t.Errorf("heard = %v, %v; want %v", notified, err, want)
		}
	}
	tell(false)
	if _, err := b.broker.Import(t.Context(), desk, []decision.Revision{{
		ID: "d3", Topic: "db", Text: "SQLite", Scope: decision.AllSessions(), CreatedAt: 2000, Author: bridge.Address{ID: "desk/web", Name: "desk/web"},
	}}, false); err != nil { // so that nobody is caught up with the other one
		t.Fatal(err)
	}
	p := b.join(api.Register{Name: "p", SessionID: "s1", Cwd: "/a"})
	tell(true)
	tell(true)
	if got := tellings(t, p, "not in force: planner decided on it at the same time"); got != 1 {
		t.Errorf("it is told %d times, want once", got)
	}
}

// TestHUB_06_WhoComesLaterHearsThatAnotherDecidedAtTheSameTime: a PC that was away reads
// of the other decision before anybody is connected, as after its start.
func TestHUB_06_WhoComesLaterHearsThatAnotherDecidedAtTheSameTime(t *testing.T) {
	b := newBench(t)
	if err := b.db.Remote().RestartTeam(t.Context(), "hub crew", "one"); err != nil {
		t.Fatal(err)
	}
	teamDecision := func(id, topic, author string, own bool, sequence uint64, follows string) store.TeamDecision {
		return store.TeamDecision{PC: author, Own: own, Sequence: sequence, Number: int64(sequence), Follows: follows, Revision: decision.Revision{ //nolint:gosec // a few
			ID: id, Topic: topic, Text: "words <of " + id + ">", Scope: decision.AllSessions(), CreatedAt: 1000, Author: bridge.Address{ID: author, Name: author, Agent: bridge.Codex},
		}}
	}
	_, refused, err := b.db.Remote().ImportTeam(t.Context(), []store.TeamDecision{
		teamDecision("d1", "db", "planner", true, 1, ""), teamDecision("d2", "db", "desk/api", false, 2, ""),
		teamDecision("d3", "style", "planner", true, 3, ""), teamDecision("d4", "style", "desk/api", false, 4, "d3"), // it knew the other one
		teamDecision("d5", "editor", "desk/api", false, 5, ""), teamDecision("d6", "editor", "planner", true, 6, ""), // ours is in force
	}, store.TeamPosition{Team: "hub crew", Stream: "one", Sequence: 6})
	if err != nil || len(refused) > 0 {
		t.Fatal(refused, err)
	}
	news, _, err := b.db.Remote().TeamNews(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tell := func() {
		t.Helper()
		if _, err := b.broker.NotifyDecisions(t.Context(), news); err != nil {
			t.Fatal(err)
		}
	}
	tell() // nobody is there
	p := b.join(api.Register{Name: "p", SessionID: "s1", Cwd: "/a"})
	tell()
	tell()
	for text, want := range map[string]int{
		"words <of d2>": 1, "words <of d4>": 1, "words <of d5>": 1, "words <of d6>": 1, "words <of d1>": 0, "words <of d3>": 0,
		"Decision on \"db\" (planner decided on it at the same time: this one came later in the team's order and is in force": 1,
		"Decision on \"editor\" (not in force: planner decided on it at the same time":                                        1,
		"at the same time": 2,
	} {
		if got := tellings(t, p, text); got != want {
			t.Errorf("%q is told %d times, want %d", text, got, want)
		}
	}
}
