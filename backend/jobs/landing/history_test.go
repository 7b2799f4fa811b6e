package landing

import (
	"testing"

	"bridge/backend/core/job"
)

// finishes returns a job's landing from its finishes, oldest first.
func finishes(all ...job.Finish) *job.Landing {
	if len(all) == 0 {
		return nil
	}
	return &job.Landing{Finish: all[len(all)-1], Earlier: all[:len(all)-1]}
}

func TestPGE_11_WhatAnUndoTakesBackAndWhichMergesAreUndone(t *testing.T) {
	finish := func(action string, state job.LandingState, target, next string) job.Finish {
		return job.Finish{Action: action, State: state, Target: target, Next: next}
	}
	done := func(action, target, next string) job.Finish { return finish(action, job.LandingDone, target, next) }
	squash, apply := done("squash", "A", "B"), done("apply", "A", "tree")
	merge, merge2 := done("merge", "A", "B"), done("merge", "C", "D")
	undo, undo2 := done("undo", "B", "C"), done("undo", "D", "E")
	discard, keep := done("discard", "", ""), done("keep", "", "")
	for _, tt := range []struct {
		name     string
		all      []job.Finish
		standing int // the index in all, or -1
		undone   string
	}{
		{"nothing", nil, -1, ""},
		{"a squash", []job.Finish{squash}, 0, ""},
		{"an apply", []job.Finish{apply}, 0, ""},
		{"a discard", []job.Finish{discard}, 0, ""},
		{"a keep", []job.Finish{keep}, -1, ""},
		{"a keep after a squash", []job.Finish{squash, keep}, -1, ""},
		{"a squash without a change", []job.Finish{done("squash", "A", "A")}, -1, ""},
		{"a squash that goes on", []job.Finish{finish("squash", job.LandingBegun, "", "")}, -1, ""},
		{"a squash that failed", []job.Finish{finish("squash", job.LandingFailed, "A", "B")}, -1, ""},
		{"a squash that failed after an apply", []job.Finish{apply, finish("squash", job.LandingFailed, "A", "B")}, 0, ""},
		{"a squash that is only staged", []job.Finish{finish("squash", job.LandingStaged, "A", "B")}, 0, ""},
		{"an undo", []job.Finish{squash, undo}, -1, ""},
		{"an undo that failed", []job.Finish{squash, finish("undo", job.LandingFailed, "B", "C")}, 0, ""},
		{"an undo that is only staged", []job.Finish{squash, finish("undo", job.LandingStaged, "B", "C")}, 0, ""},
		{"an undo that goes on", []job.Finish{squash, finish("undo", job.LandingBegun, "", "")}, 0, ""},
		{"a landing after an undo", []job.Finish{squash, undo, merge2}, 2, ""},
		{"the undo of a merge", []job.Finish{merge, undo}, -1, "A"},
		{"the undo of a merge that failed", []job.Finish{merge, finish("undo", job.LandingFailed, "B", "C")}, 0, ""},
		{"a merge that landed again", []job.Finish{merge, undo, merge2}, 2, ""},
		{"both merges undone", []job.Finish{merge, undo, merge2, undo2}, -1, "A"},
		{"the second merge undone", []job.Finish{merge, merge2, undo2}, -1, "C"},
		{"a merge and the undo of a squash", []job.Finish{merge, done("squash", "B", "C"), done("undo", "C", "D")}, -1, ""},
		{"a merge and the undo of a discard", []job.Finish{merge, undo, discard, done("undo", "", "")}, -1, "A"},
		{"a merge and the undo of staged work", []job.Finish{merge, undo, finish("squash", job.LandingStaged, "C", "D"), done("undo", "D", "C")}, -1, "A"},
	} {
		got, want := standing(finishes(tt.all...)), -1
		for i, f := range tt.all {
			if got != nil && *got == f {
				want = i
			}
		}
		if want != tt.standing {
			t.Errorf("%s: an undo takes back %+v, want finish %d", tt.name, got, tt.standing)
		}
		if undone := undoneMerge(finishes(tt.all...)); undone != tt.undone {
			t.Errorf("%s: the undone merge is of %q, want %q", tt.name, undone, tt.undone)
		}
	}
}

func TestPGE_11_TheHistoryHasEachFinishOnceAndIsNotShared(t *testing.T) {
	if history(nil) != nil {
		t.Error("of nothing there is a history")
	}
	landing := finishes(job.Finish{Action: "squash", At: 1}, job.Finish{Action: "undo", At: 2})
	all := history(landing)
	if len(all) != 2 || all[0].At != 1 || all[1].At != 2 {
		t.Errorf("the history is %+v", all)
	}
	all[0].Action = "changed"
	if landing.Earlier[0].Action != "squash" {
		t.Error("the job's own record was changed")
	}
}
