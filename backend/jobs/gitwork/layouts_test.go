package gitwork

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
)

// layout makes a repository and returns the folder in it that a job is given.
type layout func(w *world) (folder string)

// must ends the test on the first error.
func (w *world) must(errs ...error) {
	w.t.Helper()
	for _, err := range errs {
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// storeAt moves a repository's git folder away and leaves a link to it.
func (w *world) storeAt(top, store string) string {
	w.t.Helper()
	from := filepath.Join(top, ".git")
	w.must(os.MkdirAll(filepath.Dir(store), 0o755), os.Rename(from, store), os.Symlink(store, from))
	return top
}

// linked makes a linked worktree of the checkout at top.
func (w *world) linked(top string) string {
	w.t.Helper()
	w.git(top, "worktree", "add", "-q", filepath.Join(w.dir, "linked"), "-b", "topic")
	return filepath.Join(w.dir, "linked")
}

func (w *world) submodule() string {
	w.t.Helper()
	source := filepath.Join(w.dir, "source")
	w.git(w.dir, "init", "-q", source)
	w.write(source, "s.txt", "s\n")
	w.commit(source, "first")
	w.git(w.main, "submodule", "--quiet", "add", source, "libs/sub")
	w.commit(w.main, "submodule")
	return filepath.Join(w.main, "libs", "sub")
}

func (w *world) chown(folder string) {
	w.t.Helper()
	if os.Getuid() != 0 {
		w.t.Skip("SKIPPED, only root gives files to another user")
	}
	if out, err := exec.CommandContext(w.t.Context(), "chown", "-R", "65534:65534", folder).CombinedOutput(); err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
}

// A repository of an unusual layout works like any other: the agent commits, the work
// lands, and the worktree goes.
func TestRWM_14_UnusualLayoutsWork(t *testing.T) {
	for name, lay := range map[string]layout{
		"core.worktree with a git folder elsewhere": func(w *world) string {
			top := filepath.Join(w.dir, "pinned")
			w.git(w.dir, "init", "-q", "--separate-git-dir", filepath.Join(w.dir, "store"), top)
			w.git(top, "config", "core.worktree", top)
			return top
		},
		"core.worktree of the main checkout alone": func(w *world) string {
			w.git(w.main, "config", "extensions.worktreeConfig", "true")
			w.git(w.main, "config", "--worktree", "core.worktree", w.main)
			return w.main
		},
		"a linked worktree of that": func(w *world) string {
			w.git(w.main, "config", "extensions.worktreeConfig", "true")
			w.git(w.main, "config", "--worktree", "core.worktree", w.main)
			return w.linked(w.main)
		},
		"a linked worktree of a git folder elsewhere, by core.worktree": func(w *world) string {
			w.storeAt(w.main, filepath.Join(w.dir, "store"))
			w.git(w.main, "config", "core.worktree", w.main)
			return w.linked(w.main)
		},
		".git is a link to a folder of that name": func(w *world) string { return w.storeAt(w.main, filepath.Join(w.dir, "store", ".git")) },
		"a folder in a linked worktree":           func(w *world) string { return filepath.Join(w.linked(w.main), "src") },
		"a linked worktree by relative paths": func(w *world) string {
			linked := w.linked(w.main)
			w.write(linked, ".git", "gitdir: ../app/.git/worktrees/linked\n")
			w.write(w.main, ".git/worktrees/linked/gitdir", "../../../../linked/.git\n")
			return linked
		},
		"a submodule": func(w *world) string { return w.submodule() },
		"objects of a neighbour": func(w *world) string {
			w.git(w.dir, "clone", "-q", "-s", w.main, filepath.Join(w.dir, "shared"))
			return filepath.Join(w.dir, "shared")
		},
		"sha256": func(w *world) string {
			w.git(w.dir, "init", "-q", "--object-format=sha256", filepath.Join(w.dir, "long"))
			return filepath.Join(w.dir, "long")
		},
		"a sparse checkout": func(w *world) string {
			w.git(w.main, "sparse-checkout", "set", "src")
			return w.main
		},
		"reached through a link": func(w *world) string {
			w.must(os.Symlink(w.main, filepath.Join(w.dir, "via")))
			return filepath.Join(w.dir, "via", "src")
		},
		"another user's, by safe.directory": func(w *world) string {
			w.git(w.dir, "config", "--global", "--add", "safe.directory", w.main)
			w.chown(w.main)
			return w.main
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			folder := lay(w)
			if _, err := w.try(folder, "rev-parse", "HEAD"); err != nil {
				w.write(folder, "first.txt", "1\n")
				w.commit(folder, "first")
			}
			tree := w.add(folder)
			g := w.g.Pin(w.own(tree))
			w.write(tree.Path, "committed.txt", "work\n")
			w.commit(tree.Path, "by the agent")
			w.write(tree.Path, "loose.txt", "work\n")
			if got, err := g.Finish(w.ctx(), tree, job, Squash, "", false); err != nil || !got.Done {
				t.Fatalf("Finish = %+v, %v", got, err)
			}
			for _, file := range []string{"committed.txt", "loose.txt"} {
				if got := w.git(tree.Main, "show", "HEAD:"+file); got != "work" {
					t.Errorf("%s in the main checkout: %q", file, got)
				}
			}
			if status := w.git(tree.Main, "status", "--porcelain"); status != "" {
				t.Errorf("the main checkout has changes: %s", status)
			}
			if _, err := g.Reclaim(w.ctx(), tree, job, true); err != nil {
				t.Error(err)
			}
		})
	}
}

// What cannot work is refused with the true reason, before anything is made.
func TestRWM_14_LayoutsThatCannotWorkAreRefusedBeforeAnythingIsMade(t *testing.T) {
	for name, c := range map[string]struct {
		lay  layout
		says string
	}{
		"a worktree of a bare repository": {func(w *world) string {
			w.git(w.dir, "clone", "-q", "--bare", w.main, "bare.git")
			return w.linked(filepath.Join(w.dir, "bare.git"))
		}, "of the bare repository"},
		"a worktree of a bare repository named .git": {func(w *world) string {
			w.git(w.dir, "clone", "-q", "--bare", w.main, filepath.Join(w.dir, "project", ".git"))
			return w.linked(filepath.Join(w.dir, "project"))
		}, "of the bare repository"},
		"a linked worktree of a git folder elsewhere": {func(w *world) string {
			return w.linked(w.storeAt(w.main, filepath.Join(w.dir, "store")))
		}, "git does not say where the main checkout"},
		"a linked worktree whose main checkout is gone": {func(w *world) string {
			w.git(w.main, "config", "core.worktree", filepath.Join(w.dir, "gone"))
			_, _ = w.try(w.dir, "--git-dir="+filepath.Join(w.main, ".git"), "--work-tree="+w.main, "worktree", "add", "-q", filepath.Join(w.dir, "linked"), "-b", "topic")
			return filepath.Join(w.dir, "linked")
		}, "is not there"},
		"a line break in its name": {func(w *world) string {
			w.must(os.Rename(w.main, filepath.Join(w.dir, "a\nb")))
			return filepath.Join(w.dir, "a\nb")
		}, "line break"},
		"objects are a link": {func(w *world) string {
			if len(w.g.sandbox) == 0 {
				w.t.Skip("SKIPPED, without a floor such a repository works")
			}
			w.must(os.Rename(filepath.Join(w.main, ".git", "objects"), filepath.Join(w.dir, "objects")), os.Symlink(filepath.Join(w.dir, "objects"), filepath.Join(w.main, ".git", "objects")))
			return w.main
		}, "objects of"},
		"a branch named bridge": {func(w *world) string {
			w.git(w.main, "branch", "bridge")
			return w.main
		}, "branch named bridge"},
		"another user's": {func(w *world) string {
			w.chown(w.main)
			return w.main
		}, "dubious ownership"},
		"an extension that this git does not know": {func(w *world) string {
			w.git(w.main, "config", "core.repositoryFormatVersion", "1")
			w.git(w.main, "config", "extensions.ofTomorrow", "true")
			return w.main
		}, "oftomorrow"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			folder := c.lay(w)
			r, err := w.g.Repository(w.ctx(), folder)
			if err == nil {
				err = w.g.CheckWorktrees(w.ctx(), r)
			}
			if code := bridge.CodeOf(err); code != bridge.Invalid && code != bridge.NotFound || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it is refused with %v", err)
			}
			if _, err := os.Lstat(w.trees); err == nil {
				t.Error("something was made")
			}
		})
	}
}

