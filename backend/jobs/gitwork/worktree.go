package gitwork

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	delegated "bridge/backend/core/job"
	"bridge/backend/platform/disk"
)

// Worktree is a job's own checkout.
type Worktree struct {
	Main       string // the main checkout of its repository
	Path       string
	Folder     string // the folder in it where the job works
	Branch     string
	Base       string // the commit at its start
	BaseTree   string // the files at its start
	BaseBranch string // "" if the start was no branch
	// Undone is the main checkout's commit before a merge that was undone, or "". The work
	// since then can be landed again.
	Undone string
}

// Recorded returns the worktree of a job's entry.
func Recorded(w delegated.Worktree) Worktree {
	return Worktree{Main: w.RepoRoot, Path: w.Path, Folder: w.Cwd, Branch: w.Branch, Base: w.Base, BaseTree: w.BaseTree, BaseBranch: w.BaseBranch}
}

// Record returns the data of a new worktree for a job's entry.
func (w Worktree) Record() delegated.Worktree {
	return delegated.Worktree{
		RepoRoot: w.Main, Path: w.Path, Cwd: w.Folder, Branch: w.Branch, Base: w.Base, BaseBranch: w.BaseBranch,
		BranchHead: w.Base, BaseTree: w.BaseTree,
	}
}

// BranchOf returns the branch of a worktree job (JOB-08).
func BranchOf(job string) string { return "bridge/" + job }

// DiscardedBranchOf returns the branch for a job's discarded work.
func DiscardedBranchOf(job string) string { return "bridge/discarded/" + job }

// refOf returns the ref for content of a job that no branch holds.
func refOf(job, what string) string { return "refs/bridge/" + job + "/" + what }

// WorktreePath returns the path of a job's worktree below root, and the job's folder in it. root may
// not exist yet. WorktreePath fails if the links in root cannot be resolved.
func (r Repository) WorktreePath(job, root string) (path, folder string, err error) {
	if root, err = disk.CanonicalTarget(root); err != nil {
		return "", "", err
	}
	path = filepath.Join(root, r.Name()+"-"+job)
	return path, filepath.Join(path, filepath.FromSlash(r.Inside)), nil
}

// Add creates root/<repository>-<job>, a locked worktree with the branch bridge/<job> at the
// current commit of the checkout. It does not include uncommitted changes. It fails with
// Invalid for a bad name or repository, or without a commit, and with Conflict if git cannot
// create the worktree.
func (g *Git) Add(ctx context.Context, r Repository, job, root string) (Worktree, error) {
	if err := bridge.CheckPlainName(job); err != nil {
		return Worktree{}, err
	}
	if err := g.CheckWorktrees(ctx, r); err != nil {
		return Worktree{}, err
	}
	head, err := g.Head(ctx, r.Top)
	if err != nil {
		return Worktree{}, err
	}
	if err := disk.MakeDir(root); err != nil {
		return Worktree{}, err
	}
	path, folder, err := r.WorktreePath(job, root)
	if err != nil {
		return Worktree{}, err
	}
	record, err := g.record(ctx, r.checkout())
	if err != nil {
		return Worktree{}, err
	}
	g = g.Pin(&record)
	tree, err := g.output(ctx, r.Top, "rev-parse", "--verify", head.Commit+"^{tree}")
	if err != nil {
		return Worktree{}, err
	}
	hadBranch := g.hasBranch(ctx, r.Top, BranchOf(job))
	if made, err := g.makeCheckout(ctx, r.Top, path, append(addLocked(job), "--no-track", "-b", BranchOf(job), path, head.Commit)); err != nil {
		if made && !hadBranch {
			err = errors.Join(err, g.dropBranch(context.WithoutCancel(ctx), r.Top, BranchOf(job), head.Commit))
		}
		return Worktree{}, bridge.Errorf(bridge.Conflict, "no worktree can be made for %s: %w", job, err)
	}
	return Worktree{
		Main: r.Main, Path: path, Folder: folder, Branch: BranchOf(job), Base: head.Commit, BaseTree: tree, BaseBranch: head.Branch,
	}, nil
}

