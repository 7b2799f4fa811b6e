package store

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
)

func ofTeam(id, text string, sequence uint64, number int64) TeamDecision {
	return TeamDecision{
		Revision: decision.Revision{ID: id, Topic: "db", Text: text, Scope: decision.AllSessions(), Author: bridge.Address{ID: "desk/api", Name: "desk/api"}, CreatedAt: int64(sequence)},
		PC:       "desk-id", Sequence: sequence, Number: number,
	}
}

// TestHUB_06_ADecisionAndItsPlaceAreOneCommit breaks off where the place is kept, and
// where a decision is: what was read comes again, and is there once.
func TestHUB_06_ADecisionAndItsPlaceAreOneCommit(t *testing.T) {
	for _, table := range []string{"team_place", "team_decisions", "remote_decisions"} {
		t.Run("HUB-06 "+table, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bridge.db")
			db := openAt(t, path)
			if err := db.Remote().RestartTeam(t.Context(), "hub crew", "stream-1"); err != nil {
				t.Fatal(err)
			}
			event := "INSERT"
			if table == "team_place" {
				event = "UPDATE"
			}
			inStore(t, path, "CREATE TRIGGER broken BEFORE "+event+" ON "+table+" BEGIN SELECT RAISE(ABORT, 'the power failed'); END")
			read := []TeamDecision{ofTeam("d1", "SQLite", 1, 10), ofTeam("d2", "Postgres", 2, 20)}
			upTo := TeamPosition{Team: "hub crew", Stream: "stream-1", Sequence: 2, Mark: "m"}
			if _, _, err := db.Remote().ImportTeam(t.Context(), read, upTo); err == nil || !strings.Contains(err.Error(), "the power failed") {
				t.Fatalf("ImportTeam: %v", err)
			}
			all, err := db.Decisions(t.Context(), decision.Lookup{History: true})
			place, placeErr := db.Remote().TeamPosition(t.Context())
			if err != nil || placeErr != nil || len(all) != 0 || place.Sequence != 0 {
				t.Fatalf("after the failure there are %d decisions up to %d, %v, %v", len(all), place.Sequence, err, placeErr)
			}
			inStore(t, path, "DROP TRIGGER broken")
			for range 2 {
				if _, _, err := db.Remote().ImportTeam(t.Context(), read, upTo); err != nil {
					t.Fatal(err)
				}
			}
			all, err = db.Decisions(t.Context(), decision.Lookup{History: true})
			place, _ = db.Remote().TeamPosition(t.Context())
			if err != nil || len(all) != 2 || all[0].ID != "d2" || !all[0].Current || place.Sequence != 2 || place.Mark != "m" {
				t.Errorf("there are %+v up to %+v, %v", all, place, err)
			}
		})
	}
}

func TestHUB_06_AReplayOfWhatAPCSaidBeforeCountsForNothing(t *testing.T) {
	db := openAt(t, filepath.Join(t.TempDir(), "bridge.db"))
	remote := db.Remote()
	take := func(stream string, upTo uint64, list ...TeamDecision) map[uint64]error {
		t.Helper()
		_, refused, err := remote.ImportTeam(context.Background(), list, TeamPosition{Team: "hub crew", Stream: stream, Sequence: upTo})
		if err != nil {
			t.Fatal(err)
		}
		return refused
	}
	restart := func(stream string) {
		t.Helper()
		if err := remote.RestartTeam(t.Context(), "hub crew", stream); err != nil {
			t.Fatal(err)
		}
	}
	restart("one")
	if refused := take("one", 2, ofTeam("new", "said last", 1, 20), ofTeam("old", "said before, and kept by somebody", 2, 10)); refused[2] == nil || len(refused) != 1 {
		t.Errorf("refused is %v", refused)
	}
	// In a stream that begins anew the same goes again.
	restart("two")
	if refused := take("two", 2, ofTeam("new", "said last", 1, 30), ofTeam("old", "said before, and kept by somebody", 2, 10)); refused[2] == nil {
		t.Errorf("refused is %v", refused)
	}
	other := ofTeam("new", "another text", 3, 40)
	other.PC = "eve"
	restart("three")
	if refused := take("three", 3, other); bridge.CodeOf(refused[3]) != bridge.Conflict {
		t.Errorf("an id that is another decision's: %v", refused)
	}
	all, err := db.Decisions(t.Context(), decision.Lookup{History: true})
	if err != nil || len(all) != 1 || all[0].Text != "said last" {
		t.Errorf("there are %+v, %v", all, err)
	}
}
