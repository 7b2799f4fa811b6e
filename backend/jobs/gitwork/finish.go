package gitwork

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
)

// Action is how the owner finishes a worktree job (JOB-18).
type Action string

// The actions. None removes a file of the worktree or a commit.
const (
	Apply   Action = "apply"   // staged in the main checkout, for the owner to commit
	Squash  Action = "squash"  // one commit on the main checkout's branch
	Merge   Action = "merge"   // a merge commit on that branch
	Keep    Action = "keep"    // the branch stays unchanged; a discarded one is restored
	Discard Action = "discard" // the branch is renamed out of the way
	Undo    Action = "undo"    // the last finish is taken back
)

// ParseAction returns the action of that name. The error lists the choices.
func ParseAction(raw string) (Action, error) {
	if action := Action(raw); slices.Contains([]Action{Apply, Squash, Merge, Keep, Discard, Undo}, action) {
		return action, nil
	}
	return "", bridge.Errorf(bridge.Invalid, "unknown action %q: use apply, squash, merge, keep, discard or undo", raw)
}

// Finish is the result of finishing a job, real or tried.
type Finish struct {
	Action    Action
	Conflicts []string // paths; if there are any, nothing was done
	Done      bool
	Commit    string // on the main checkout's branch, or the job's head for keep and discard; "" if an undo made none
	Branch    string // of the job, after the finish
	// LeftOut are sentences about content that git cannot store: it stays in the worktree.
	LeftOut []string
}

// Plan is a finish that was tried without a change to the owner's files. After an
// interruption, it shows whether the finish was carried out.
type Plan struct {
	Action    Action
	Conflicts []string
	Branch    string // of the job
	Head      string // the commit that has all of the job's work
	Target    string // the commit of the main checkout; "" for keep and discard
	On        string // the branch of the main checkout; "" for none
	Of        Action // the action that an undo takes back
	// Next is the next commit of the main checkout. It is a tree for apply and after a
	// dry run, and Target if no change is needed. For the undo of an apply, Target is the
	// tree, and Next the commit.
	Next string
	// Omitted is the content that git cannot store: it stays in the worktree.
	Omitted []Omission

	staged bool // the main checkout already has Next staged, not committed
}

// landing finishes one job.
type landing struct {
	*Git
	w   Worktree
	job string
}

// Finish lands or drops a job's work. It first tries without a change to a file; a dry
// run ends there. It fails with Conflict if the main checkout has changes or an
// unfinished merge. Otherwise it parks the job's uncommitted work.
func (g *Git) Finish(ctx context.Context, w Worktree, job string, action Action, message string, dry bool) (Finish, error) {
	plan, err := g.Prepare(ctx, w, job, action, message, dry)
	if err != nil {
		return Finish{}, err
	}
	if dry || len(plan.Conflicts) > 0 {
		return plan.Tried(), nil
	}
	return g.CarryOut(ctx, w, job, plan)
}

// Tried returns the Finish that a plan would have.
func (p Plan) Tried() Finish {
	finish := Finish{Action: p.Action, Conflicts: p.Conflicts, Branch: p.Branch, LeftOut: Sentences(p.Omitted)}
	if p.Target == "" && p.Action != Undo {
		finish.Commit = p.Head
	}
	return finish
}

// moves reports whether the plan only renames the job's branch.
func (p Plan) moves() bool {
	return p.Action == Keep || p.Action == Discard || p.Action == Undo && p.Of == Discard
}

// commits reports whether the plan adds a commit to the main checkout's branch.
func (p Plan) commits() bool { return !p.moves() && p.Action != Apply && p.Of != Apply }

// unchanged returns the commit of a plan without a change. An undo has none: the owner took
// the landing back.
func (p Plan) unchanged() string {
	if p.Action == Undo {
		return ""
	}
	return p.Target
}

// Prepare commits the job's uncommitted work on its branch and creates the commit that Finish
// would land; a dry run does neither. It fails with Invalid for an unknown action, with
// Invalid for an undo, which Landed prepares, and with
// NotFound if neither the worktree nor the branch exists. It fails with Conflict if the main
// checkout cannot take the work.
func (g *Git) Prepare(ctx context.Context, w Worktree, job string, action Action, message string, dry bool) (Plan, error) {
	if _, err := ParseAction(string(action)); err != nil {
		return Plan{}, err
	}
	if action == Undo {
		return Plan{}, bridge.Errorf(bridge.Invalid, "an undo needs the finish that it takes back")
	}
	g, err := g.inWorktree(ctx, w)
	if err != nil {
		return Plan{}, err
	}
	l := landing{g, w, job}
	plan := Plan{Action: action, Conflicts: []string{}}
	if err := l.work(ctx, &plan, dry); err != nil {
		return Plan{}, err
	}
	if action == Keep || action == Discard {
		return plan, nil
	}
	return plan, l.merge(ctx, &plan, message, dry)
}

