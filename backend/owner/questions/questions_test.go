package questions

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"bridge/backend/broker"
	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/question"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/sqlitex"
)

// toldBroker stands where the broker is and remembers what it was told.
type toldBroker struct {
	Broker
	stored  map[string]string // messages by id
	by      map[string]chat.Transport
	decided map[string]string // texts by decision id
	fail    error             // of whatever is sent
	lost    bool              // the next message is stored, and nobody hears that it was
	changed int
}

func newTold() *toldBroker {
	return &toldBroker{stored: map[string]string{}, by: map[string]chat.Transport{}, decided: map[string]string{}}
}

func (b *toldBroker) Asker(context.Context, *ipc.Conn, api.Caller) (broker.Asker, error) {
	return broker.Asker{}, errors.New("not in this test")
}

func (b *toldBroker) store(id, body string, transport chat.Transport) error {
	if b.fail != nil {
		return b.fail
	}
	if _, known := b.stored[id]; known {
		return fmt.Errorf("%s was sent twice", id)
	}
	b.stored[id], b.by[id] = body, transport
	if b.lost {
		return errors.New("the process died here")
	}
	return nil
}

func (b *toldBroker) Chat(_ context.Context, r chat.Request) (chat.Outcome, error) {
	if r.Session == "gone" {
		return chat.Outcome{}, bridge.Errorf(bridge.NotFound, "no local session has the id")
	}
	return chat.Outcome{Transport: chat.Native}, b.store(r.MessageID, r.Body, chat.Native)
}

func (b *toldBroker) Deliver(_ context.Context, _ bridge.Address, _ string, args api.SendArgs) error {
	return b.store(args.MessageID, args.Body, chat.Bridge)
}

func (b *toldBroker) IsStored(_ context.Context, id string) (bool, error) {
	_, known := b.stored[id]
	return known, nil
}

func (b *toldBroker) DecideOwner(_ context.Context, _ string, args api.DecideArgs) (api.DecideResult, error) {
	b.decided[args.ID] = args.Topic + ": " + args.Text
	return api.DecideResult{}, b.fail
}

func (b *toldBroker) Changed() { b.changed++ }

