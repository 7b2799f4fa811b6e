package session

import (
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/job"
)

// TestRWM_16_EitherNormalFormNamesASession: a name is kept composed, and a target finds it
// composed and decomposed.
func TestRWM_16_EitherNormalFormNamesASession(t *testing.T) {
	const composed, decomposed = "caf\u00e9", "cafe\u0301"
	r := NewRoster(nil)
	first := &Session{ID: "p1", Kind: bridge.Claude}
	r.Join(first, decomposed)
	if first.Name != composed {
		t.Fatalf("it is called %q", first.Name)
	}
	for _, word := range []string{composed, decomposed} {
		found, err := r.Resolve(word, "")
		if err != nil || len(found) != 1 || found[0].ID != "p1" || !found[0].Direct {
			t.Errorf("%q names %v, %v", word, found, err)
		}
		if id, ok := r.IDOf(word); !ok || id != "p1" {
			t.Errorf("%q had the session %q", word, id)
		}
		if !(decision.Scope{Sessions: []string{word}}).Reaches(r.Target(first)) {
			t.Errorf("a decision for %q does not reach it", word)
		}
		lookup := decision.Lookup{Scope: &decision.Scope{Sessions: []string{word}}}.Widen([]decision.Target{r.Target(first)})
		if !lookup.Matches(decision.Revision{Scope: decision.Scope{Sessions: []string{"p1"}}}) {
			t.Errorf("of %q a decision for its id is not found", word)
		}
		if !(decision.Lookup{Scope: &decision.Scope{Sessions: []string{composed}}}).Matches(decision.Revision{Scope: decision.Scope{Sessions: []string{word}}}) {
			t.Errorf("a decision for %q is not found", word)
		}
		if !job.MaySend(word, "", []string{decomposed}) {
			t.Errorf("a job that may send to it may not send to %q", word)
		}
	}
	second := &Session{ID: "p2", Kind: bridge.Claude}
	r.Join(second, composed)
	if second.Name != composed+"-2" {
		t.Errorf("the second is called %q", second.Name)
	}
	for _, id := range []string{"p3", "p4"} {
		long := &Session{ID: id, Kind: bridge.Claude}
		r.Join(long, strings.Repeat("名", bridge.MaxNameChars))
		if err := bridge.CheckName(long.Name); err != nil || id == "p4" && !strings.HasSuffix(long.Name, "名-2") {
			t.Errorf("it is called %q, %v", long.Name, err)
		}
	}
}
