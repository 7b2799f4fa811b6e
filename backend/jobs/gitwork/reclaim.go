package gitwork

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// Size returns the total size of the files below a folder in bytes; it does not follow links.
// It fails if a folder cannot be read. A missing folder has the size 0.
func Size(folder string) (int64, error) {
	var total int64
	err := filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // it was removed meanwhile
			}
			return err
		}
		info, err := entry.Info()
		if err == nil {
			total += info.Size()
		}
		return nil
	})
	return total, err
}

// Removal is a step of a worktree's removal by Reclaim.
type Removal string

// The steps, in order. Before the first one nothing has changed, and Reclaim may still
// refuse. From then on the branch has everything.
const (
	RemovalBegins   Removal = "begins"
	RemovalUnlocked Removal = "unlocked"
	RemovalDone     Removal = "done"
)

// Removing returns a Git that calls at in each step of a Reclaim, after earlier
// callbacks.
func (g *Git) Removing(at func(Removal)) *Git {
	other := *g
	if before := g.removing; before != nil {
		other.removing = func(moment Removal) { before(moment); at(moment) }
	} else {
		other.removing = at
	}
	return &other
}

func (g *program) reportRemoval(moment Removal) {
	if g.removing != nil {
		g.removing(moment)
	}
}

// Reclaimed is the result of reclaiming a worktree.
type Reclaimed struct {
	Bytes   int64
	Head    string  // the commit that has the job's work
	Landing Landing // NotLanded for what was discarded
	Ignored int     // ignored files and folders that were removed with it
}

// Reclaim removes a worktree if its work is merged into the main checkout's branch or was
// discarded (JOB-08, JOB-19). All other content must be committed on the job's branch, which
// stays. A nested repository or another checked-out branch prevents the removal. Ignored files
// go with the worktree if the main checkout has equal copies, or if dropIgnored is set. Commits
// that no branch holds get a name. Reclaim fails with Conflict if the worktree must stay, with
// NotFound if it does not exist, and if git fails.
func (g *Git) Reclaim(ctx context.Context, w Worktree, job string, dropIgnored bool) (Reclaimed, error) {
	g, err := g.inWorktree(ctx, w)
	if err != nil {
		return Reclaimed{}, err
	}
	done, err := g.reclaimable(ctx, w, job, dropIgnored)
	if err != nil {
		return Reclaimed{}, err
	}
	if done.Bytes, err = Size(w.Path); err != nil {
		return Reclaimed{}, err
	}
	if err := g.keepUnreferenced(ctx, w, job); err != nil {
		return Reclaimed{}, err
	}
	g.reportRemoval(RemovalBegins)
	if _, err := g.output(ctx, w.Main, "worktree", "unlock", w.Path); err != nil && !strings.Contains(err.Error(), "is not locked") {
		return Reclaimed{}, err
	}
	g.reportRemoval(RemovalUnlocked)
	// Not by force: git checks once more for content.
	if err := g.removeCheckout(ctx, w); err != nil {
		_, lockErr := g.output(ctx, w.Main, "worktree", "lock", "--reason", "bridge: work of "+job, w.Path)
		return Reclaimed{}, errors.Join(bridge.Errorf(bridge.Conflict, "%s stays: %w", w.Path, err), lockErr)
	}
	g.reportRemoval(RemovalDone)
	return done, nil
}

// removeCheckout makes git remove a worktree. Below the floor git cannot remove the
// folder itself, whose parent has other worktrees, and leaves it empty.
func (g *Git) removeCheckout(ctx context.Context, w Worktree) error {
	dir := g.places[w.Path].GitDir
	_, err := g.tamed(ctx, call{dir: w.Main, args: []string{"worktree", "remove", w.Path}, writable: []string{w.Path}})
	if _, statErr := os.Lstat(dir); err != nil && errors.Is(statErr, fs.ErrNotExist) {
		return os.Remove(w.Path) // the system refuses a folder that is not empty
	}
	return err
}