// CarryOut performs the plan. A repeat has no effect. It fails with Conflict if the main
// checkout has files in the way or the new branch exists. It fails with Busy if another git has
// the index lock, and with Storage if the checkout cannot be written.
func (g *Git) CarryOut(ctx context.Context, w Worktree, job string, plan Plan) (Finish, error) {
	g, err := g.ofMain(ctx, w)
	if err != nil {
		return Finish{}, err
	}
	l, finish := landing{g, w, job}, plan.Tried()
	if plan.moves() {
		return l.move(ctx, finish, plan.movesTo(job))
	}
	return l.land(ctx, finish, plan)
}

// work sets the plan's head with all of the job's work, its branch, and the content
// that git cannot store.
func (l landing) work(ctx context.Context, plan *Plan, dry bool) (err error) {
	if _, err := os.Lstat(l.w.Path); err != nil { // reclaimed: the branch has everything
		plan.Branch = l.w.Branch
		plan.Head, err = l.output(ctx, l.w.Main, "rev-parse", "--verify", "-q", "refs/heads/"+l.w.Branch+"^{commit}")
		if err != nil {
			return bridge.Errorf(bridge.NotFound, "neither the worktree nor the branch of %s is there", l.job)
		}
		return nil
	}
	if !dry {
		parked, err := l.Park(ctx, l.w, l.job)
		plan.Head, plan.Branch, plan.Omitted = parked.Head, parked.Branch, parked.Omitted
		return cmp.Or(err, l.refusePart(plan.Action, parked.LeftOut))
	}
	head, err := l.Head(ctx, l.w.Path)
	if err != nil {
		return err
	}
	files, err := l.snapshot(ctx, l.w.Path, false)
	if err = cmp.Or(err, l.refusePart(plan.Action, files.leftOut)); err != nil {
		return err
	}
	plan.Branch, plan.Omitted = head.Branch, files.omitted
	plan.Head, err = l.commit(ctx, l.w.Path, files.tree, "bridge: "+l.job+" as it stands", head.Commit)
	return err
}

// refusePart fails with TooLarge if the landed work would be incomplete.
func (l landing) refusePart(action Action, out LeftOut) error {
	if out.Files == 0 || action == Keep || action == Discard {
		return nil
	}
	return bridge.Errorf(bridge.TooLarge, "%s: commit the ones that are wanted in %s, or have git ignore them", out, l.w.Path)
}

// merge tries to merge the plan's head into the main checkout, and sets the plan's result.
func (l landing) merge(ctx context.Context, plan *Plan, message string, dry bool) error {
	target, err := l.Head(ctx, l.w.Main)
	if err != nil {
		return err
	}
	plan.Target, plan.On = target.Commit, target.Branch
	incoming, err := l.sinceUndo(ctx, plan.Head)
	if err != nil {
		return err
	}
	tree, conflicts, err := l.tryMerge(ctx, l.w.Main, target.Commit, incoming)
	if err != nil {
		return err
	}
	if plan.Conflicts = conflicts; len(conflicts) > 0 {
		return nil
	}
	has, err := l.output(ctx, l.w.Main, "rev-parse", target.Commit+"^{tree}")
	if err != nil {
		return err
	}
	if plan.Next = tree; tree == has {
		plan.Next = target.Commit
		return nil
	}
	if err := l.refuseUnfinished(ctx); err != nil {
		return err
	}
	if plan.staged, err = l.isStaged(ctx, tree); err != nil {
		return err
	}
	if !plan.staged {
		if err := l.refuseDirty(ctx); err != nil {
			return err
		}
		if err := l.refuseInTheWay(ctx, target.Commit, tree); err != nil {
			return err
		}
	}
	if plan.Action == Apply {
		return nil
	}
	if target.Branch == "" {
		return bridge.Errorf(bridge.Conflict, "%s is on no branch: switch to the one that is to have the work", l.w.Main)
	}
	if dry {
		return nil
	}
	parents := []string{target.Commit}
	if plan.Action == Merge {
		parents = append(parents, plan.Head)
	}
	if message == "" {
		message = fmt.Sprintf("%s: %s\n", l.job, plan.Action)
	}
	plan.Next, err = l.commitAs(ctx, l.owner(ctx, l.w), l.w.Main, tree, message, parents...)
	return err
}

