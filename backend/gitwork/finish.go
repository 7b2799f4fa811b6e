package gitwork

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bridge/backend/bridge"
)

// Action is how the owner finishes a worktree job (JOB-18).
type Action string

// The actions. None removes a file of the worktree or a commit.
const (
	Apply   Action = "apply"   // staged in the main checkout, to be committed by the owner
	Squash  Action = "squash"  // one commit on the main checkout's branch
	Merge   Action = "merge"   // a merge commit on it
	Keep    Action = "keep"    // the branch stays as it is
	Discard Action = "discard" // the branch moves out of the way
)

// ParseAction returns the action of that name. The error names the choices.
func ParseAction(raw string) (Action, error) {
	if action := Action(raw); slices.Contains([]Action{Apply, Squash, Merge, Keep, Discard}, action) {
		return action, nil
	}
	return "", bridge.Errorf(bridge.Invalid, "unknown action %q: use apply, squash, merge, keep or discard", raw)
}

// Finish is what came of finishing a job, or would.
type Finish struct {
	Action    Action
	Conflicts []string // paths; where there are some nothing was done
	Done      bool
	Commit    string // on the main checkout's branch, or the job's head for keep and discard
	Branch    string // of the job, after it
}

// Finish lands or drops what a job did. It tries without touching a file first; the
// dry run ends there. A main checkout with changes of its own is refused (Conflict),
// as is one in the middle of a merge. Uncommitted work of the job is parked before.
func (g *Git) Finish(ctx context.Context, w Worktree, job string, action Action, message string, dry bool) (Finish, error) {
	if _, err := ParseAction(string(action)); err != nil {
		return Finish{}, err
	}
	head, branch, err := g.work(ctx, w, job, dry)
	if err != nil {
		return Finish{}, err
	}
	finish := Finish{Action: action, Conflicts: []string{}, Commit: head, Branch: branch}
	switch action {
	case Keep:
		finish.Done = !dry
		return finish, nil
	case Discard:
		return g.discard(ctx, w, job, finish, dry)
	default:
		return g.land(ctx, w, job, finish, message, dry)
	}
}

// work returns the commit that holds all that the job did, and its branch.
func (g *Git) work(ctx context.Context, w Worktree, job string, dry bool) (commit, branch string, err error) {
	if _, err := os.Lstat(w.Path); err != nil { // reclaimed: the branch has everything
		commit, err = g.output(ctx, w.Main, "rev-parse", "--verify", "-q", "refs/heads/"+w.Branch+"^{commit}")
		if err != nil {
			return "", "", bridge.Errorf(bridge.NotFound, "neither the worktree nor the branch of %s is there", job)
		}
		return commit, w.Branch, nil
	}
	if !dry {
		parked, err := g.Park(ctx, w, job)
		return parked.Head, parked.Branch, err
	}
	head, err := g.Head(ctx, w.Path)
	if err != nil {
		return "", "", err
	}
	tree, err := g.Snapshot(ctx, w.Path)
	if err != nil {
		return "", "", err
	}
	commit, err = g.commit(ctx, w.Path, tree, "bridge: "+job+" as it stands", head.Commit)
	return commit, head.Branch, err
}

// land brings head into the main checkout.
func (g *Git) land(ctx context.Context, w Worktree, job string, finish Finish, message string, dry bool) (Finish, error) {
	target, err := g.Head(ctx, w.Main)
	if err != nil {
		return Finish{}, err
	}
	theirs := finish.Commit
	finish.Commit = ""
	tree, conflicts, err := g.tryMerge(ctx, w.Main, target.Commit, theirs)
	if err != nil {
		return Finish{}, err
	}
	if finish.Conflicts = conflicts; len(conflicts) > 0 {
		return finish, nil
	}
	if err := g.refuseDirty(ctx, w.Main, job); err != nil {
		return Finish{}, err
	}
	if err := g.refuseInTheWay(ctx, w.Main, target.Commit, tree); err != nil || dry {
		return finish, err
	}
	if finish.Action != Apply && target.Branch == "" {
		return Finish{}, bridge.Errorf(bridge.Conflict, "%s is on no branch: switch to the one that is to have the work", w.Main)
	}
	next := tree
	if finish.Action != Apply {
		parents := []string{target.Commit}
		if finish.Action == Merge {
			parents = append(parents, theirs)
		}
		if message == "" {
			message = fmt.Sprintf("%s: %s\n", job, finish.Action)
		}
		if next, err = g.commitAs(ctx, g.owner(ctx, w.Main), w.Main, tree, message, parents...); err != nil {
			return Finish{}, err
		}
	}
	if err := g.checkout(ctx, w.Main, target.Commit, next); err != nil {
		return Finish{}, err
	}
	if finish.Action != Apply {
		// Only from where the merge was made; what is there otherwise stays staged.
		if _, err := g.output(ctx, w.Main, "update-ref", "-m", "bridge: "+string(finish.Action)+" "+job, "HEAD", next, target.Commit); err != nil {
			return Finish{}, err
		}
		finish.Commit = next
	}
	finish.Done = true
	return finish, nil
}