// leavesNothing fails unless git and the disk are as before a worktree was made.
func (w *world) leavesNothing(top, refs, records string) {
	w.t.Helper()
	if got := w.git(top, "for-each-ref"); got != refs {
		w.t.Errorf("refs are left: %s", got)
	}
	if got := w.git(top, "worktree", "list", "--porcelain"); got != records {
		w.t.Errorf("worktrees are left: %s", got)
	}
	for _, folder := range []string{w.trees, filepath.Join(top, ".git", "worktrees")} {
		if left, err := os.ReadDir(folder); err == nil && len(left) > 0 {
			w.t.Errorf("%s holds %v", folder, left)
		}
	}
}

// A worktree that git cannot make leaves no folder, no branch, no lock and no record.
func TestRWM_14_AWorktreeThatCannotBeMadeLeavesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		lay  layout
		says string
	}{
		"a filter fails": {func(w *world) string {
			w.write(w.main, ".gitattributes", "z.txt filter=broken\n")
			w.write(w.main, "z.txt", "z\n")
			w.commit(w.main, "filtered")
			w.git(w.main, "config", "filter.broken.smudge", "false")
			w.git(w.main, "config", "filter.broken.required", "true")
			return w.main
		}, "broken"},
		"an object is missing": {func(w *world) string {
			blob := w.git(w.main, "rev-parse", "HEAD:src/b.txt")
			w.must(os.Remove(filepath.Join(w.main, ".git", "objects", blob[:2], blob[2:])))
			return w.main
		}, "b.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			folder := c.lay(w)
			r, err := w.g.Repository(w.ctx(), folder)
			if err != nil {
				t.Fatal(err)
			}
			refs, records := w.git(folder, "for-each-ref"), w.git(folder, "worktree", "list", "--porcelain")
			if _, err := w.g.Add(w.ctx(), r, job, w.trees); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Add = %v", err)
			}
			w.leavesNothing(folder, refs, records)
		})
	}
}

// A branch of the job that was there before stays when the worktree cannot be made.
func TestRWM_14_ABranchThatWasThereBeforeStays(t *testing.T) {
	w := newWorld(t)
	w.git(w.main, "branch", BranchOf(job))
	r, err := w.g.Repository(w.ctx(), w.main)
	if err != nil {
		t.Fatal(err)
	}
	refs, records := w.git(w.main, "for-each-ref"), w.git(w.main, "worktree", "list", "--porcelain")
	if _, err := w.g.Add(w.ctx(), r, job, w.trees); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("Add = %v", err)
	}
	w.leavesNothing(w.main, refs, records)
}