// land applies the plan to the main checkout.
func (l landing) land(ctx context.Context, finish Finish, plan Plan) (Finish, error) {
	if len(plan.Conflicts) > 0 {
		return finish, nil
	}
	if finish.Done = plan.Next == plan.Target; finish.Done {
		finish.Commit = plan.unchanged()
		return finish, nil
	}
	if !plan.staged {
		if err := l.checkout(ctx, plan.Target, plan.Next); err != nil {
			return Finish{}, err
		}
	}
	if plan.commits() {
		// This needs the target of the merge; if HEAD moved, the work stays staged.
		if _, err := l.output(ctx, l.w.Main, "update-ref", "-m", "bridge: "+string(finish.Action)+" "+l.job, "HEAD", plan.Next, plan.Target); err != nil {
			return Finish{}, err
		}
		finish.Commit = plan.Next
	}
	finish.Done = true
	return finish, nil
}

// Outcome returns the result of a plan whose execution was interrupted. It changes nothing. If
// the work is staged in the main checkout but not committed, staged is true. A repeat of the
// finish then commits it. It fails with Busy if another git has the index lock, and if git
// fails.
func (g *Git) Outcome(ctx context.Context, w Worktree, job string, plan Plan) (finish Finish, staged bool, err error) {
	if g, err = g.ofMain(ctx, w); err != nil {
		return Finish{}, false, err
	}
	finish = plan.Tried()
	if plan.Head == "" || plan.Target != "" && plan.Next == "" { // the trial was interrupted
		return finish, false, nil
	}
	if plan.Target == "" {
		branch := cmp.Or(plan.movesTo(job), plan.Branch)
		at, err := g.output(ctx, w.Main, "for-each-ref", "--format=%(objectname)", "refs/heads/"+branch)
		if finish.Done = err == nil && at == plan.Head; finish.Done {
			finish.Branch = branch
		}
		return finish, false, err
	}
	if plan.Next == plan.Target {
		finish.Done, finish.Commit = true, plan.unchanged()
		return finish, false, nil
	}
	if plan.commits() {
		_, err := g.output(ctx, w.Main, "merge-base", "--is-ancestor", plan.Next, "HEAD")
		if finish.Done = err == nil; finish.Done {
			finish.Commit = plan.Next
		}
		if err == nil || codeOf(err) != 1 {
			return finish, false, err
		}
	}
	if err := g.refuseLocked(ctx, w.Main); err != nil {
		return finish, false, err
	}
	staged, err = landing{g, w, job}.has(ctx, plan)
	finish.Done = staged && !plan.commits()
	return finish, staged, err
}

// refuseLocked fails with Busy if a git still works in a checkout: a git can outlive its parent.
func (g *program) refuseLocked(ctx context.Context, top string) error {
	lock, err := g.output(ctx, top, "rev-parse", "--path-format=absolute", "--git-path", "index.lock")
	if err != nil {
		return err
	}
	if _, err := os.Lstat(lock); err == nil {
		return bridge.Errorf(bridge.Busy, "another git is at work: %s is there (remove it if none runs)", lock)
	}
	return nil
}

// movesTo returns the new name of the job's branch, or "" if it stays.
func (p Plan) movesTo(job string) string {
	switch {
	case p.Action == Discard:
		return DiscardedBranchOf(job)
	case p.Action != Discard && p.Branch == DiscardedBranchOf(job):
		return BranchOf(job)
	default:
		return ""
	}
}

// has reports whether index and files of the main checkout have the plan's result.
func (l landing) has(ctx context.Context, plan Plan) (bool, error) {
	if plan.Action == Undo {
		differing, err := l.differing(ctx, plan.Target, plan.Next, plan.Next)
		return err == nil && len(differing) == 0, err
	}
	tree, err := l.output(ctx, l.w.Main, "rev-parse", plan.Next+"^{tree}")
	if err != nil {
		return false, err
	}
	return l.isStaged(ctx, tree)
}

// isStaged reports whether index and files of the main checkout equal tree.
func (l landing) isStaged(ctx context.Context, tree string) (bool, error) {
	wrote, err := l.tamed(ctx, call{dir: l.w.Main, args: []string{"write-tree"}})
	if err != nil || strings.TrimSpace(wrote.out) != tree {
		if codeOf(err) == 128 {
			err = nil // the owner's conflicts
		}
		return false, err
	}
	changed, err := l.tamed(ctx, call{dir: l.w.Main, args: []string{"diff", "--name-only", "-z", "--no-ext-diff", "--ignore-submodules=dirty"}})
	return changed.out == "", err
}