// checkout brings files and index from one commit to the next; nothing is in the way.
func (g *Git) checkout(ctx context.Context, top, from, to string) error {
	// A file that was only touched counts as changed until git has looked at it.
	if _, err := g.tamed(ctx, call{dir: top, args: []string{"update-index", "-q", "--refresh"}}); err != nil {
		return err
	}
	if _, err := g.tamed(ctx, call{dir: top, args: []string{"read-tree", "-m", "-u", from, to}}); err != nil {
		if codeOf(err) >= 0 {
			return bridge.Errorf(bridge.Conflict, "%s has files in the way: %w", top, err)
		}
		return err
	}
	return nil
}

// refuseInTheWay finds what git itself would write over: files that it ignores where
// new ones come, and changed files that it was told not to look at.
func (g *Git) refuseInTheWay(ctx context.Context, top, from, to string) error {
	raw, err := g.run(ctx, call{dir: top, args: []string{"diff-tree", "-r", "--no-renames", "-z", "--raw", from, to}})
	if err != nil {
		return err
	}
	listed, err := g.run(ctx, call{dir: top, args: []string{"ls-files", "-v", "-z"}})
	if err != nil {
		return err
	}
	unseen := map[string]bool{}
	for _, line := range fields(listed.out) {
		if line[0] == 'S' || line[0] >= 'a' && line[0] <= 'z' {
			unseen[line[2:]] = true
		}
	}
	gone := map[string]bool{}
	changes := parseRaw(fields(raw.out))
	for _, change := range changes {
		gone[change.Path] = change.Status == "deleted"
	}
	for _, change := range changes {
		blocked := ""
		_, err := os.Lstat(filepath.Join(top, filepath.FromSlash(change.Path)))
		switch {
		case change.Status == "added":
			blocked = inTheWay(top, change.Path, gone)
		case unseen[change.Path] && err == nil:
			blocked = change.Path
		}
		if blocked != "" {
			return bridge.Errorf(bridge.Conflict, "%s has a file in the way that git does not keep: %s", top, blocked)
		}
	}
	return nil
}

// inTheWay names what stands where a new file comes, or where one of its folders does;
// "" when there is nothing, or only what goes by the same change.
func inTheWay(top, path string, gone map[string]bool) string {
	parts := strings.Split(path, "/")
	for i := range parts {
		name := strings.Join(parts[:i+1], "/")
		info, err := os.Lstat(filepath.Join(top, filepath.FromSlash(name)))
		if err != nil {
			return ""
		}
		if isFolder := info.IsDir() && i+1 < len(parts); !isFolder && !gone[name] {
			return name
		}
	}
	return ""
}

// tryMerge merges two commits without touching a file. conflicts are paths.
func (g *Git) tryMerge(ctx context.Context, top, ours, theirs string) (tree string, conflicts []string, err error) {
	done, err := g.tamed(ctx, call{dir: top, args: []string{"merge-tree", "--write-tree", "--name-only", "-z", "--no-messages", ours, theirs}})
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
			conflicts = append(conflicts, ".") // one that is of no single path
		}
	}
	return parts[0], conflicts, nil
}

// unfinished are what git leaves in its folder in the middle of something.
var unfinished = []string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "BISECT_LOG"}

