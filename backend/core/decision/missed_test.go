package decision

import (
	"fmt"
	"strings"
	"testing"
)

// TestSEC_12_AFloodOfAnotherPCIsToldAsANumber: however many decisions another PC brings,
// a new session is told of all of this PC's, of the newest of the others, and the number.
func TestSEC_12_AFloodOfAnotherPCIsToldAsANumber(t *testing.T) {
	revision := func(id, author string) Revision {
		r := Revision{ID: id, Topic: id, Text: id}
		r.Author.Name = author
		return r
	}
	var current []Revision // newest first
	for i := range 100 {
		current = append(current, revision(fmt.Sprintf("other-%02d", i), "laptop/api"))
		if i%10 == 9 {
			current = append(current, revision(fmt.Sprintf("own-%02d", i), "api"))
		}
	}
	missed, rest := Missed(current, Receipts{"other-00": "m", "own-99": "m"})
	var own, others []string
	for _, r := range missed {
		if strings.HasPrefix(r.ID, "own") {
			own = append(own, r.ID)
		} else {
			others = append(others, r.ID)
		}
	}
	if len(own) != 9 || own[0] != "own-89" {
		t.Errorf("own decisions: %v", own)
	}
	if len(others) != MaxImportedNotices || others[0] != "other-20" || others[len(others)-1] != "other-01" {
		t.Errorf("decisions of the other PC: %v", others)
	}
	if len(rest) != 79 || rest[0].ID != "other-21" {
		t.Errorf("the rest: %d", len(rest))
	}
	if body := (News{Revision: current[0], Rest: len(rest)}).Body(); !strings.Contains(body, "79 older ones are in force here") {
		t.Errorf("the number is not told: %s", body)
	}
	if body := (News{Revision: current[0]}).Body(); body != NotificationBody(current[0]) {
		t.Errorf("without a rest: %s", body)
	}
	if again, rest := Missed(current, toldOf(current)); len(again)+len(rest) != 0 {
		t.Errorf("told of all: %v %v", again, rest)
	}
}

func toldOf(list []Revision) Receipts {
	receipts := Receipts{}
	for _, r := range list {
		receipts[r.ID] = "m"
	}
	return receipts
}