func (g *Git) reclaimable(ctx context.Context, w Worktree, job string, dropIgnored bool) (Reclaimed, error) {
	if err := g.Prove(ctx, w); err != nil {
		return Reclaimed{}, err
	}
	head, err := g.Head(ctx, w.Path)
	if err != nil {
		return Reclaimed{}, err
	}
	discarded := head.Branch == DiscardedBranchOf(job)
	if !discarded && head.Branch != BranchOf(job) && !strings.HasPrefix(head.Branch, BranchOf(job)+"-") {
		return Reclaimed{}, bridge.Errorf(bridge.Conflict, "%s stays: it is on no branch of %s, which has to be parked first", w.Path, job)
	}
	if why, err := g.holdsOther(ctx, w); err != nil || why != "" {
		if err != nil {
			why = whyUnreadIn(err)
		}
		return Reclaimed{}, bridge.Errorf(bridge.Conflict, "%s stays: %s", w.Path, why)
	}
	status, err := g.tamed(ctx, call{dir: w.Path, args: []string{"status", "--porcelain", "-z", "--untracked-files=all", "--ignored=matching", "--ignore-submodules=dirty"}})
	if err != nil {
		return Reclaimed{}, err
	}
	ignored := 0
	for _, line := range fields(status.out) {
		if !strings.HasPrefix(line, "!! ") {
			return Reclaimed{}, bridge.Errorf(bridge.Conflict, "%s stays: it holds uncommitted work (%s)", w.Path, strings.TrimSpace(line[min(3, len(line)):]))
		}
		if !isCopy(w, line[3:]) {
			ignored++
		}
	}
	if ignored > 0 && !dropIgnored {
		return Reclaimed{}, bridge.Errorf(bridge.Conflict, "%s stays: it holds %s that git ignores, and only the owner can drop them", w.Path, bridge.Counted(ignored, "file or folder"))
	}
	if discarded {
		return Reclaimed{Head: head.Commit, Ignored: ignored}, nil
	}
	target, err := g.Head(ctx, w.Main)
	if err != nil {
		return Reclaimed{}, err
	}
	landing, err := g.Landed(ctx, w.Main, head.Commit, target.Commit)
	if err == nil && landing == NotLanded {
		err = bridge.Errorf(bridge.Conflict, "%s stays: its work is neither merged nor discarded", w.Path)
	}
	return Reclaimed{Head: head.Commit, Landing: landing, Ignored: ignored}, err
}

// Expire deletes the branch of a discarded job if it still has the commit from then, and
// reports whether it did. A branch with other commits stays, as does one in a checkout. Expire
// fails if git fails.
func (g *Git) Expire(ctx context.Context, w Worktree, job, head string) (bool, error) {
	g, err := g.ofMain(ctx, w)
	if err != nil {
		return false, err
	}
	ref := "refs/heads/" + DiscardedBranchOf(job)
	at, err := g.output(ctx, w.Main, "for-each-ref", "--format=%(objectname)%(worktreepath)", ref)
	if err != nil || at != head {
		return false, err
	}
	_, err = g.output(ctx, w.Main, "update-ref", "-d", ref, head)
	return err == nil, err
}

// isCopy reports whether an ignored file equals the copy from .worktreeinclude.
func isCopy(w Worktree, name string) bool {
	name = filepath.FromSlash(name)
	info, err := os.Lstat(filepath.Join(w.Path, name))
	original, mainErr := os.Lstat(filepath.Join(w.Main, name))
	if err != nil || mainErr != nil || !info.Mode().IsRegular() || !original.Mode().IsRegular() || info.Size() != original.Size() {
		return false
	}
	here, _, err := disk.Checksum(filepath.Join(w.Path, name))
	mainSum, _, mainErr := disk.Checksum(filepath.Join(w.Main, name))
	return err == nil && mainErr == nil && here == mainSum
}

