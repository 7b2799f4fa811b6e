package gitwork

import (
	"context"
	"slices"

	"bridge/backend/core/bridge"
	delegated "bridge/backend/core/job"
)

// Landed is a finish that an undo takes back.
type Landed struct {
	Action Action // Apply also for work that was staged but not committed
	Head   string // of the job
	Target string // the commit of the main checkout before it
	Next   string // its commit, or the staged tree
	On     string // the branch of the main checkout; "" for none or if not recorded
}

// Prepare creates the commit that takes the landing back; a dry run creates none. CarryOut
// performs the plan. Commits that came later stay, and files that conflict with them are the
// plan's Conflicts. The undo of an apply takes exactly the same changes out of files and index.
// The undo of a discard restores the branch. Prepare fails with Conflict if the main checkout
// is on another branch or lacks the landed commit, or if files that the undo would write have
// changes. It also does so for an unfinished merge. Then nothing has changed.
func (landed Landed) Prepare(ctx context.Context, g *Git, w Worktree, job, message string, dry bool) (Plan, error) {
	if landed.Action == Discard {
		plan, err := g.Prepare(ctx, w, job, Keep, "", dry)
		plan.Action, plan.Of = Undo, Discard
		return plan, err
	}
	g, err := g.ofMain(ctx, w)
	if err != nil {
		return Plan{}, err
	}
	plan := Plan{Action: Undo, Of: landed.Action, Conflicts: []string{}, Branch: w.Branch, Head: landed.Head, On: landed.On}
	return plan, landing{g, w, job}.takeBack(ctx, &plan, landed, message, dry)
}

// takeBack sets the target and the result of an undo.
func (l landing) takeBack(ctx context.Context, plan *Plan, landed Landed, message string, dry bool) error {
	if landed.Next == landed.Target || landed.Next == "" {
		return bridge.Errorf(bridge.Conflict, "%s landed no change in %s: there is nothing to undo", l.job, l.w.Main)
	}
	head, err := l.Head(ctx, l.w.Main)
	if err != nil {
		return err
	}
	if plan.commits() && head.Commit == landed.Target && head.Branch == landed.On {
		plan.Target, plan.Next = landed.Target, landed.Target // the owner took the commit back
		return nil
	}
	if err := l.refuseMoved(ctx, head, landed, plan.commits()); err != nil {
		return err
	}
	if err := l.refuseUnfinished(ctx); err != nil {
		return err
	}
	plan.Target, plan.Next = landed.Next, landed.Target
	if plan.commits() && head.Commit != landed.Next {
		if err := l.revertBelow(ctx, plan, landed, head.Commit); err != nil || len(plan.Conflicts) > 0 || plan.Next == plan.Target {
			return err
		}
	}
	if plan.staged, err = l.has(ctx, *plan); err != nil {
		return err
	}
	if !plan.staged {
		if err := l.refuseDiffering(ctx, plan); err != nil {
			return err
		}
		if err := l.refuseInTheWay(ctx, plan.Target, plan.Next); err != nil {
			return err
		}
	}
	if dry || !plan.commits() {
		return nil
	}
	if message == "" {
		if message, err = l.revertMessage(ctx, landed); err != nil {
			return err
		}
	}
	plan.Next, err = l.commitAs(ctx, l.owner(ctx, l.w), l.w.Main, plan.Next+"^{tree}", message, plan.Target)
	return err
}

// revertBelow sets the target and the result of an undo below later commits: the merge of head
// with a commit that takes the landing back. Next is Target if head has nothing left of it.
func (l landing) revertBelow(ctx context.Context, plan *Plan, landed Landed, head string) error {
	reverted, err := l.commit(ctx, l.w.Main, landed.Target+"^{tree}", "bridge: before the work of "+l.job, landed.Next)
	if err != nil {
		return err
	}
	tree, conflicts, err := l.tryMerge(ctx, l.w.Main, head, reverted)
	if err != nil {
		return err
	}
	has, err := l.output(ctx, l.w.Main, "rev-parse", head+"^{tree}")
	if err != nil {
		return err
	}
	plan.Conflicts, plan.Target, plan.Next = conflicts, head, tree
	if len(conflicts) == 0 && tree == has {
		plan.Next = head
	}
	return nil
}

