package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/storage/store/schema"
)

func withdrawal(id, topic string, at int64) decision.Revision {
	rev := revision(id, topic, "Withdrawn.", at, decision.Scope{})
	rev.Withdrawn = true
	return rev
}

// current lists the ids of what is in force, and of the whole history, newest first.
func current(t testing.TB, r *Reader) (inForce, history []string) {
	t.Helper()
	for _, all := range []bool{false, true} {
		found, err := r.Decisions(t.Context(), decision.Lookup{History: all})
		if err != nil {
			t.Fatal(err)
		}
		for _, rev := range found {
			if all {
				history = append(history, rev.ID)
			} else {
				inForce = append(inForce, rev.ID)
			}
		}
	}
	return inForce, history
}

func wantCurrent(t testing.TB, r *Reader, inForce, history []string) {
	t.Helper()
	gotForce, gotHistory := current(t, r)
	if diff := cmp.Diff([][]string{inForce, history}, [][]string{gotForce, gotHistory}); diff != "" {
		t.Errorf("in force and history (-want +got):\n%s", diff)
	}
}

func TestPGE_04_AWithdrawalIsARevision(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	db, err := Open(t.Context(), path, testOptions())
	if err != nil {
		t.Fatal(err)
	}
	shop := decision.ProjectOf("/shop")
	decide(t, db, revision("d1", "db", "one", 1, shop), "s1")
	rev, queued, err := db.RecordDecision(t.Context(), withdrawal("d2", "db", 2), tell("s1", "s2"))
	if err != nil || rev.Current || !rev.Withdrawn || rev.Scope.Project != shop.Project || rev.Supersedes == nil || *rev.Supersedes != "d1" || len(queued) != 2 {
		t.Fatalf("it is %+v, queued %d, %v", rev, len(queued), err)
	}
	wantCurrent(t, db.Reader, nil, []string{"d2", "d1"})
	if again, queued, err := db.RecordDecision(t.Context(), withdrawal("d2", "db", 2), tell("s1")); err != nil || len(queued) != 0 || cmp.Diff(rev, again) != "" {
		t.Errorf("the same again is %+v, queued %d, %v", again, len(queued), err)
	}
	saw := withdrawal("d9", "db", 3)
	saw.Supersedes = ref("d1")
	for _, refused := range []decision.Revision{withdrawal("d9", "db", 3), withdrawal("d9", "other", 3), saw} {
		if _, _, err := db.RecordDecision(t.Context(), refused, tell("s1")); bridge.CodeOf(err) != bridge.NotFound {
			t.Errorf("a withdrawal of nothing: %v", err)
		}
	}
	wantCurrent(t, db.Reader, nil, []string{"d2", "d1"})
	if rev := decide(t, db, revision("d3", "db", "again", 3, decision.AllSessions())); !rev.Current || *rev.Supersedes != "d2" {
		t.Errorf("decided again it is %+v", rev)
	}
	saw.Supersedes = ref("d1")
	if _, _, err := db.RecordDecision(t.Context(), saw, tell("s1")); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("a withdrawal of what was replaced: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	reader, err := OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	wantCurrent(t, reader, []string{"d3"}, []string{"d3", "d2", "d1"})
}

// TestDEC_10_AWithdrawalItsMarkAndItsMessagesAreOneTransaction breaks each of them off.
func TestDEC_10_AWithdrawalItsMarkAndItsMessagesAreOneTransaction(t *testing.T) {
	for _, table := range []string{"decisions", "withdrawn_decisions", "decision_deliveries", "messages"} {
		t.Run("DEC-10 "+table, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bridge.db")
			db := openAt(t, path)
			decide(t, db, revision("d1", "db", "one", 1, decision.AllSessions()), "s1")
			inStore(t, path, "CREATE TRIGGER broken BEFORE INSERT ON "+table+" BEGIN SELECT RAISE(ABORT, 'the power failed'); END")
			if _, _, err := db.RecordDecision(t.Context(), withdrawal("d2", "db", 2), tell("s1")); err == nil {
				t.Error("it is recorded")
			}
			inStore(t, path, "DROP TRIGGER broken")
			wantCurrent(t, db.Reader, []string{"d1"}, []string{"d1"})
			if receipts, err := db.Delivered(t.Context(), "s1"); err != nil || len(receipts) != 1 {
				t.Errorf("told of %v, %v", receipts, err)
			}
			decide(t, db, withdrawal("d2", "db", 2), "s1")
			wantCurrent(t, db.Reader, nil, []string{"d2", "d1"})
		})
	}
}