// CheckWorktrees fails with Invalid if the repository does not support job worktrees,
// or git could not store their work. One reason is a shared core.worktree: then the
// agent's git would change the owner's files.
func (g *program) CheckWorktrees(ctx context.Context, r Repository) error {
	for _, name := range []string{"worktrees", "objects", "refs", "logs", "packed-refs", "config"} {
		info, err := os.Lstat(filepath.Join(r.Common, name))
		isLink := err == nil && info.Mode()&fs.ModeSymlink != 0
		if isLink && (name == "worktrees" || len(g.sandbox) > 0) { // below the floor git writes in Common alone
			return bridge.Errorf(bridge.Invalid, "%s of %s is a link: Bridge makes no worktree there. Start the job without a worktree", name, r.Common)
		}
	}
	if first, _, _ := strings.Cut(BranchOf(""), "/"); g.hasBranch(ctx, r.Top, first) {
		return bridge.Errorf(bridge.Invalid, "%s has a branch named %s, so git allows no branch %s/…: rename it, then start the job again", r.Main, first, first)
	}
	config := filepath.Join(r.Common, "config")
	folder, _ := g.find(ctx, r.Top, "config", "--file", config, "core.worktree")
	perWorktree, _ := g.find(ctx, r.Top, "config", "--file", config, "--type=bool", "extensions.worktreeConfig")
	if folder == "" || perWorktree != "true" {
		return nil
	}
	return bridge.Errorf(bridge.Invalid, "all worktrees of %s would work on %s: move core.worktree into its own settings (git config --worktree), then start the job again", r.Main, folder)
}

func (g *program) hasBranch(ctx context.Context, top, branch string) bool {
	_, err := g.output(ctx, top, "show-ref", "--verify", "-q", "refs/heads/"+branch)
	return err == nil
}

// dropBranch deletes a branch at that commit. It returns nil if the branch does not exist.
func (g *program) dropBranch(ctx context.Context, top, branch, commit string) error {
	if !g.hasBranch(ctx, top, branch) {
		return nil
	}
	_, err := g.output(ctx, top, "update-ref", "-d", "refs/heads/"+branch, commit)
	return err
}

// addLocked returns the start of a command that creates a locked worktree.
func addLocked(job string) []string {
	return []string{"worktree", "add", "-q", "--lock", "--reason", "bridge: " + job + " works here"}
}

// Again restores a job's reclaimed worktree from its branch, and reports whether it did. An
// existing worktree stays unchanged. It fails with Conflict if git cannot create the worktree.
func (g *Git) Again(ctx context.Context, w Worktree, job string) (made bool, err error) {
	if !isFree(w.Path) {
		return false, nil
	}
	if g, err = g.ofMain(ctx, w); err != nil {
		return false, err
	}
	if _, err := g.makeCheckout(ctx, w.Main, w.Path, append(addLocked(job), w.Path, w.Branch)); err != nil {
		return false, bridge.Errorf(bridge.Conflict, "the worktree of %s cannot be made again: %w", job, err)
	}
	return true, nil
}

// isFree reports whether a worktree can be created at a path: it is missing, or an
// empty folder.
func isFree(path string) bool {
	entries, err := os.ReadDir(path)
	if _, statErr := os.Lstat(path); statErr != nil {
		return errors.Is(statErr, fs.ErrNotExist)
	}
	return err == nil && len(entries) == 0
}

// makeCheckout makes git create a worktree from the checkout at top. It creates the
// folder first, because below the floor git can write only there. An error leaves
// neither the folder nor git's record of it; tried reports whether git was started.
func (g *Git) makeCheckout(ctx context.Context, top, path string, args []string) (tried bool, err error) {
	if !isFree(path) {
		return false, bridge.Errorf(bridge.Conflict, "%s is there already", path)
	}
	if err := os.MkdirAll(path, 0o755); err != nil { //nolint:gosec // a checkout's folders are as git makes them
		return false, err
	}
	if err = g.checkOutNew(ctx, top, path, args); err != nil {
		err = errors.Join(err, g.clearCheckout(context.WithoutCancel(ctx), top, path))
	}
	return true, err
}

// clearCheckout removes the content at a worktree's path and git's record of it, before
// an agent has begun. The branch stays.
func (g *program) clearCheckout(ctx context.Context, top, path string) error {
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	if list, err := g.output(ctx, top, "worktree", "list", "--porcelain", "-z"); err != nil || !slices.Contains(fields(list), "worktree "+filepath.ToSlash(path)) {
		return err
	}
	_, err := g.output(ctx, top, "worktree", "remove", "--force", "--force", path) // twice: it is locked
	return err
}

