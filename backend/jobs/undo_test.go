package jobs

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/jobs/gitwork"
	"bridge/backend/platform/ipc/api"
)

// landed is the finish that an undo of the first job takes back, or nil.
func (y *yard) landed() *job.Finish {
	y.t.Helper()
	view, err := y.jobs.View(first)
	if err != nil {
		y.t.Fatal(err)
	}
	return view.Worktree.Landed
}

func TestPGE_11_TheOwnerUndoesALanding(t *testing.T) {
	y := newYard(t)
	s, _ := y.give("01", y.mend)
	_, err := y.finish(first, gitwork.Undo)
	wantCode(t, "an undo of nothing", err, bridge.Conflict)
	if _, err = y.finish(first, gitwork.Merge); err != nil {
		t.Fatal(err)
	}
	y.reclaimed(first)
	head := y.run(y.main, "rev-parse", "HEAD")
	if l := y.landed(); l == nil || l.Action != "merge" || l.Next != head || l.On != "main" {
		t.Fatalf("it says that %+v can be undone", l)
	}
	_, err = s.JobFinish(t.Context(), api.JobFinishArgs{Job: first, Action: "undo"})
	wantCode(t, "its supervisor", err, bridge.Denied)
	tried, err := y.jobs.Finish(t.Context(), api.JobFinishArgs{Job: first, Action: "undo", DryRun: true})
	if err != nil || tried.Done || y.run(y.main, "rev-parse", "HEAD") != head || y.landed() == nil {
		t.Fatalf("the dry run: %+v, %v", tried, err)
	}
	got, err := y.finish(first, gitwork.Undo)
	if err != nil || !got.Done || got.Commit != y.run(y.main, "rev-parse", "HEAD") || y.run(y.main, "rev-parse", "HEAD~1") != head {
		t.Fatalf("undo: %+v, %v", got, err)
	}
	if y.read(y.main, "a.txt") != "one\ntwo\nthree\n" || y.run(y.main, "status", "--porcelain") != "" || y.landed() != nil {
		t.Errorf("the checkout has %q; %+v can be undone", y.read(y.main, "a.txt"), y.landed())
	}
	_, err = y.finish(first, gitwork.Undo)
	wantCode(t, "a second undo", err, bridge.Conflict)

	before, _ := y.jobs.get(first)
	y.down()
	y.up()
	if after, _ := y.jobs.get(first); !reflect.DeepEqual(after.Landing, before.Landing) || len(after.Landing.Earlier) != 1 || after.Landing.Of != "merge" {
		t.Errorf("the next broker reads %+v, want %+v", after.Landing, before.Landing)
	}
	if got, err = y.finish(first, gitwork.Merge); err != nil || !got.Done || y.read(y.main, "new.txt") != "not committed\n" {
		t.Errorf("merged again: %+v, %v", got, err)
	}
}

func TestPGE_11_AnUndoneJobGoesOnAndItsWorktreeStays(t *testing.T) {
	y := newYard(t)
	s, _ := y.give("01", y.mend)
	reviewed := y.run(y.main, "rev-parse", "bridge/"+first)
	if _, err := y.finish(first, gitwork.Merge); err != nil {
		t.Fatal(err)
	}
	y.reclaimed(first)
	y.write(y.main, "a.txt", "the owner's\n")
	y.run(y.main, "commit", "-qam", "later")
	got, err := y.finish(first, gitwork.Undo)
	wantCode(t, "below a later commit in the same lines", err, bridge.Conflict)
	wantText(t, fmt.Sprint(err), "later commits", "a.txt")
	if len(got.Conflicts) != 1 || y.landed() == nil || y.entry(first)["landing"].(map[string]any)["action"] != "merge" {
		t.Errorf("it answers %+v; the book has %v", got, y.entry(first)["landing"])
	}
	y.run(y.main, "reset", "-q", "--hard", "HEAD~1")
	if _, err = y.finish(first, gitwork.Undo); err != nil {
		t.Fatal(err)
	}
	if _, err := s.say(first, "more"); err != nil {
		t.Fatal(err)
	}
	y.carryOut(y.started(), func(string) {}) // all commits of its branch are in main, and were taken back
	y.jobs.landings.Settle(t.Context(), first)
	entry, _ := y.jobs.get(first)
	if !entry.Worktree.Exists() {
		t.Fatal("the worktree is taken away, and its work has not landed")
	}
	y.write(entry.Worktree.Path, "more.txt", "more\n")
	since, err := y.jobs.DiffSince(t.Context(), first, reviewed)
	if err != nil || since.Base != reviewed || len(since.Files) != 1 || since.Files[0].Path != "more.txt" {
		t.Errorf("since the review: %+v, %v", since, err)
	}
	for commit, code := range map[string]bridge.Code{strings.Repeat("a", 40): bridge.NotFound, y.run(y.main, "rev-parse", "HEAD"): bridge.NotFound, "main": bridge.Invalid} {
		_, err := y.jobs.DiffSince(t.Context(), first, commit)
		wantCode(t, "since "+commit, err, code)
	}
	if got, err = y.finish(first, gitwork.Squash); err != nil || y.read(y.main, "more.txt") != "more\n" || y.read(y.main, "new.txt") != "not committed\n" {
		t.Errorf("squashed again: %+v, %v", got, err)
	}
}