// checkout updates files and index from one commit to the next; nothing may be in the way.
func (l landing) checkout(ctx context.Context, from, to string) error {
	// A touched file counts as changed until git refreshes the index.
	if _, err := l.tamed(ctx, call{dir: l.w.Main, args: []string{"update-index", "-q", "--refresh"}}); err != nil {
		return cmp.Or(l.refuseLocked(ctx, l.w.Main), err) // it says nothing about a lock
	}
	if _, err := l.tamed(ctx, call{dir: l.w.Main, args: []string{"read-tree", "-m", "-u", from, to}}); err != nil {
		return l.brokenOff(ctx, from, to, err)
	}
	return nil
}

// refuseInTheWay fails with Conflict for files that git would overwrite: ignored files
// at paths of new ones, and changed files that git was told to skip.
func (l landing) refuseInTheWay(ctx context.Context, from, to string) error {
	raw, err := l.run(ctx, call{dir: l.w.Main, args: []string{"diff-tree", "-r", "--no-renames", "-z", "--raw", from, to}})
	if err != nil {
		return err
	}
	listed, err := l.run(ctx, call{dir: l.w.Main, args: []string{"ls-files", "-v", "-z"}})
	if err != nil {
		return err
	}
	unseen := map[string]bool{}
	for _, line := range fields(listed.out) {
		if line[0] == 'S' || line[0] >= 'a' && line[0] <= 'z' {
			unseen[line[2:]] = true
		}
	}
	deleted := map[string]bool{}
	changes := parseRaw(fields(raw.out))
	for _, change := range changes {
		deleted[change.Path] = change.Status == "deleted"
	}
	for _, change := range changes {
		blocked := ""
		_, err := os.Lstat(filepath.Join(l.w.Main, filepath.FromSlash(change.Path)))
		switch {
		case change.Status == "added":
			blocked = inTheWay(l.w.Main, change.Path, deleted)
		case unseen[change.Path] && err == nil:
			blocked = change.Path
		}
		if blocked != "" {
			return bridge.Errorf(bridge.Conflict, "%s has a file in the way that git does not keep: %s", l.w.Main, blocked)
		}
	}
	return nil
}

// inTheWay returns the path that blocks a new file or one of its folders. It returns ""
// if there is none, or the same change removes it.
func inTheWay(top, path string, deleted map[string]bool) string {
	parts := strings.Split(path, "/")
	for i := range parts {
		name := strings.Join(parts[:i+1], "/")
		info, err := os.Lstat(filepath.Join(top, filepath.FromSlash(name)))
		if err != nil {
			return ""
		}
		if isFolder := info.IsDir() && i+1 < len(parts); !isFolder && !deleted[name] {
			return name
		}
	}
	return ""
}

// tryMerge merges two commits without a change to files. conflicts are paths.
func (g *program) tryMerge(ctx context.Context, top, ours, incoming string) (tree string, conflicts []string, err error) {
	done, err := g.tamed(ctx, call{dir: top, args: []string{"merge-tree", "--write-tree", "--name-only", "-z", "--no-messages", ours, incoming}})
	if err != nil && codeOf(err) != 1 {
		return "", nil, bridge.Errorf(bridge.Conflict, "the work cannot be merged: %w", err)
	}
	parts := fields(done.out)
	if len(parts) == 0 || !isID(parts[0]) {
		return "", nil, bridge.Errorf(bridge.Unavailable, "git cannot try a merge: git 2.38 or newer is needed")
	}
	conflicts = []string{}
	if err != nil {
		conflicts = append(conflicts, slices.Compact(parts[1:])...)
		if len(conflicts) == 0 {
			conflicts = append(conflicts, ".") // a conflict without a single path
		}
	}
	return parts[0], conflicts, nil
}

// unfinished are the files in git's folder during an unfinished operation.
var unfinished = []string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "BISECT_LOG"}

// refuseDirty fails with Conflict if the main checkout has changes.
func (l landing) refuseDirty(ctx context.Context) error {
	done, err := l.tamed(ctx, call{dir: l.w.Main, args: []string{"status", "--porcelain", "-z", "--untracked-files=no", "--ignore-submodules=dirty"}})
	if err != nil {
		return err
	}
	if changed := fields(done.out); len(changed) > 0 {
		return bridge.Errorf(bridge.Conflict, "%s has changes of its own (%s): commit or put them away, then finish %s", l.w.Main, strings.TrimSpace(changed[0][min(3, len(changed[0])):]), l.job)
	}
	return nil
}