// holdsOther returns which content of a worktree no commit can hold, or "". It may be
// another repository, such as a changed submodule or a new one, or another file named
// .git. It fails if a folder cannot be read.
func (g *program) holdsOther(ctx context.Context, w Worktree) (why string, err error) {
	err = filepath.WalkDir(w.Path, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			if isGone(err) {
				return nil
			}
			return err
		}
		folder := filepath.Dir(path)
		switch {
		case entry.Name() == ".git" && folder != w.Path && path != w.Path:
			switch {
			case isRepository(path):
				why = "there is another repository in it, " + folder
			case isEmptyFolder(path):
				return nil
			default:
				why = "it holds " + path + ", which git does not keep"
			}
			return fs.SkipAll
		case entry.Name() == "HEAD" && isBare(folder) && !g.beganWith(ctx, w, path):
			why = "there is another repository in it, " + folder
			return fs.SkipAll
		}
		return nil
	})
	return why, err
}

// beganWith reports whether a file was committed when the job began, as in a test
// fixture's repository.
func (g *program) beganWith(ctx context.Context, w Worktree, path string) bool {
	rel, err := filepath.Rel(w.Path, path)
	if err != nil || w.Base == "" {
		return false
	}
	_, err = g.output(ctx, w.Main, "cat-file", "-e", w.Base+":"+filepath.ToSlash(rel))
	return err == nil
}

// whyUnreadIn returns which folder of a failed walk could not be read.
func whyUnreadIn(err error) string {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		return failed.Path + " " + whyUnread(err)
	}
	return err.Error()
}

func isBare(folder string) bool {
	for _, name := range []string{"objects", "refs"} {
		if info, err := os.Lstat(filepath.Join(folder, name)); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// maxGitFile is larger than git's files in a worktree's own folder, except the index
// and a very long reflog.
const maxGitFile = 64 << 20

var ids = regexp.MustCompile(`\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b`)

// keepUnreferenced names each commit that only git's folder of the worktree references (in a
// reflog, a rebase, a stash). That folder is removed with the worktree.
func (g *Git) keepUnreferenced(ctx context.Context, w Worktree, job string) error {
	named, err := namedIn(g.places[w.Path].GitDir)
	if err != nil {
		return err
	}
	loose, err := g.unreachable(ctx, w.Main, named)
	if err != nil || len(loose) == 0 {
		return err
	}
	ref := refOf(job, "loose")
	if previous, _ := g.output(ctx, w.Main, "rev-parse", "-q", "--verify", ref); previous != "" {
		loose = append(loose, previous)
	}
	tree, err := g.output(ctx, w.Main, "rev-parse", loose[0]+"^{tree}")
	if err != nil {
		return err
	}
	return g.keep(ctx, w.Main, ref, tree, "bridge: commits of "+job+" that no branch holds", loose...)
}

// namedIn lists possible commit ids in the files below dir.
func namedIn(dir string) ([]string, error) {
	var named []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || entry.Name() == "index" {
			return err
		}
		data, err := disk.ReadLimited(path, maxGitFile)
		if err != nil {
			return err
		}
		named = append(named, ids.FindAllString(string(data), -1)...)
		return nil
	})
	slices.Sort(named)
	return slices.Compact(named), err
}

// unreachable returns the named commits that no branch, tag or other ref of the
// repository holds.
func (g *program) unreachable(ctx context.Context, top string, named []string) ([]string, error) {
	checked, err := g.run(ctx, call{dir: top, args: []string{"cat-file", "--batch-check=%(objectname) %(objecttype)"}, input: strings.Join(named, "\n") + "\n"})
	if err != nil {
		return nil, err
	}
	var commits []string
	for line := range strings.Lines(checked.out) {
		if id, isCommit := strings.CutSuffix(strings.TrimSpace(line), " commit"); isCommit {
			commits = append(commits, id)
		}
	}
	const atOnce = 200
	var loose []string
	for chunk := range slices.Chunk(commits, atOnce) {
		done, err := g.run(ctx, call{dir: top, args: slices.Concat([]string{"rev-list"}, chunk, []string{"--not", "--single-worktree", "--all"})})
		if err != nil {
			return nil, err
		}
		lost := strings.Fields(done.out)
		for _, id := range chunk {
			if slices.Contains(lost, id) {
				loose = append(loose, id)
			}
		}
	}
	return loose, nil
}