// TestSEC_12_WhoWasToldANumberIsNotToldOfEachWithdrawal: it gets a receipt alone.
func TestSEC_12_WhoWasToldANumberIsNotToldOfEachWithdrawal(t *testing.T) {
	db := openTest(t)
	rev := decide(t, db, revision("d1", "db", "one", 1, decision.AllSessions()), "heard")
	if _, err := db.NotifyDecisions(t.Context(), decision.WithoutMessage([]decision.Revision{rev}, "counted", 1)); err != nil {
		t.Fatal(err)
	}
	_, queued, err := db.RecordDecision(t.Context(), withdrawal("d2", "db", 2), tell("heard", "counted", "came"))
	if err != nil || len(queued) != 2 || queued[0].SessionKey != "heard" || queued[1].SessionKey != "came" {
		t.Errorf("queued is %+v, %v", queued, err)
	}
	if receipts, err := db.Delivered(t.Context(), "counted"); err != nil || !receipts.Has("d2") || receipts.HasMessage("d2") {
		t.Errorf("the receipts are %v, %v", receipts, err)
	}
}

// TestVER_01_AStoreFromBeforeWithdrawalsGetsThem: a Reader reads it as it is.
func TestVER_01_AStoreFromBeforeWithdrawalsGetsThem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	db, err := Open(t.Context(), path, testOptions())
	if err != nil {
		t.Fatal(err)
	}
	decide(t, db, revision("d1", "db", "one", 1, decision.AllSessions()))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	inStore(t, path, "DROP TABLE withdrawn_decisions")
	reader, err := OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	wantCurrent(t, reader, []string{"d1"}, []string{"d1"})
	reader.Close()
	if lacks, err := schema.Lacks(t.Context(), path, schema.PrimaryStore, false); err != nil || len(lacks) != 0 {
		t.Errorf("before its upgrade it lacks %v, %v", lacks, err)
	}
	db = openAt(t, path)
	decide(t, db, withdrawal("d2", "db", 2))
	wantCurrent(t, db.Reader, nil, []string{"d2", "d1"})
}

// TestVER_04_NothingIsWithdrawnBesideAnOlderProgram: the mark would be in another file than
// the decision.
func TestVER_04_NothingIsWithdrawnBesideAnOlderProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	buildField(t, path, 5)
	opts := testOptions()
	opts.OldestReader = 5
	db, err := Open(t.Context(), path, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	decide(t, db, revision("fresh", "fresh", "one", 9_000, decision.AllSessions()))
	_, before := current(t, db.Reader)
	if _, _, err := db.RecordDecision(t.Context(), withdrawal("ended", "fresh", 9_001), tell()); bridge.CodeOf(err) != bridge.Unavailable {
		t.Errorf("it is withdrawn: %v", err)
	}
	if _, after := current(t, db.Reader); cmp.Diff(before, after) != "" {
		t.Errorf("the history is %v, was %v", after, before)
	}
	if _, err := os.Lstat(filepath.Join(filepath.Dir(path), "compat.db")); errors.Is(err, fs.ErrNotExist) {
		t.Error("the upgrade was not deferred")
	}
}