// Withdraw removes a job's worktree before an agent has begun, with the files of a
// set-up command. The branch of a new worktree goes too. It fails with Conflict if the
// worktree is not the job's or has commits. If mayHold is set, an agent may have begun:
// then all unignored files must be unchanged.
func (g *Git) Withdraw(ctx context.Context, w Worktree, isNew, mayHold bool) error {
	g, err := g.inWorktree(ctx, w)
	if err == nil {
		err = g.Prove(ctx, w)
	}
	if err != nil {
		return err
	}
	head, err := g.Head(ctx, w.Path)
	if err != nil {
		return err
	}
	if head.Branch != w.Branch || isNew && head.Commit != w.Base {
		return bridge.Errorf(bridge.Conflict, "%s stays: something was committed or checked out there", w.Path)
	}
	if mayHold {
		committed, err := g.output(ctx, w.Path, "rev-parse", head.Commit+"^{tree}")
		if err != nil {
			return err
		}
		if tree, err := g.Snapshot(ctx, w.Path); err != nil || tree != committed {
			return errors.Join(err, bridge.Errorf(bridge.Conflict, "%s stays: it holds work", w.Path))
		}
	}
	if err := g.clearCheckout(ctx, w.Main, w.Path); err != nil || !isNew {
		return err
	}
	return g.dropBranch(ctx, w.Main, w.Branch, w.Base)
}

// cryptFolder is the folder of git-crypt's keys, below git's folder.
const cryptFolder = "git-crypt"

// checkOutNew makes git create the worktree. git-crypt searches for its keys in the
// worktree's git folder, so a link to the repository's keys comes first.
func (g *Git) checkOutNew(ctx context.Context, top, path string, args []string) error {
	add := call{dir: top, args: args, writable: []string{path}}
	common := g.places[top].Common
	keys := filepath.Join(common, cryptFolder)
	if info, err := os.Lstat(keys); err != nil || !info.IsDir() {
		_, err := g.tamed(ctx, add)
		return err
	}
	add.args = slices.Insert(slices.Clone(args), 2, "--no-checkout")
	if _, err := g.tamed(ctx, add); err != nil {
		return err
	}
	dir, err := gitDirOf(path, common)
	if err == nil {
		err = os.Symlink(keys, filepath.Join(dir, cryptFolder))
	}
	if err != nil {
		return err
	}
	own := *g.places[top]
	own.Top, own.GitDir, own.Inside = path, dir, ""
	_, err = g.with(&own).tamed(ctx, call{dir: path, args: []string{"reset", "-q", "--hard"}})
	return err
}

// Describe returns the data to record about a worktree before its job begins. It fails with NotFound
// if the worktree does not exist, and with Conflict if it is another one or incomplete.
func (g *Git) Describe(ctx context.Context, w Worktree) (delegated.Checkout, error) {
	g, err := g.inWorktree(ctx, w)
	if err == nil {
		err = g.Prove(ctx, w)
	}
	if err != nil {
		return delegated.Checkout{}, err
	}
	folders := g.places[w.Path]
	if _, err := os.Lstat(filepath.Join(folders.GitDir, "index")); err != nil {
		return delegated.Checkout{}, bridge.Errorf(bridge.Conflict, "%s was made in part only: remove it with git worktree remove", w.Path)
	}
	if folders.isRecorded {
		return folders.Checkout, nil
	}
	recorded, err := g.record(ctx, folders.Checkout)
	recorded.Author, recorded.Committer = g.identity(ctx, w.Main)
	return recorded, err
}

// Limits of .worktreeinclude.
const (
	maxIncluded      = 10_000
	maxIncludedBytes = 1 << 30
)

// Include copies the files that the main checkout's .worktreeinclude (in .gitignore syntax)
// names and git ignores there. A checkout needs them to run (JOB-19). It overwrites nothing,
// and returns the files, with slashes. It fails with TooLarge over the limits, with Denied for
// a path that leads out of a checkout, and if a file cannot be copied.
func (g *Git) Include(ctx context.Context, w Worktree) ([]string, error) {
	list := filepath.Join(w.Main, ".worktreeinclude")
	info, err := os.Lstat(list)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	wanted, err := g.run(ctx, call{dir: w.Main, args: []string{"ls-files", "-z", "--others", "--ignored", "--exclude-from=" + list}})
	if err != nil {
		return nil, err
	}
	ignored, err := g.run(ctx, call{dir: w.Main, args: []string{"ls-files", "-z", "--others", "--ignored", "--exclude-standard"}})
	if err != nil {
		return nil, err
	}
	isIgnored := map[string]bool{}
	for _, name := range fields(ignored.out) {
		isIgnored[name] = true
	}
	var names []string
	for _, name := range fields(wanted.out) {
		if isIgnored[name] {
			names = append(names, name)
		}
	}
	return copyInto(w, names)
}