// refuseMoved fails with Conflict if the main checkout is on another branch than the landing,
// or lacks its commit. After an apply it also does so for any other commit.
func (l landing) refuseMoved(ctx context.Context, head Head, landed Landed, committed bool) error {
	switch {
	case head.Branch != landed.On && landed.On != "":
		return bridge.Errorf(bridge.Conflict, "%s is on %s now, and the work of %s landed on %s: switch to it, then undo", l.w.Main, nameOf(head), l.job, landed.On)
	case !committed && head.Commit == landed.Target, committed && head.Commit == landed.Next:
		return nil
	case !committed:
		return bridge.Errorf(bridge.Conflict, "%s in %s has moved on since the changes of %s were staged: they may be committed", nameOf(head), l.w.Main, l.job)
	}
	_, err := l.output(ctx, l.w.Main, "merge-base", "--is-ancestor", landed.Next, head.Commit)
	if code := codeOf(err); code == 1 || code == 128 {
		return bridge.Errorf(bridge.Conflict, "%s in %s no longer has the commit %s of %s: there is nothing to undo", nameOf(head), l.w.Main, landed.Next[:10], l.job)
	}
	return err
}

// nameOf returns the branch of a head, or its commit if it is on none.
func nameOf(head Head) string {
	if head.Branch == "" {
		return head.Commit[:10]
	}
	return head.Branch
}

// revertMessage returns what git writes into the commit of a revert.
func (l landing) revertMessage(ctx context.Context, landed Landed) (string, error) {
	subject, err := l.output(ctx, l.w.Main, "log", "-1", "--format=%s", landed.Next)
	if err != nil {
		return "", err
	}
	reverts := landed.Next
	if landed.Action == Merge {
		reverts += ", reversing\nchanges made to " + landed.Target
	}
	return "Revert \"" + subject + "\"\n\nThis reverts commit " + reverts + ".\n", nil
}

// refuseDiffering fails with Conflict for changes in the files that an undo would write.
func (l landing) refuseDiffering(ctx context.Context, plan *Plan) error {
	differing, err := l.differing(ctx, plan.Target, plan.Next, plan.Target)
	if err != nil || len(differing) == 0 {
		return err
	}
	named := delegated.NamedPaths(differing)
	return bridge.Errorf(bridge.Conflict, "%s has changes of its own in what %s landed (%s): commit or put them away, then undo", l.w.Main, l.job, named)
}

// differing returns those paths of the changes between two trees where the index or the file
// differs from the tree at.
func (l landing) differing(ctx context.Context, from, to, at string) ([]string, error) {
	changed, err := l.run(ctx, call{dir: l.w.Main, args: []string{"diff-tree", "-r", "--no-renames", "-z", "--name-only", from, to}})
	if err != nil {
		return nil, err
	}
	staged, err := l.tamed(ctx, call{dir: l.w.Main, args: []string{"diff-index", "--cached", "--no-renames", "-z", "--name-only", "--ignore-submodules=dirty", at}})
	if err != nil {
		return nil, err
	}
	files, err := l.tamed(ctx, call{dir: l.w.Main, args: []string{"diff", "--no-renames", "--name-only", "-z", "--no-ext-diff", "--ignore-submodules=dirty"}})
	if err != nil {
		return nil, err
	}
	others := map[string]bool{}
	for _, path := range slices.Concat(fields(staged.out), fields(files.out)) {
		others[path] = true
	}
	return slices.DeleteFunc(fields(changed.out), func(path string) bool { return !others[path] }), nil
}

// sinceUndo returns the commit whose work is to be merged: the head of the job, or after the
// undo of a merge a commit that has the same files. Git would find nothing to merge otherwise.
func (l landing) sinceUndo(ctx context.Context, head string) (string, error) {
	if l.w.Undone == "" {
		return head, nil
	}
	base, err := l.output(ctx, l.w.Main, "merge-base", l.w.Undone, head)
	if codeOf(err) == 1 {
		return head, nil
	}
	if err != nil {
		return "", err
	}
	return l.commit(ctx, l.w.Main, head+"^{tree}", "bridge: "+l.job+" since its undo", base)
}