func TestRMT_22_AWithdrawalComesFromAnotherPC(t *testing.T) {
	remote := func(id string, at int64, withdrawn bool) decision.Revision {
		rev := revision(id, "db", "text of "+id, at, decision.AllSessions())
		rev.Author, rev.Withdrawn = bridge.Address{ID: "desk/api", Name: "desk/api"}, withdrawn
		return rev
	}
	for _, tt := range []struct {
		name string
		take func(db *DB) error
		want []string // in force
		all  []string
	}{
		{"after what it withdraws", func(db *DB) error {
			_, err := db.Remote().Import(context.Background(), []decision.Revision{remote("d1", 1, false), remote("d2", 2, true)}, "desk-id")
			return err
		}, nil, []string{"d2", "d1"}},
		{"before it", func(db *DB) error {
			_, err := db.Remote().Import(context.Background(), []decision.Revision{remote("d2", 2, true), remote("d1", 1, false)}, "desk-id")
			return err
		}, nil, []string{"d2", "d1"}},
		{"earlier than a decision of this PC", func(db *DB) error {
			_, _, err := db.RecordDecision(context.Background(), revision("own", "db", "own", 3, decision.AllSessions()), tell())
			if err == nil {
				_, err = db.Remote().Import(context.Background(), []decision.Revision{remote("d2", 2, true)}, "desk-id")
			}
			return err
		}, []string{"own"}, []string{"own", "d2"}},
		{"without its mark, and with it later", func(db *DB) error {
			for _, marked := range []bool{false, true, true} {
				if _, err := db.Remote().Import(context.Background(), []decision.Revision{remote("d1", 1, false), remote("d2", 2, marked)}, "desk-id"); err != nil {
					return err
				}
			}
			return nil
		}, nil, []string{"d2", "d1"}},
		{"with a mark for what another PC decided", func(db *DB) error {
			_, err := db.Remote().Import(context.Background(), []decision.Revision{remote("d1", 1, false)}, "desk-id")
			if err == nil {
				_, err = db.Remote().Import(context.Background(), []decision.Revision{remote("d1", 1, true)}, "eve-id")
			}
			return err
		}, []string{"d1"}, []string{"d1"}},
		{"with a mark for another text", func(db *DB) error {
			other := remote("d1", 1, true)
			other.Text = "another"
			_, err := db.Remote().Import(context.Background(), []decision.Revision{remote("d1", 1, false)}, "desk-id")
			if err == nil {
				_, err = db.Remote().Import(context.Background(), []decision.Revision{other}, "desk-id")
			}
			return err
		}, []string{"d1"}, []string{"d1"}},
	} {
		t.Run("RMT-22 "+tt.name, func(t *testing.T) {
			db := openTest(t)
			if err := tt.take(db); err != nil {
				t.Fatal(err)
			}
			wantCurrent(t, db.Reader, tt.want, tt.all)
		})
	}
}

func TestHUB_06_AWithdrawalHasItsPlaceInTheStream(t *testing.T) {
	db := openTest(t)
	if err := db.Remote().RestartTeam(t.Context(), "hub crew", "stream-1"); err != nil {
		t.Fatal(err)
	}
	first, ended := ofTeam("d1", "SQLite", 1, 10), ofTeam("d2", "Withdrawn.", 2, 20)
	ended.Withdrawn = true
	read := func(list ...TeamDecision) {
		t.Helper()
		if _, refused, err := db.Remote().ImportTeam(t.Context(), list, TeamPosition{Stream: "stream-1", Sequence: list[len(list)-1].Sequence}); err != nil || len(refused) > 0 {
			t.Fatal(refused, err)
		}
	}
	news := func() (list []string) {
		t.Helper()
		found, _, err := db.Remote().TeamNews(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, notice := range found {
			list = append(list, fmt.Sprintf("%s newest %v", notice.ID, notice.Newest))
		}
		return list
	}
	read(first, ended)
	wantCurrent(t, db.Reader, nil, []string{"d2", "d1"})
	if diff := cmp.Diff([]string{"d2 newest true"}, news()); diff != "" {
		t.Errorf("the news (-want +got):\n%s", diff)
	}
	read(ofTeam("d3", "Postgres", 3, 30))
	wantCurrent(t, db.Reader, []string{"d3"}, []string{"d3", "d2", "d1"})
	if diff := cmp.Diff([]string{"d3 newest true"}, news()); diff != "" {
		t.Errorf("the news (-want +got):\n%s", diff)
	}
}
