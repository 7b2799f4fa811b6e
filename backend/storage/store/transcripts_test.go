package store

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/search"
)

const ranJob = "codex-job-0000000a"

func saidPiece(from, upto int64, bodies ...string) Transcript {
	piece := Transcript{Job: ranJob, Agent: bridge.Codex, Session: "thread", Project: "/work", Path: "runs/x.jsonl", From: from, Upto: upto}
	for i, body := range bodies {
		piece.Lines = append(piece.Lines, TranscriptLine{Offset: from + int64(i), At: 5000 + int64(i), Kind: "text", Body: body})
	}
	return piece
}

func saidIn(t *testing.T, db *DB, typed string) []Said {
	t.Helper()
	q := wordQuery(t, typed)
	q.Kinds = []search.Kind{search.Run}
	wordIDs(t, db, q) // once the index has everything
	hits, _, err := db.SearchWords(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	said := []Said{}
	for _, hit := range hits {
		if hit.ID == "" || hit.At != hit.Said.At {
			t.Errorf("the hit is %+v", hit)
		}
		said = append(said, hit.Said)
	}
	return said
}

func TestJOB_25_SearchFindsWhatWasSaidInRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	db := openIndexed(t, path)
	// Another program's records are nobody's job.
	if err := execOn(path, `INSERT INTO conversations (id, agent, kind) VALUES ('theirs', 'claude', 'session');
		INSERT INTO conversation_records (source, generation, offset, conversation, at, body) VALUES ('theirs', 0, 0, 'theirs', 1, 'the parser of another')`); err != nil {
		t.Fatal(err)
	}
	if said := saidIn(t, db, "parser"); len(said) > 0 {
		t.Errorf("another program's record is %+v", said)
	}
	decideAt(t, db, "d1", "parser", "the parser stays", 2500)
	for _, piece := range []Transcript{saidPiece(0, 100, "make the parser tests pass", "I look at the lexer"), saidPiece(100, 150, "the parser passes")} {
		if err := db.KeepTranscript(t.Context(), piece); err != nil {
			t.Fatal(err)
		}
	}
	want := []Said{
		{Job: ranJob, Agent: bridge.Codex, Kind: "text", At: 5000, Body: "make the parser tests pass"},
		{Job: ranJob, Agent: bridge.Codex, Kind: "text", At: 5000, Body: "the parser passes"},
	}
	got := saidIn(t, db, "parser")
	if len(got) == 2 && got[0].Body != want[0].Body {
		got[0], got[1] = got[1], got[0]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	q := wordQuery(t, "parser")
	q.Kinds = []search.Kind{search.Decision}
	if found := wordIDs(t, db, q); len(found) != 1 || found[0] != "d1" {
		t.Errorf("the decisions are %v", found)
	}
}

func TestJOB_25_APieceIsKeptOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	db := openIndexed(t, path)
	if upto, ok, err := db.TranscriptUpto(t.Context(), ranJob); upto != 0 || !ok || err != nil {
		t.Errorf("at first: %d, %t, %v", upto, ok, err)
	}
	if err := db.KeepTranscript(t.Context(), saidPiece(0, 100, "one")); err != nil {
		t.Fatal(err)
	}
	for _, from := range []int64{0, 50, 150} {
		if err := db.KeepTranscript(t.Context(), saidPiece(from, 200, "other")); bridge.CodeOf(err) != bridge.Conflict {
			t.Errorf("a piece from byte %d: %v", from, err)
		}
	}
	if upto, _, err := db.TranscriptUpto(t.Context(), ranJob); upto != 100 || err != nil {
		t.Errorf("it has %d bytes, %v", upto, err)
	}
	if said := saidIn(t, db, "other"); len(said) > 0 {
		t.Errorf("what was refused is kept as %+v", said)
	}
}

func TestJOB_25_AStoreWithoutTheTablesKeepsNoneForNow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	db := openIndexed(t, path)
	if err := execOn(path, "DROP TABLE conversation_records"); err != nil {
		t.Fatal(err)
	}
	if err := db.KeepTranscript(t.Context(), saidPiece(0, 100, "one")); bridge.CodeOf(err) != bridge.Unsupported {
		t.Errorf("it is kept: %v", err)
	}
}

func execOn(path, script string) error {
	pool, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.Exec("PRAGMA busy_timeout = 5000; " + script); err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	return nil
}