// undoAt is a step of an undo, after which the broker stops.
type undoAt string

const (
	undoBegun   undoAt = "begun"
	undoPlanned undoAt = "planned"
	undoStaged  undoAt = "staged" // the files are back, without a commit
	undoMade    undoAt = "made"
)

// stopsAt has the book and the repository as a broker leaves them that stops after a step.
func (y *yard) stopsAt(step undoAt) {
	y.t.Helper()
	entry, err := y.jobs.get(first)
	if err != nil {
		y.t.Fatal(err)
	}
	y.down()
	last := y.landedIn(entry)
	undo := job.Landing{Finish: job.Finish{Action: "undo", State: job.LandingBegun, Run: 1, At: 1}, Earlier: []job.Finish{last}}
	if step != undoBegun {
		w := gitwork.Recorded(*entry.Worktree)
		landed := gitwork.Landed{Action: gitwork.Action(last.Action), Head: last.Head, Target: last.Target, Next: last.Next, On: last.On}
		plan, err := landed.Prepare(y.t.Context(), y.git, w, first, "", false)
		if err != nil {
			y.t.Fatal(err)
		}
		undo.Head, undo.Target, undo.Next, undo.On, undo.Of = plan.Head, plan.Target, plan.Next, plan.On, string(plan.Of)
		switch step {
		case undoStaged:
			y.run(y.main, "read-tree", "-m", "-u", plan.Target, plan.Next)
		case undoMade:
			if _, err := y.git.CarryOut(y.t.Context(), w, first, plan); err != nil {
				y.t.Fatal(err)
			}
		case undoBegun, undoPlanned:
		}
	}
	y.rewrite(first, func(e map[string]any) { e["landing"] = undo })
	y.up()
}

// landedIn is the first finish of a job's history.
func (y *yard) landedIn(entry job.Job) job.Finish {
	if len(entry.Landing.Earlier) > 0 {
		return entry.Landing.Earlier[0]
	}
	return entry.Landing.Finish
}

func TestPGE_11_ABrokerThatStopsInAnUndoKnowsItsOutcome(t *testing.T) {
	for _, action := range []gitwork.Action{gitwork.Squash, gitwork.Merge, gitwork.Apply, gitwork.Discard} {
		t.Run(string(action), func(t *testing.T) {
			y := newYard(t)
			base := y.run(y.main, "rev-parse", "HEAD")
			y.give("01", y.mend)
			if _, err := y.finish(first, action); err != nil {
				t.Fatal(err)
			}
			if action != gitwork.Apply {
				y.reclaimed(first)
			}
			steps := []undoAt{undoBegun, undoPlanned, undoStaged, undoMade}
			want := map[undoAt]job.LandingState{undoBegun: job.LandingFailed, undoPlanned: job.LandingFailed, undoStaged: job.LandingStaged, undoMade: job.LandingDone}
			if action == gitwork.Apply || action == gitwork.Discard {
				steps = []undoAt{undoBegun, undoPlanned, undoMade}
			}
			for _, step := range steps {
				y.stopsAt(step)
				var entry job.Job
				eventually(t, string(step)+": somebody to say what became of it", func() bool {
					entry, _ = y.jobs.get(first)
					return entry.Landing.State != job.LandingBegun
				})
				if entry.Landing.State != want[step] || (y.landed() == nil) != (step == undoMade) {
					t.Errorf("after %s the book has %+v; %+v can be undone", step, entry.Landing.Finish, y.landed())
				}
			}
			if text := y.run(y.main, "diff", "--name-only", base); text != "" || y.run(y.main, "status", "--porcelain") != "" {
				t.Errorf("the checkout differs in %q", text)
			}
			_, err := y.finish(first, gitwork.Undo)
			wantCode(t, "another undo", err, bridge.Conflict)
			if got, err := y.finish(first, gitwork.Squash); err != nil || !got.Done || y.read(y.main, "new.txt") != "not committed\n" {
				t.Errorf("landed again: %+v, %v", got, err)
			}
		})
	}
}
