package gitwork

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
)

// landed finishes a job that changed, added and removed a file, and returns what an undo needs.
func (w *world) landed(action Action) (Worktree, Landed) {
	w.t.Helper()
	w.write(w.main, "gone.txt", "gone\n")
	w.write(w.main, "other.txt", "the owner's\n")
	w.commit(w.main, "second")
	tree := w.add(w.main)
	w.write(tree.Path, "a.txt", "one\ntwo\nthree\nfour\n5\n")
	w.write(tree.Path, "new.txt", "new\n")
	if err := os.Remove(filepath.Join(tree.Path, "gone.txt")); err != nil {
		w.t.Fatal(err)
	}
	return tree, w.land(tree, action)
}

func (w *world) land(tree Worktree, action Action) Landed {
	w.t.Helper()
	plan, err := w.g.Prepare(w.ctx(), tree, job, action, "Mend a\n", false)
	if err != nil || len(plan.Conflicts) > 0 {
		w.t.Fatalf("Prepare = %+v, %v", plan, err)
	}
	if got, err := w.g.CarryOut(w.ctx(), tree, job, plan); err != nil || !got.Done {
		w.t.Fatalf("CarryOut = %+v, %v", got, err)
	}
	return Landed{Action: action, Head: plan.Head, Target: plan.Target, Next: plan.Next, On: plan.On}
}

// undo prepares an undo and performs it unless files conflict.
func (w *world) undo(tree Worktree, landed Landed) (Plan, Finish, error) {
	w.t.Helper()
	plan, err := landed.Prepare(w.ctx(), w.g, tree, job, "", false)
	if err != nil || len(plan.Conflicts) > 0 {
		return plan, plan.Tried(), err
	}
	finish, err := w.g.CarryOut(w.ctx(), tree, job, plan)
	return plan, finish, err
}

// looks returns the commit, the status and the branches of the main checkout.
func (w *world) looks() string {
	return w.git(w.main, "status", "--porcelain=v2", "--branch") + w.git(w.main, "for-each-ref", "refs/heads")
}

func TestPGE_11_AnUndoTakesALandingBackAndItCanLandAgain(t *testing.T) {
	for action, subject := range map[Action]string{Apply: "second", Squash: `Revert "Mend a"`, Merge: `Revert "Mend a"`} {
		t.Run(string(action), func(t *testing.T) {
			w := newWorld(t)
			tree, landed := w.landed(action)
			before := w.looks()
			if tried, err := landed.Prepare(w.ctx(), w.g, tree, job, "", true); err != nil || len(tried.Conflicts) != 0 || tried.Tried().Done {
				t.Fatalf("a dry run: %+v, %v", tried, err)
			}
			if after := w.looks(); after != before {
				t.Fatalf("a dry run changed %q to %q", before, after)
			}
			plan, got, err := w.undo(tree, landed)
			if err != nil || !got.Done || w.git(w.main, "diff", "--name-only", landed.Target) != "" || w.git(w.main, "status", "--porcelain") != "" {
				t.Fatalf("undo = %+v, %v; status %q", got, err, w.git(w.main, "status", "--porcelain"))
			}
			log := strings.Split(w.git(w.main, "log", "-1", "--format=%H|%P|%s|%an|%b"), "|")
			if log[2] != subject || action != Apply && (log[0] != got.Commit || log[1] != landed.Next || log[3] != "Olga Owner" || !strings.Contains(log[4], "This reverts commit "+landed.Next)) {
				t.Errorf("the last commit is %q", log)
			}
			if again, err := w.g.CarryOut(w.ctx(), tree, job, plan); action == Apply && (err != nil || !again.Done) {
				t.Errorf("a repeat: %+v, %v", again, err)
			}
			if outcome, _, err := w.g.Outcome(w.ctx(), tree, job, plan); err != nil || !outcome.Done || outcome.Commit != got.Commit {
				t.Errorf("Outcome = %+v, %v", outcome, err)
			}
			if action == Merge {
				tree.Undone = landed.Target
			}
			w.land(tree, action)
			if w.read(w.main, "new.txt") != "new\n" || w.read(w.main, "a.txt") != "one\ntwo\nthree\nfour\n5\n" {
				t.Error("what is landed again lacks something")
			}
		})
	}
}