// refuseDirty wants a main checkout without changes of its own.
func (g *Git) refuseDirty(ctx context.Context, top, job string) error {
	done, err := g.tamed(ctx, call{dir: top, args: []string{"status", "--porcelain", "-z", "--untracked-files=no", "--ignore-submodules=dirty"}})
	if err != nil {
		return err
	}
	if changed := fields(done.out); len(changed) > 0 {
		return bridge.Errorf(bridge.Conflict, "%s has changes of its own (%s): commit or put them away, then finish %s", top, strings.TrimSpace(changed[0][min(3, len(changed[0])):]), job)
	}
	dir, err := g.output(ctx, top, "rev-parse", "--absolute-git-dir")
	if err != nil {
		return err
	}
	for _, name := range unfinished {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return bridge.Errorf(bridge.Conflict, "%s is in the middle of something (%s): end that first", top, name)
		}
	}
	return nil
}

// owner is who the owner's commits are by: nil is what git is told, ours where it is
// told nothing.
func (g *Git) owner(ctx context.Context, top string) []string {
	for _, who := range []string{"GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"} {
		if _, err := g.output(ctx, top, "-c", "user.useConfigOnly=true", "var", who); err != nil {
			return ours
		}
	}
	return nil
}

// discard moves the job's branch to bridge/discarded/<job>; the worktree stays on it
// until it is reclaimed.
func (g *Git) discard(ctx context.Context, w Worktree, job string, finish Finish, dry bool) (Finish, error) {
	to := DiscardedBranchOf(job)
	if dry || finish.Branch == to {
		finish.Done = !dry
		return finish, nil
	}
	if at, _ := g.output(ctx, w.Main, "rev-parse", "-q", "--verify", "refs/heads/"+to); at != "" {
		return Finish{}, bridge.Errorf(bridge.Conflict, "the branch %s is there already", to)
	}
	if _, err := g.output(ctx, w.Main, "branch", "-m", finish.Branch, to); err != nil {
		return Finish{}, err
	}
	finish.Branch, finish.Done = to, true
	return finish, nil
}

// Landing says how a branch's work came into another one.
type Landing string

// The landings.
const (
	NotLanded Landing = ""
	Ancestor  Landing = "merged"   // its commits are there
	Content   Landing = "squashed" // its changes are there, by other commits
)

// maxSearched bounds the commits that are compared with a squash.
const maxSearched = 2_000

// Landed tests whether what branch did is in target, by commits or by content
// (JOB-18): a squash or a rebase on the other side counts.
func (g *Git) Landed(ctx context.Context, top, branch, target string) (Landing, error) {
	_, err := g.output(ctx, top, "merge-base", "--is-ancestor", branch, target)
	if err == nil {
		return Ancestor, nil
	}
	if codeOf(err) != 1 {
		return NotLanded, err
	}
	base, err := g.output(ctx, top, "merge-base", branch, target)
	if codeOf(err) == 1 {
		return NotLanded, nil // they have nothing in common
	}
	if err != nil {
		return NotLanded, err
	}
	tree, conflicts, err := g.tryMerge(ctx, top, target, branch)
	if err != nil {
		return NotLanded, err
	}
	if has, err := g.output(ctx, top, "rev-parse", target+"^{tree}"); err != nil || len(conflicts) == 0 && has == tree {
		return Content, err // nothing is left to be merged
	}
	return g.byPatch(ctx, top, base, branch, target)
}

// byPatch looks for one commit with all the changes, or for each of the branch's
// commits by itself.
func (g *Git) byPatch(ctx context.Context, top, base, branch, target string) (Landing, error) {
	shape := []string{"-p", "--no-ext-diff", "--no-textconv", "--full-index", "--no-color", "--no-renames"}
	whole, err := g.patchIDs(ctx, top, append(append([]string{"diff-tree"}, shape...), base, branch)...)
	if err != nil {
		return NotLanded, err
	}
	log := append([]string{"log", "--no-merges", "--format=commit %H", "-n", fmt.Sprint(maxSearched)}, shape...)
	there, err := g.patchIDs(ctx, top, append(log, base+".."+target)...)
	if err != nil {
		return NotLanded, err
	}
	each, err := g.patchIDs(ctx, top, append(log, base+".."+branch)...)
	if err != nil {
		return NotLanded, err
	}
	missing := func(id string) bool { return !slices.Contains(there, id) }
	if len(whole) == 1 && !missing(whole[0]) || len(each) > 0 && !slices.ContainsFunc(each, missing) {
		return Content, nil
	}
	return NotLanded, nil
}

// patchIDs returns git's ids of the patches that a git prints.
func (g *Git) patchIDs(ctx context.Context, top string, args ...string) ([]string, error) {
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