func open(t *testing.T, path string, of Broker) *Questions {
	t.Helper()
	at := time.UnixMilli(1_800_000_000_000)
	q, err := Open(t.Context(), Options{Path: path, Broker: of, Now: func() time.Time { return at }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	return q
}

func asker(id string) broker.Asker {
	return broker.Asker{
		Address: bridge.Address{ID: id, Name: "name-" + id, Agent: bridge.Claude}, Cwd: "/src/app",
		Same: func(peerID string) bool { return peerID == id },
	}
}

func states(q *Questions) (list []string) {
	for _, item := range q.Questions() {
		list = append(list, item.ID+" "+string(item.State))
	}
	return list
}

func TestNED_03_AnAnswerReachesItsSessionOnceWhateverDies(t *testing.T) {
	for _, tt := range []struct {
		name string
		dies func(*toldBroker)
	}{
		{"nothing", func(*toldBroker) {}},
		{"before the message is stored", func(b *toldBroker) { b.fail = errors.New("the disk is full") }},
		{"after it, and before that is known", func(b *toldBroker) { b.lost = true }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path, toldBroker := filepath.Join(t.TempDir(), "questions.db"), newTold()
			first := open(t, path, toldBroker)
			if _, err := first.ask(t.Context(), asker("p-1"), "q-1", question.Args{Title: "Which port?"}); err != nil {
				t.Fatal(err)
			}
			tt.dies(toldBroker)
			item, err := first.Answer(t.Context(), "q-1", question.Answer{Text: "4778", Pin: true})
			if err != nil || item.State != question.Answered {
				t.Fatalf("%+v, %v", item, err)
			}
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			toldBroker.fail, toldBroker.lost = nil, false
			next := open(t, path, toldBroker)
			next.Resume(t.Context())
			next.Resume(t.Context())
			got := next.Questions()[0]
			if !got.Carried || !got.Pinned || len(toldBroker.stored) != 1 || toldBroker.stored["question-answer-q-1"] != "You asked (q-1): Which port?\n\n4778" {
				t.Errorf("%+v; sent %q", got, toldBroker.stored)
			}
			if toldBroker.decided["q-1"] != "Which port?: Which port? 4778" {
				t.Errorf("decided %q", toldBroker.decided)
			}
		})
	}
}

func TestNED_03_WhoWaitsGetsMailAndOthersTheWayOfTheOwnersWords(t *testing.T) {
	toldBroker := newTold()
	q := open(t, filepath.Join(t.TempDir(), "questions.db"), toldBroker)
	for id, asks := range map[string]struct {
		by       string
		blocking bool
		want     chat.Transport
	}{
		"q-1": {"p-1", true, chat.Bridge}, "q-2": {"p-1", false, chat.Native}, "q-3": {"gone", false, chat.Bridge},
	} {
		if _, err := q.ask(t.Context(), asker(asks.by), id, question.Args{Title: "t", Blocking: asks.blocking}); err != nil {
			t.Fatal(err)
		}
		if _, err := q.Answer(t.Context(), id, question.Answer{Text: "x"}); err != nil || toldBroker.by["question-answer-"+id] != asks.want {
			t.Errorf("%s went by %q, %v", id, toldBroker.by["question-answer-"+id], err)
		}
	}
}

func TestNED_03_OnlyTheAskerTakesBackAndAskingAnewReplaces(t *testing.T) {
	path, toldBroker := filepath.Join(t.TempDir(), "questions.db"), newTold()
	q := open(t, path, toldBroker)
	ask := func(by, id, topic string) error {
		_, err := q.ask(t.Context(), asker(by), id, question.Args{Title: "t", Topic: topic})
		return err
	}
	for _, err := range []error{ask("p-1", "q-1", "port"), ask("p-2", "q-2", "port"), ask("p-1", "q-3", "port"), ask("p-1", "q-3", "port")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := ask("p-2", "q-3", ""); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("another session's id: %v", err)
	}
	if _, err := q.withdraw(t.Context(), asker("p-2"), "q-3"); bridge.CodeOf(err) != bridge.NotFound {
		t.Errorf("another session's question: %v", err)
	}
	if _, err := q.get(asker("p-2"), "q-3"); bridge.CodeOf(err) != bridge.NotFound {
		t.Errorf("another session's question is told: %v", err)
	}
	for range 2 {
		if item, err := q.withdraw(t.Context(), asker("p-2"), "q-2"); err != nil || item.State != question.Cancelled {
			t.Errorf("%+v, %v", item, err)
		}
	}
	want := []string{"q-1 superseded", "q-2 cancelled", "q-3 open"}
	if got := states(q); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	if got := states(open(t, path, toldBroker)); !slices.Equal(got, want) {
		t.Errorf("read again %q, want %q", got, want)
	}
	if len(toldBroker.stored) != 0 {
		t.Errorf("somebody was told %q", toldBroker.stored)
	}
}

func TestNED_03_FiveOpenOfASessionAndTheSixthIsRefused(t *testing.T) {
	q := open(t, filepath.Join(t.TempDir(), "questions.db"), newTold())
	for i := range 5 {
		if _, err := q.ask(t.Context(), asker("p-1"), fmt.Sprintf("q-%d", i), question.Args{Title: "t"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := q.ask(t.Context(), asker("p-1"), "q-5", question.Args{Title: "t"}); bridge.CodeOf(err) != bridge.Conflict || len(q.Questions()) != 5 {
		t.Errorf("the sixth: %v", err)
	}
	if _, err := q.ask(t.Context(), asker("p-2"), "q-6", question.Args{Title: "t"}); err != nil {
		t.Errorf("another session's first: %v", err)
	}
}

// field is a questions.db as other programs of the same layout leave it.
func field(t *testing.T, version int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "questions.db")
	err := sqlitex.CreateWhole(t.Context(), path, func(ctx context.Context, pool *sql.DB) error {
		_, err := pool.ExecContext(ctx, fmt.Sprintf(`
			CREATE TABLE questions (id TEXT PRIMARY KEY, project TEXT, dedupe_key TEXT, status TEXT, record JSON);
			CREATE UNIQUE INDEX q_open ON questions (dedupe_key) WHERE status = 'open';
			CREATE TABLE question_events (n INTEGER);
			CREATE TABLE question_alerts (n INTEGER);
			INSERT INTO question_alerts VALUES (7);
			INSERT INTO questions VALUES ('f-1', '/src/old', 'k1', 'open', '{"title":"Old?","urgency":"high","options":"as they are there"}');
			INSERT INTO questions VALUES ('f-2', '/src/old', 'k2', 'answered', '{"title":"Older?","answer":"yes"}');
			INSERT INTO questions VALUES ('f-3', '/src/old', 'k3', 'open', 'no JSON');
			PRAGMA user_version = %d`, version))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNED_03_VER_06_AFieldsQuestionsAreKeptAsTheyAre(t *testing.T) {
	path := field(t, 1)
	q := open(t, path, newTold())
	if got := states(q); !slices.Equal(got, []string{"f-1 open", "f-2 answered"}) {
		t.Errorf("%q", got)
	}
	if facts := q.Needs(); len(facts) != 0 {
		t.Errorf("the owner is asked %+v", facts)
	}
	if _, err := q.Answer(t.Context(), "f-1", question.Answer{Text: "x"}); bridge.CodeOf(err) != bridge.Unsupported {
		t.Errorf("an answer that nobody could be told: %v", err)
	}
	q.Resume(t.Context())
	if _, err := q.ask(t.Context(), asker("p-1"), "q-1", question.Args{Title: "t"}); err != nil {
		t.Fatal(err)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	err := sqlitex.Quietly(t.Context(), path, false, func(pool *sql.DB) error {
		rows, err := sqlitex.Texts(t.Context(), pool, "SELECT id || ' ' || status || ' ' || record FROM questions WHERE id LIKE 'f-%' UNION ALL SELECT n FROM question_alerts")
		want := []string{
			`f-1 open {"title":"Old?","urgency":"high","options":"as they are there"}`, `f-2 answered {"title":"Older?","answer":"yes"}`, "f-3 open no JSON", "7",
		}
		if !slices.Equal(rows, want) {
			t.Errorf("%q", rows)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestVER_06_NED_03_ANewerQuestionsDBIsLeftAsItIs(t *testing.T) {
	_, err := Open(t.Context(), Options{Path: field(t, 2), Broker: newTold(), Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if bridge.CodeOf(err) != bridge.Unsupported {
		t.Error(err)
	}
}

func TestNED_03_TheLast100ThatAreOverAreListed(t *testing.T) {
	path, toldBroker := filepath.Join(t.TempDir(), "questions.db"), newTold()
	q := open(t, path, toldBroker)
	for i := range 103 {
		id := fmt.Sprintf("q-%03d", i)
		if _, err := q.ask(t.Context(), asker("p-1"), id, question.Args{Title: "t"}); err != nil {
			t.Fatal(err)
		}
		if _, err := q.withdraw(t.Context(), asker("p-1"), id); err != nil {
			t.Fatal(err)
		}
	}
	check := func(q *Questions) {
		t.Helper()
		if list := states(q); len(list) != 100 || list[0] != "q-003 cancelled" || list[99] != "q-102 cancelled" {
			t.Errorf("%d listed, from %s to %s", len(list), list[0], list[len(list)-1])
		}
	}
	check(q)
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	check(open(t, path, toldBroker))
}