// copyInto copies regular files from the main checkout, without overwriting and not
// through links.
func copyInto(w Worktree, names []string) (copied []string, err error) {
	if len(names) > maxIncluded {
		return nil, bridge.Errorf(bridge.TooLarge, ".worktreeinclude names %s: at most %d are copied", bridge.Counted(len(names), "file"), maxIncluded)
	}
	var total int64
	for _, name := range names {
		from, to := filepath.Join(w.Main, filepath.FromSlash(name)), filepath.Join(w.Path, filepath.FromSlash(name))
		info, err := os.Lstat(from)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if total += info.Size(); total > maxIncludedBytes {
			return copied, bridge.Errorf(bridge.TooLarge, ".worktreeinclude names more than %s", bridge.Size(maxIncludedBytes))
		}
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		if err := copyFile(w, from, to, info.Mode().Perm()); err != nil {
			return copied, fmt.Errorf("copy %s into the worktree: %w", name, err)
		}
		copied = append(copied, name)
	}
	return copied, nil
}

func copyFile(w Worktree, from, to string, mode fs.FileMode) error {
	for _, row := range []struct{ path, folder string }{{filepath.Dir(from), w.Main}, {filepath.Dir(to), w.Path}} {
		real, err := disk.CanonicalTarget(row.path)
		if err != nil {
			return err
		}
		if !under(real, row.folder) {
			return bridge.Errorf(bridge.Denied, "%s leads out of %s", row.path, row.folder)
		}
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // a checkout's folders are as git makes them
		return err
	}
	if _, _, err := (disk.Files{}).Copy(from, to); err != nil {
		return err
	}
	return os.Chmod(to, mode)
}