// refuseUnfinished fails with Conflict if the main checkout has an unfinished operation.
func (l landing) refuseUnfinished(ctx context.Context) error {
	dir, err := l.output(ctx, l.w.Main, "rev-parse", "--absolute-git-dir")
	if err != nil {
		return err
	}
	for _, name := range unfinished {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return bridge.Errorf(bridge.Conflict, "%s is in the middle of something (%s): end that first", l.w.Main, name)
		}
	}
	return nil
}

// move renames the job's branch if the name changes; the worktree stays on it.
func (l landing) move(ctx context.Context, finish Finish, branch string) (Finish, error) {
	finish.Done = true
	if branch == "" || finish.Branch == branch {
		return finish, nil
	}
	if at, _ := l.output(ctx, l.w.Main, "rev-parse", "-q", "--verify", "refs/heads/"+branch); at != "" {
		return Finish{}, bridge.Errorf(bridge.Conflict, "the branch %s is there already", branch)
	}
	if _, err := l.output(ctx, l.w.Main, "branch", "-m", finish.Branch, branch); err != nil {
		return Finish{}, err
	}
	finish.Branch = branch
	return finish, nil
}

// Landing is how a branch's work came into another branch.
type Landing string

// The landings.
const (
	NotLanded Landing = ""
	Ancestor  Landing = "merged"   // its commits are there
	Content   Landing = "squashed" // its changes are there, in other commits
)

// maxSearched limits the commits that are compared with a squash.
const maxSearched = 2_000

// Landed returns whether and how target has the work of branch, by commits or by content
// (JOB-18). A squash or rebase on the other side counts. It fails with Conflict if top is no
// checkout, and if git fails, for example for an unknown branch.
func (g *Git) Landed(ctx context.Context, top, branch, target string) (Landing, error) {
	g, err := g.at(ctx, top)
	if err != nil {
		return NotLanded, err
	}
	_, err = g.output(ctx, top, "merge-base", "--is-ancestor", branch, target)
	if err == nil {
		return Ancestor, nil
	}
	if codeOf(err) != 1 {
		return NotLanded, err
	}
	base, err := g.output(ctx, top, "merge-base", branch, target)
	if codeOf(err) == 1 {
		return NotLanded, nil // they have no common ancestor
	}
	if err != nil {
		return NotLanded, err
	}
	tree, conflicts, err := g.tryMerge(ctx, top, target, branch)
	if err != nil {
		return NotLanded, err
	}
	if has, err := g.output(ctx, top, "rev-parse", target+"^{tree}"); err != nil || len(conflicts) == 0 && has == tree {
		return Content, err // no change is left to merge
	}
	return g.byPatch(ctx, top, base, branch, target)
}

// byPatch searches for one commit with all the changes, or for each of the branch's
// commits.
func (g *program) byPatch(ctx context.Context, top, base, branch, target string) (Landing, error) {
	shape := []string{"-p", "--no-ext-diff", "--no-textconv", "--full-index", "--no-color", "--no-renames"}
	combined, err := g.patchIDs(ctx, top, append(append([]string{"diff-tree"}, shape...), base, branch)...)
	if err != nil {
		return NotLanded, err
	}
	log := append([]string{"log", "--no-merges", "--format=commit %H", "-n", fmt.Sprint(maxSearched)}, shape...)
	targetIDs, err := g.patchIDs(ctx, top, append(log, base+".."+target)...)
	if err != nil {
		return NotLanded, err
	}
	each, err := g.patchIDs(ctx, top, append(log, base+".."+branch)...)
	if err != nil {
		return NotLanded, err
	}
	missing := func(id string) bool { return !slices.Contains(targetIDs, id) }
	if len(combined) == 1 && !missing(combined[0]) || len(each) > 0 && !slices.ContainsFunc(each, missing) {
		return Content, nil
	}
	return NotLanded, nil
}

// patchIDs returns git's ids of the patches that a git prints.
func (g *program) patchIDs(ctx context.Context, top string, args ...string) ([]string, error) {
	patches, err := g.run(ctx, call{dir: top, args: args})
	if err != nil {
		return nil, err
	}
	done, err := g.run(ctx, call{dir: top, args: []string{"patch-id", "--stable"}, input: patches.out})
	if err != nil {
		return nil, err
	}
	var ids []string
	for line := range strings.Lines(done.out) {
		ids = append(ids, strings.Fields(line)[0])
	}
	return ids, nil
}