func TestPGE_11_AnUndoBelowLaterCommitsKeepsThem(t *testing.T) {
	for _, action := range []Action{Squash, Merge} {
		t.Run(string(action), func(t *testing.T) {
			w := newWorld(t)
			tree, landed := w.landed(action)
			w.write(w.main, "a.txt", "1\ntwo\nthree\nfour\n5\n")
			later := w.commit(w.main, "later")
			w.write(w.main, "other.txt", "not committed\n")
			_, got, err := w.undo(tree, landed)
			if err != nil || !got.Done || w.git(w.main, "log", "-1", "--format=%H %P") != got.Commit+" "+later {
				t.Fatalf("undo = %+v, %v", got, err)
			}
			if text, changed := w.read(w.main, "a.txt"), w.git(w.main, "status", "--porcelain"); text != "1\ntwo\nthree\nfour\nfive\n" || changed != " M other.txt" {
				t.Errorf("a.txt is %q, the status %q", text, changed)
			}
			if _, got, err = w.undo(tree, landed); err != nil || !got.Done || got.Commit != "" {
				t.Errorf("an undo of nothing = %+v, %v", got, err)
			}
		})
	}
}

func TestPGE_11_AnUndoThatCannotBeDoneChangesNothing(t *testing.T) {
	w := newWorld(t)
	tree, landed := w.landed(Squash)
	back := func() { w.git(w.main, "reset", "-q", "--hard", landed.Next) }
	tests := []struct {
		name        string
		spoil, mend func()
		want        string // "" for a conflict with later commits
	}{
		{"a later commit in the same lines", func() { w.write(w.main, "a.txt", "V\n"); w.commit(w.main, "later") }, back, ""},
		{"a changed file", func() { w.write(w.main, "a.txt", "the owner's") }, back, "changes of its own in what " + job + " landed (a.txt)"},
		{"a staged file", func() { w.write(w.main, "new.txt", "s"); w.git(w.main, "add", "new.txt") }, back, "(new.txt)"},
		{
			"an ignored file", func() {
				w.write(w.main, ".git/info/exclude", "gone.txt\n")
				w.write(w.main, "gone.txt", "the owner's")
			}, func() {
				_ = os.Remove(filepath.Join(w.main, "gone.txt"))
			}, "has a file in the way that git does not keep: gone.txt",
		},
		{
			"the middle of a merge", func() { w.write(w.main, ".git/MERGE_HEAD", landed.Head+"\n") },
			func() { _ = os.Remove(filepath.Join(w.main, ".git", "MERGE_HEAD")) }, "in the middle of something",
		},
		{
			"another branch", func() { w.git(w.main, "checkout", "-q", "-b", "side") },
			func() { w.git(w.main, "checkout", "-q", "main") }, "is on side now",
		},
		{"no branch", func() { w.git(w.main, "checkout", "-q", "--detach") }, func() { w.git(w.main, "checkout", "-q", "main") }, "landed on main"},
		{"a branch without the landing", func() { w.git(w.main, "reset", "-q", "--hard", landed.Target); w.commit(w.main, "another") }, back, "no longer has the commit"},
	}
	for _, tt := range tests {
		tt.spoil()
		before := w.looks()
		plan, got, err := w.undo(tree, landed)
		if tt.want == "" && (err != nil || !slices.Equal(got.Conflicts, []string{"a.txt"})) {
			t.Errorf("%s: %+v, %v", tt.name, plan, err)
		}
		if tt.want != "" && (bridge.CodeOf(err) != bridge.Conflict || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		if after := w.looks(); got.Done || after != before {
			t.Errorf("%s: %q became %q", tt.name, before, after)
		}
		tt.mend()
	}
	w.git(w.main, "reset", "-q", "--hard", landed.Target) // the owner was quicker
	if _, got, err := w.undo(tree, landed); err != nil || !got.Done || got.Commit != "" {
		t.Errorf("after a reset: %+v, %v", got, err)
	}
}

func TestPGE_11_AnUndoOfStagedWorkTakesOutJustThat(t *testing.T) {
	w := newWorld(t)
	tree, landed := w.landed(Apply)
	base := landed.Target
	w.write(w.main, "a.txt", "and mine\n")
	if _, _, err := w.undo(tree, landed); bridge.CodeOf(err) != bridge.Conflict || w.read(w.main, "a.txt") != "and mine\n" {
		t.Errorf("with a change of the owner's: %v", err)
	}
	w.git(w.main, "checkout", "-q", "--", "a.txt")
	w.git(w.main, "commit", "-q", "-m", "by hand")
	if _, _, err := w.undo(tree, landed); bridge.CodeOf(err) != bridge.Conflict || !strings.Contains(err.Error(), "may be committed") {
		t.Errorf("after a commit: %v", err)
	}
	w.git(w.main, "reset", "-q", "--hard", base)

	plan, err := w.g.Prepare(w.ctx(), tree, job, Squash, "", false)
	if err != nil {
		t.Fatal(err)
	}
	g, err := w.g.inWorktree(w.ctx(), tree)
	if err == nil {
		err = (landing{g, tree, job}).checkout(w.ctx(), plan.Target, plan.Next) // and no more
	}
	if err != nil {
		t.Fatal(err)
	}
	w.write(w.main, "other.txt", "of the owner\n")
	w.git(w.main, "add", "other.txt")
	_, got, err := w.undo(tree, Landed{Action: Apply, Head: plan.Head, Target: plan.Target, Next: plan.Next, On: plan.On})
	if status := w.git(w.main, "status", "--porcelain"); err != nil || !got.Done || status != "M  other.txt" || w.git(w.main, "rev-parse", "HEAD") != base {
		t.Errorf("undo = %+v, %v; status %q", got, err, status)
	}
}

func TestPGE_11_AnUndoOfADiscardBringsTheBranchBack(t *testing.T) {
	w := newWorld(t)
	tree, _ := w.landed(Discard)
	tree.Branch = DiscardedBranchOf(job)
	w.git(w.main, "branch", BranchOf(job))
	before := w.looks()
	if _, _, err := w.undo(tree, Landed{Action: Discard}); bridge.CodeOf(err) != bridge.Conflict || w.looks() != before {
		t.Errorf("with another branch of that name: %v", err)
	}
	w.git(w.main, "branch", "-D", BranchOf(job))
	plan, got, err := w.undo(tree, Landed{Action: Discard})
	if err != nil || !got.Done || got.Commit != "" || got.Branch != BranchOf(job) || w.git(w.main, "show", got.Branch+":new.txt") != "new" {
		t.Fatalf("undo = %+v, %v", got, err)
	}
	if outcome, _, err := w.g.Outcome(w.ctx(), tree, job, plan); err != nil || !outcome.Done || outcome.Branch != BranchOf(job) {
		t.Errorf("Outcome = %+v, %v", outcome, err)
	}
	tree.Path += "-reclaimed" // and its branch is gone, too
	if _, _, err := w.undo(tree, Landed{Action: Discard}); bridge.CodeOf(err) != bridge.NotFound {
		t.Errorf("without its branch: %v", err)
	}
}

func TestPGE_11_OnlyCommitsOfTheBranchAreKnown(t *testing.T) {
	w := newWorld(t)
	tree := w.add(w.main)
	w.write(tree.Path, "a.txt", "1\n")
	first := w.commit(tree.Path, "one")
	w.write(tree.Path, "b.txt", "2\n")
	head := w.commit(tree.Path, "two")
	other := w.commit(w.main, "the owner's")
	for commit, want := range map[string]bool{first: true, head: true, tree.Base: true, other: false, strings.Repeat("a", 40): false} {
		if has, err := tree.Contains(w.ctx(), w.g, head, commit); err != nil || has != want {
			t.Errorf("Contains(%s) = %t, %v, want %t", commit, has, err, want)
		}
	}
	for _, commit := range []string{"HEAD", "main", "-h", first[:10], strings.ToUpper(first), first + "~1"} {
		if _, err := tree.Contains(w.ctx(), w.g, head, commit); bridge.CodeOf(err) != bridge.Invalid {
			t.Errorf("Contains(%q) = %v, want it refused", commit, err)
		}
	}
	changes, err := w.g.Diff(w.ctx(), tree.Path, first)
	if err != nil || len(changes) != 1 || changes[0].Path != "b.txt" {
		t.Errorf("since the first commit: %+v, %v", changes, err)
	}
}