// copyIndex keeps the time of the index: only by that time git detects a file that
// changed together with its entry and has the same size.
func copyIndex(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if _, _, err := (disk.Files{}).Copy(from, to); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

// Start records the checkout at a job's start, for a job in the owner's own folder. It creates
// a ref for commit and tree, so that git keeps them. It fails with Invalid if the repository
// has no commit, and otherwise as Snapshot does.
func (g *Git) Start(ctx context.Context, top, job string) (head Head, tree string, err error) {
	if g, err = g.at(ctx, top); err != nil {
		return Head{}, "", err
	}
	if head, err = g.Head(ctx, top); err != nil {
		return Head{}, "", err
	}
	files, err := g.snapshot(ctx, top, true)
	if err != nil {
		return Head{}, "", err
	}
	err = g.keep(ctx, top, refOf(job, "start"), files.tree, "bridge: the files at the start of "+job, head.Commit)
	return head, files.tree, err
}

// End records the checkout at a job's end in the same way. It fails as Start does.
func (g *Git) End(ctx context.Context, top, job string) (tree string, err error) {
	if g, err = g.at(ctx, top); err != nil {
		return "", err
	}
	head, err := g.Head(ctx, top)
	if err != nil {
		return "", err
	}
	files, err := g.snapshot(ctx, top, true)
	if err != nil {
		return "", err
	}
	return files.tree, g.keep(ctx, top, refOf(job, "end"), files.tree, "bridge: the files at the end of "+job, head.Commit)
}

// keep creates a commit of tree and sets ref to it.
func (g *program) keep(ctx context.Context, top, ref, tree, message string, parents ...string) error {
	commit, err := g.commit(ctx, top, tree, message, parents...)
	if err != nil {
		return err
	}
	_, err = g.output(ctx, top, "update-ref", "--no-deref", ref, commit)
	return err
}

func (g *program) commit(ctx context.Context, top, tree, message string, parents ...string) (string, error) {
	return g.commitAs(ctx, ours, top, tree, message, parents...)
}

func (g *program) commitAs(ctx context.Context, who []string, top, tree, message string, parents ...string) (string, error) {
	args := []string{"commit-tree", tree, "-F", "-"}
	for _, parent := range parents {
		args = append(args, "-p", parent)
	}
	done, err := g.run(ctx, call{dir: top, env: who, args: args, input: message})
	return strings.TrimSpace(done.out), err
}

// Parked is the result of Park.
type Parked struct {
	Branch string // the branch of the job's work, checked out there
	Head   string
	Commit string // the commit of uncommitted work; "" if there was none
	// Left are repositories within the worktree: they stay, so the worktree stays too.
	Left []string
	// LeftOut are new files beyond the limits: they stay in the worktree too.
	LeftOut LeftOut
	// Omitted is content that git cannot store: it stays in the worktree too.
	Omitted []Omission
}

// Park makes a branch of the job hold everything in its worktree (JOB-08). A detached
// head, or one on another branch, gets a branch first; uncommitted and untracked files
// become one commit. Differing staged content gets a ref. Park removes nothing; a
// repeat has no effect. It fails with Conflict if the path is no longer the job's
// worktree, and then changes no branch.
func (g *Git) Park(ctx context.Context, w Worktree, job string) (Parked, error) {
	g, err := g.inWorktree(ctx, w)
	if err == nil {
		err = g.Prove(ctx, w)
	}
	if err != nil {
		return Parked{}, err
	}
	head, err := g.Head(ctx, w.Path)
	if err != nil {
		return Parked{}, err
	}
	files, err := g.snapshot(ctx, w.Path, false)
	if err != nil {
		return Parked{}, err
	}
	committed, err := g.output(ctx, w.Path, "rev-parse", head.Commit+"^{tree}")
	if err != nil {
		return Parked{}, err
	}
	branch, err := g.ownBranch(ctx, w, job, head)
	if err != nil {
		return Parked{}, err
	}
	parked := Parked{Branch: branch, Head: head.Commit, Left: files.repositories, LeftOut: files.leftOut, Omitted: files.omitted}
	if err := g.saveStaged(ctx, w, job, head, files.tree); err != nil {
		return Parked{}, err
	}
	if files.tree != committed {
		parked.Commit, err = g.commitAs(ctx, g.owner(ctx, w), w.Path, files.tree, "bridge: parked work of "+job, head.Commit)
		if err != nil {
			return Parked{}, err
		}
		parked.Head = parked.Commit
	}
	// Branch and index are updated; the files stay unchanged.
	_, err = g.tamed(ctx, call{dir: w.Path, args: []string{"reset", "-q", "--mixed", parked.Head}})
	return parked, err
}

// ownBranch puts the worktree on a branch of the job, at its current commit.
func (g *Git) ownBranch(ctx context.Context, w Worktree, job string, head Head) (string, error) {
	own := BranchOf(job)
	if head.Branch == own || head.Branch == DiscardedBranchOf(job) || strings.HasPrefix(head.Branch, own+"-") {
		return head.Branch, nil
	}
	for n := 2; ; n++ {
		branch := fmt.Sprintf("%s-%d", own, n)
		// All zeros: only if no ref has that name.
		_, err := g.output(ctx, w.Path, "update-ref", "refs/heads/"+branch, head.Commit, strings.Repeat("0", len(head.Commit)))
		if err != nil && n < 1000 {
			if at, _ := g.output(ctx, w.Path, "rev-parse", "-q", "--verify", "refs/heads/"+branch); at != "" {
				continue
			}
		}
		if err == nil {
			_, err = g.output(ctx, w.Path, "symbolic-ref", "HEAD", "refs/heads/"+branch)
		}
		return branch, err
	}
}

// saveStaged creates a ref for index content that is neither in the commit nor in the
// files. An index with conflicts has no content of its own.
func (g *Git) saveStaged(ctx context.Context, w Worktree, job string, head Head, files string) error {
	wrote, err := g.tamed(ctx, call{dir: w.Path, args: []string{"write-tree"}})
	if codeOf(err) == 128 {
		return nil // conflicts: their content is in commits
	}
	if err != nil {
		return err
	}
	staged := strings.TrimSpace(wrote.out)
	committed, err := g.output(ctx, w.Path, "rev-parse", head.Commit+"^{tree}")
	if err != nil || staged == files || staged == committed {
		return err
	}
	previous, _ := g.output(ctx, w.Path, "rev-parse", "-q", "--verify", refOf(job, "staged"))
	parents := []string{head.Commit}
	if previous != "" {
		parents = append(parents, previous)
	}
	return g.keep(ctx, w.Path, refOf(job, "staged"), staged, "bridge: what "+job+" had staged", parents...)
}
