package gitwork

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bridge/backend/core/bridge"
)

func TestMissingGitIsOneSentence(t *testing.T) {
	for _, environ := range [][]string{nil, {"PATH="}, {"PATH=" + t.TempDir()}} {
		_, err := New(environ)
		if bridge.CodeOf(err) != bridge.Unavailable || !strings.Contains(err.Error(), "git is not installed") {
			t.Errorf("New(%q) = %v", environ, err)
		}
	}
}

func TestTheCallersRepositoryIsNotTaken(t *testing.T) {
	w := newWorld(t)
	g, err := New(append(w.env, "GIT_DIR=/nowhere", "GIT_INDEX_FILE=/nowhere", "GIT_CONFIG_COUNT=1"))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := g.Repository(w.ctx(), w.main); err != nil || r.Top != w.main {
		t.Errorf("Repository = %+v, %v", r, err)
	}
}

func TestJOB_08_TheRepositoryOfAFolder(t *testing.T) {
	w := newWorld(t)
	linked, bare, plain := filepath.Join(w.dir, "linked"), filepath.Join(w.dir, "bare.git"), filepath.Join(w.dir, "plain")
	w.git(w.main, "worktree", "add", "-q", linked)
	w.git(w.dir, "clone", "-q", "--bare", w.main, bare)
	w.git(bare, "worktree", "add", "-q", filepath.Join(w.dir, "ofbare"), "main")
	w.git(w.main, "submodule", "--quiet", "add", bare, "sub")
	w.commit(w.main, "submodule")
	w.git(filepath.Join(w.main, "sub"), "worktree", "add", "-q", filepath.Join(w.dir, "ofsub"))
	w.write(plain, "x", "x")
	w.git(w.dir, "init", "-q", filepath.Join(w.dir, "empty"))
	common := filepath.Join(w.main, ".git")
	sub := filepath.Join(w.main, "sub")
	tests := []struct {
		folder string
		want   Repository
	}{
		{w.main, Repository{Top: w.main, Main: w.main, Common: common, Dir: common}},
		{filepath.Join(w.main, "src"), Repository{Top: w.main, Main: w.main, Common: common, Dir: common, Inside: "src"}},
		{linked, Repository{Top: linked, Main: w.main, Common: common, Dir: filepath.Join(common, "worktrees", "linked"), Linked: true}},
		{sub, Repository{Top: sub, Main: sub, Common: filepath.Join(common, "modules", "sub"), Dir: filepath.Join(common, "modules", "sub"), Submodule: true}},
		{filepath.Join(w.dir, "ofsub"), Repository{
			Top: filepath.Join(w.dir, "ofsub"), Main: sub, Common: filepath.Join(common, "modules", "sub"),
			Dir: filepath.Join(common, "modules", "sub", "worktrees", "ofsub"), Linked: true, Submodule: true,
		}},
	}
	for _, tt := range tests {
		got, err := w.g.Repository(w.ctx(), tt.folder)
		if err != nil || got != tt.want {
			t.Errorf("Repository(%s): %v %s", tt.folder, err, cmp.Diff(tt.want, got))
		}
	}
	for folder, code := range map[string]bridge.Code{
		bare: bridge.Invalid, common: bridge.Invalid, filepath.Join(w.dir, "ofbare"): bridge.Invalid, plain: bridge.NotFound, filepath.Join(w.dir, "none"): bridge.NotFound,
	} {
		if _, err := w.g.Repository(w.ctx(), folder); bridge.CodeOf(err) != code {
			t.Errorf("Repository(%s) = %v, want %s", folder, err, code)
		}
	}
	r, err := w.g.Repository(w.ctx(), filepath.Join(w.dir, "empty"))
	if err == nil {
		_, err = w.g.Add(w.ctx(), r, job, w.trees)
	}
	if bridge.CodeOf(err) != bridge.Invalid || !strings.Contains(err.Error(), "no commit yet") {
		t.Errorf("a repository without a commit: %v", err)
	}
}

func TestJOB_08_AWorktreeIsLockedAndOnItsBranch(t *testing.T) {
	w := newWorld(t)
	hook := filepath.Join(w.main, ".git", "hooks", "post-checkout")
	w.write(filepath.Dir(hook), "post-checkout", "#!/bin/sh\ntouch "+w.dir+"/hooked\n")
	if err := os.Chmod(hook, 0o755); err != nil {
		t.Fatal(err)
	}
	tree := w.add(filepath.Join(w.main, "src"))
	want := Worktree{
		Main: w.main, Path: filepath.Join(w.trees, "app-"+job), Folder: filepath.Join(w.trees, "app-"+job, "src"), Branch: "bridge/" + job,
		Base: w.git(w.main, "rev-parse", "HEAD"), BaseTree: w.git(w.main, "rev-parse", "HEAD^{tree}"), BaseBranch: "main",
	}
	if tree != want {
		t.Errorf("Add: %s", cmp.Diff(want, tree))
	}
	if list := w.git(w.main, "worktree", "list", "--porcelain"); !strings.Contains(list, "locked bridge: "+job) || !strings.Contains(list, "branch refs/heads/bridge/"+job) {
		t.Errorf("worktrees: %s", list)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "hooked")); err == nil {
		t.Error("a hook of the owner ran")
	}
	r, _ := w.g.Repository(w.ctx(), w.main)
	if _, err := w.g.Add(w.ctx(), r, job, w.trees); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("the same worktree again: %v", err)
	}
	for _, wrong := range []string{"", "../x", "a/b"} {
		if _, err := w.g.Add(w.ctx(), r, wrong, w.trees); err == nil {
			t.Errorf("a worktree for %q was made", wrong)
		}
	}
}

func TestJOB_19_WorktreeincludeBringsWhatGitIgnores(t *testing.T) {
	w := newWorld(t)
	w.write(w.main, ".worktreeinclude", "*.log\n.env\nb.txt\nnotes.md\n!secret.log\n")
	w.write(w.main, ".env", "KEY=1\n")
	w.write(w.main, "deep/run.log", "log\n")
	w.write(w.main, "secret.log", "secret\n")
	w.write(w.main, "notes.md", "untracked, but not ignored\n")
	outside := filepath.Join(w.dir, "outside.log")
	w.write(w.dir, "outside.log", "x")
	if err := os.Symlink(outside, filepath.Join(w.main, "link.log")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(w.main, ".env"), 0o600); err != nil {
		t.Fatal(err)
	}
	tree := w.add(w.main)
	got, err := w.g.Include(w.ctx(), tree)
	if slices.Sort(got); err != nil || !slices.Equal(got, []string{".env", "deep/run.log"}) {
		t.Errorf("Include = %q, %v", got, err)
	}
	if text := w.read(tree.Path, "deep/run.log"); text != "log\n" {
		t.Errorf("deep/run.log is %q", text)
	}
	w.write(tree.Path, ".env", "KEY=2\n")
	if got, err = w.g.Include(w.ctx(), tree); err != nil || len(got) != 0 || w.read(tree.Path, ".env") != "KEY=2\n" {
		t.Errorf("again: %q, %v, .env is %q", got, err, w.read(tree.Path, ".env"))
	}
	if size, err := Size(tree.Path); err != nil || size < 10 {
		t.Errorf("Size = %d, %v", size, err)
	}
}

func TestJOB_19_WhatIsIncludedNeverLeavesTheWorktree(t *testing.T) {
	w := newWorld(t)
	w.write(w.main, ".worktreeinclude", "*.log\n")
	w.write(w.main, "deep/run.log", "log\n")
	tree := w.add(w.main)
	if err := os.Symlink(w.dir, filepath.Join(tree.Path, "deep")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.g.Include(w.ctx(), tree); bridge.CodeOf(err) != bridge.Denied {
		t.Errorf("Include through a link = %v", err)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "run.log")); err == nil {
		t.Error("a file was written outside of the worktree")
	}
}

func TestJOB_18_TheDiffIsTheJobsOwn(t *testing.T) {
	w := newWorld(t)
	w.write(w.main, "dirty.txt", "the owner's\n")
	w.write(w.main, "old.bin", "\x00\x01")
	w.write(w.main, "moved.txt", strings.Repeat("line\n", 20))
	w.git(w.main, "add", "moved.txt", "old.bin")
	before := w.git(w.main, "status", "--porcelain")
	_, tree, err := w.g.Start(w.ctx(), w.main, job)
	if err != nil {
		t.Fatal(err)
	}
	if after := w.git(w.main, "status", "--porcelain"); after != before {
		t.Errorf("Start changed the checkout from %q to %q", before, after)
	}
	if got, err := w.g.Diff(w.ctx(), w.main, tree); err != nil || len(got) != 0 {
		t.Errorf("nothing was done, and the diff is %+v, %v", got, err)
	}
	w.write(w.main, "a.txt", "one\n2\nthree\nfour\nfive\nsix\n")
	w.commit(w.main, "the job commits everything, the owner's too")
	w.write(w.main, "new.txt", "n\n")
	w.write(w.main, "old.bin", "\x00\x02")
	w.write(w.main, "x.log", "ignored")
	if err := os.Rename(filepath.Join(w.main, "moved.txt"), filepath.Join(w.main, "there.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(w.main, "src", "b.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a.txt", filepath.Join(w.main, "src", "b.txt")); err != nil {
		t.Fatal(err)
	}
	got, err := w.g.Diff(w.ctx(), w.main, tree)
	want := []FileChange{
		{Path: "a.txt", Status: "modified", Added: 2, Removed: 1},
		{Path: "new.txt", Status: "added", Added: 1},
		{Path: "old.bin", Status: "modified", Binary: true},
		{Path: "src/b.txt", Status: "type", Added: 1, Removed: 1},
		{Path: "there.txt", From: "moved.txt", Status: "renamed"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(FileChange{}, "Patch")); diff != "" || err != nil {
		t.Fatalf("Diff: %v %s", err, diff)
	}
	for i, part := range []string{"-two\n+2\n", "+n\n", "Binary files", "new file mode 120000", "rename from moved.txt"} {
		if !strings.Contains(got[i].Patch, part) || !strings.HasPrefix(got[i].Patch, "diff --git ") || strings.Count(got[i].Patch, "diff --git ") > 2 {
			t.Errorf("the patch of %s is %q, without %q", got[i].Path, got[i].Patch, part)
		}
	}
}

func TestJOB_18_AChangeOfTheSameSizeInTheSameMomentIsSeen(t *testing.T) {
	w := newWorld(t)
	moment := time.Unix(1_700_000_000, 0)
	path := filepath.Join(w.main, "a.txt")
	at := func(path string) {
		t.Helper()
		if err := os.Chtimes(path, moment, moment); err != nil {
			t.Fatal(err)
		}
	}
	w.git(w.main, "config", "core.trustctime", "false")
	w.git(w.main, "config", "core.checkStat", "minimal")
	w.write(w.main, "a.txt", "1\n")
	at(path)
	w.commit(w.main, "one")
	tree := w.git(w.main, "rev-parse", "HEAD^{tree}")
	w.write(w.main, "a.txt", "2\n")
	at(path)
	at(filepath.Join(w.main, ".git", "index"))
	if got, err := w.g.Diff(w.ctx(), w.main, tree); err != nil || len(got) != 1 {
		t.Errorf("Diff = %+v, %v", got, err)
	}
}

func TestJOB_18_ALongPatchIsLeftOutAndNeverShownInPart(t *testing.T) {
	w := newWorld(t)
	tree := w.add(w.main)
	line := strings.Repeat("x", 99) + "\n"
	w.write(tree.Path, "fits.txt", strings.Repeat(line, 5_000))
	w.write(tree.Path, "large.txt", strings.Repeat(line, 6_000))
	got, err := w.g.Diff(w.ctx(), tree.Path, tree.BaseTree)
	if err != nil || len(got) != 2 || got[0].Cut || len(got[0].Patch) < 500_000 || !got[1].Cut || got[1].Patch != "" || got[1].Added != 6_000 {
		t.Fatalf("Diff = %v, cut %v and %v, %d and %d bytes", err, got[0].Cut, got[1].Cut, len(got[0].Patch), len(got[1].Patch))
	}
	for i := range 40 { // 20 MB in all
		w.write(tree.Path, fmt.Sprintf("m%02d.txt", i), strings.Repeat(line, 5_000))
	}
	got, err = w.g.Diff(w.ctx(), tree.Path, tree.BaseTree)
	if err != nil || len(got) != 42 {
		t.Fatalf("Diff = %d files, %v", len(got), err)
	}
	whole := 0
	for _, change := range got {
		if !change.Cut && strings.Count(change.Patch, "\n+x") == 5_000 {
			whole++
		} else if change.Patch != "" {
			t.Errorf("%s is shown in part", change.Path)
		}
	}
	if whole < 25 || whole > 33 {
		t.Errorf("%d patches are shown", whole)
	}
}

func TestJOB_08_ParkingKeepsEverythingOnABranch(t *testing.T) {
	w := newWorld(t)
	tree := w.add(w.main)
	w.write(tree.Path, "a.txt", "staged\n")
	w.git(tree.Path, "add", "a.txt")
	w.write(tree.Path, "a.txt", "in the file\n")
	w.write(tree.Path, "new/untracked.txt", "u\n")
	w.git(tree.Path, "checkout", "-q", "--detach")
	w.git(tree.Path, "commit", "-q", "--allow-empty", "-m", "on no branch")
	detached := w.git(tree.Path, "rev-parse", "HEAD")
	parked, err := w.g.Park(w.ctx(), tree, job)
	if err != nil || parked.Branch != "bridge/"+job+"-2" || parked.Commit == "" || parked.Head != parked.Commit {
		t.Fatalf("Park = %+v, %v", parked, err)
	}
	if got := w.git(tree.Path, "status", "--porcelain"); got != "" {
		t.Errorf("after it the worktree has %q", got)
	}
	if _, err := w.try(w.main, "merge-base", "--is-ancestor", detached, parked.Branch); err != nil {
		t.Error("the commit on no branch is not on it")
	}
	if got := w.git(w.main, "show", parked.Branch+":new/untracked.txt"); got != "u" {
		t.Errorf("untracked: %q", got)
	}
	if got := w.git(w.main, "show", parked.Branch+":a.txt"); got != "in the file" {
		t.Errorf("a.txt: %q", got)
	}
	if got := w.git(w.main, "log", "-1", "--format=%s|%an", parked.Branch); got != "bridge: parked work of "+job+"|Olga Owner" {
		t.Errorf("the commit is %q", got)
	}
	again, err := w.g.Park(w.ctx(), tree, job)
	if err != nil || again.Commit != "" || again.Head != parked.Head || again.Branch != parked.Branch {
		t.Errorf("again: %+v, %v", again, err)
	}
}

func TestJOB_08_WhatWasStagedOtherwiseKeepsAName(t *testing.T) {
	w := newWorld(t)
	tree := w.add(w.main)
	w.write(tree.Path, "a.txt", "staged\n")
	w.git(tree.Path, "add", "a.txt")
	w.write(tree.Path, "a.txt", "in the file\n")
	if _, err := w.g.Park(w.ctx(), tree, job); err != nil {
		t.Fatal(err)
	}
	if got := w.git(w.main, "show", "refs/bridge/"+job+"/staged:a.txt"); got != "staged" {
		t.Errorf("staged: %q", got)
	}
}

func TestJOB_08_ARepositoryWithinIsLeftAndSaid(t *testing.T) {
	w := newWorld(t)
	tree := w.add(w.main)
	w.git(tree.Path, "init", "-q", "empty")
	w.git(tree.Path, "init", "-q", "deep/own")
	w.write(tree.Path, "deep/own/x.txt", "x")
	w.commit(filepath.Join(tree.Path, "deep", "own"), "of its own")
	w.write(tree.Path, "deep/new.txt", "n")
	parked, err := w.g.Park(w.ctx(), tree, job)
	if err != nil || !slices.Equal(parked.Left, []string{"deep/own", "empty"}) || w.git(tree.Path, "ls-tree", "-r", "--name-only", "HEAD", "deep") != "deep/new.txt" {
		t.Errorf("Park = %+v, %v", parked, err)
	}
}

func TestJOB_08_ParkingMovesNoBranchOfTheOwner(t *testing.T) {
	w := newWorld(t)
	w.git(w.main, "branch", "release")
	before := w.git(w.main, "rev-parse", "release")
	tree := w.add(w.main)
	w.git(tree.Path, "checkout", "-q", "release")
	w.write(tree.Path, "x.txt", "x")
	parked, err := w.g.Park(w.ctx(), tree, job)
	if err != nil || parked.Branch != "bridge/"+job+"-2" || w.git(w.main, "rev-parse", "release") != before {
		t.Errorf("Park = %+v, %v; release is at %s, was at %s", parked, err, w.git(w.main, "rev-parse", "release"), before)
	}
}

func TestJOB_18_EachWayToFinish(t *testing.T) {
	begin := func(t *testing.T) (*world, Worktree) {
		w := newWorld(t)
		tree := w.add(w.main)
		w.write(tree.Path, "a.txt", "one\ntwo\nthree\nfour\n5\n")
		w.commit(tree.Path, "a commit of the job")
		w.write(tree.Path, "left.txt", "not committed\n")
		w.write(w.main, "other.txt", "the owner goes on\n")
		w.commit(w.main, "the owner's")
		return w, tree
	}
	landed := func(t *testing.T, w *world) {
		t.Helper()
		if w.read(w.main, "a.txt") != "one\ntwo\nthree\nfour\n5\n" || w.read(w.main, "left.txt") != "not committed\n" || w.read(w.main, "other.txt") != "the owner goes on\n" {
			t.Error("the main checkout lacks something")
		}
	}
	for _, action := range []Action{Apply, Squash, Merge, Keep, Discard} {
		t.Run("dry "+string(action), func(t *testing.T) {
			w, tree := begin(t)
			before := w.git(w.main, "for-each-ref", "refs/heads") + w.git(w.main, "status", "--porcelain") + w.git(tree.Path, "status", "--porcelain")
			got, err := w.g.Finish(w.ctx(), tree, job, action, "", true)
			if err != nil || got.Done || len(got.Conflicts) != 0 {
				t.Errorf("Finish = %+v, %v", got, err)
			}
			if after := w.git(w.main, "for-each-ref", "refs/heads") + w.git(w.main, "status", "--porcelain") + w.git(tree.Path, "status", "--porcelain"); after != before {
				t.Errorf("a dry run changed %q to %q", before, after)
			}
		})
	}
	t.Run("apply", func(t *testing.T) {
		w, tree := begin(t)
		head := w.git(w.main, "rev-parse", "HEAD")
		got, err := w.finish(tree, Apply)
		if err != nil || !got.Done || got.Commit != "" || w.git(w.main, "rev-parse", "HEAD") != head {
			t.Fatalf("Finish = %+v, %v", got, err)
		}
		if status := w.git(w.main, "status", "--porcelain"); status != "M  a.txt\nA  left.txt" {
			t.Errorf("staged: %q", status)
		}
		landed(t, w)
	})
	t.Run("squash", func(t *testing.T) {
		w, tree := begin(t)
		head := w.git(w.main, "rev-parse", "HEAD")
		got, err := w.g.Finish(w.ctx(), tree, job, Squash, "Mend a\n\nand more", false)
		if err != nil || !got.Done || w.git(w.main, "rev-parse", "main") != got.Commit || w.git(w.main, "log", "-1", "--format=%P|%s|%an") != head+"|Mend a|Olga Owner" {
			t.Fatalf("Finish = %+v, %v; %s", got, err, w.git(w.main, "log", "-1", "--format=%P|%s|%an"))
		}
		if status := w.git(w.main, "status", "--porcelain"); status != "" {
			t.Errorf("status: %q", status)
		}
		landed(t, w)
	})
	t.Run("merge", func(t *testing.T) {
		w, tree := begin(t)
		head := w.git(w.main, "rev-parse", "HEAD")
		got, err := w.finish(tree, Merge)
		if err != nil || !got.Done || w.git(w.main, "log", "-1", "--format=%P") != head+" "+w.git(tree.Path, "rev-parse", "HEAD") {
			t.Fatalf("Finish = %+v, %v", got, err)
		}
		landed(t, w)
	})
	t.Run("keep", func(t *testing.T) {
		w, tree := begin(t)
		got, err := w.finish(tree, Keep)
		if err != nil || !got.Done || got.Branch != "bridge/"+job || w.git(w.main, "show", got.Branch+":left.txt") != "not committed" {
			t.Fatalf("Finish = %+v, %v", got, err)
		}
	})
	t.Run("discard", func(t *testing.T) {
		w, tree := begin(t)
		for range 2 {
			got, err := w.finish(tree, Discard)
			if err != nil || !got.Done || got.Branch != "bridge/discarded/"+job || w.git(w.main, "show", got.Branch+":left.txt") != "not committed" {
				t.Fatalf("Finish = %+v, %v", got, err)
			}
		}
		if w.read(tree.Path, "left.txt") != "not committed\n" {
			t.Error("a file is gone")
		}
	})
}

func TestJOB_18_ConflictsAreNamedAndNothingIsDone(t *testing.T) {
	w := newWorld(t)
	tree := w.add(w.main)
	w.write(tree.Path, "a.txt", "one\nTWO\nthree\nfour\nfive\n")
	w.write(tree.Path, "src/b.txt", "job\n")
	w.write(w.main, "a.txt", "one\nzwei\nthree\nfour\nfive\n")
	if err := os.Remove(filepath.Join(w.main, "src", "b.txt")); err != nil {
		t.Fatal(err)
	}
	head := w.commit(w.main, "the owner's")
	for _, action := range []Action{Apply, Squash, Merge} {
		for _, dry := range []bool{true, false} {
			got, err := w.g.Finish(w.ctx(), tree, job, action, "", dry)
			if err != nil || got.Done || !slices.Equal(got.Conflicts, []string{"a.txt", "src/b.txt"}) {
				t.Errorf("%s: %+v, %v", action, got, err)
			}
		}
	}
	if w.git(w.main, "rev-parse", "HEAD") != head || w.git(w.main, "status", "--porcelain") != "" {
		t.Error("the main checkout was changed")
	}
}

func TestJOB_18_WorkWithoutACommonBeginIsRefused(t *testing.T) {
	w := newWorld(t)
	tree := w.add(w.main)
	w.git(tree.Path, "checkout", "-q", "--orphan", "alone")
	w.commit(tree.Path, "of nothing")
	if _, err := w.finish(tree, Squash); bridge.CodeOf(err) != bridge.Conflict || !strings.Contains(err.Error(), "unrelated histories") {
		t.Errorf("Finish = %v", err)
	}
	if _, err := w.g.Reclaim(w.ctx(), tree, job, true); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("Reclaim = %v", err)
	}
}

func TestJOB_18_ADirtyTargetIsRefused(t *testing.T) {
	tests := map[string]func(*world){
		"a changed file":            func(w *world) { w.write(w.main, "src/b.txt", "changed") },
		"a staged file":             func(w *world) { w.write(w.main, "s.txt", "s"); w.git(w.main, "add", "s.txt") },
		"an untracked file":         func(w *world) { w.write(w.main, "new.txt", "the owner's") },
		"an ignored file":           func(w *world) { w.write(w.main, "forced.log", "the owner's") },
		"a folder of ignored files": func(w *world) { w.write(w.main, "build/keep.bin", "the owner's") },
		"a file that git must not look at": func(w *world) {
			w.git(w.main, "update-index", "--assume-unchanged", "a.txt")
			w.write(w.main, "a.txt", "the owner's")
		},
		"the middle of a merge": func(w *world) {
			w.git(w.main, "checkout", "-q", "-b", "side")
			w.commit(w.main, "on the side")
			w.git(w.main, "checkout", "-q", "main")
			w.git(w.main, "merge", "-q", "--no-commit", "--no-ff", "side")
		},
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tree := w.add(w.main)
			w.write(tree.Path, "new.txt", "the job's")
			w.write(tree.Path, "forced.log", "the job's")
			w.write(tree.Path, "a.txt", "the job's")
			w.write(tree.Path, "build", "now a file")
			w.git(tree.Path, "add", "-f", "forced.log", "build")
			w.commit(tree.Path, "both")
			spoil(w)
			before := w.git(w.main, "status", "--porcelain") + w.git(w.main, "rev-parse", "HEAD")
			for _, action := range []Action{Apply, Squash, Merge} {
				if got, err := w.finish(tree, action); bridge.CodeOf(err) != bridge.Conflict || got.Done {
					t.Errorf("%s: %+v, %v", action, got, err)
				}
			}
			if after := w.git(w.main, "status", "--porcelain") + w.git(w.main, "rev-parse", "HEAD"); after != before {
				t.Errorf("%q became %q", before, after)
			}
		})
	}
	t.Run("a file that was only touched is clean", func(t *testing.T) {
		w := newWorld(t)
		tree := w.add(w.main)
		w.write(tree.Path, "a.txt", "job\n")
		if err := os.Chtimes(filepath.Join(w.main, "a.txt"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		if got, err := w.finish(tree, Squash); err != nil || !got.Done {
			t.Errorf("Finish = %+v, %v", got, err)
		}
	})
	t.Run("no branch", func(t *testing.T) {
		w := newWorld(t)
		tree := w.add(w.main)
		w.write(tree.Path, "new.txt", "n")
		w.git(w.main, "checkout", "-q", "--detach")
		if _, err := w.finish(tree, Merge); bridge.CodeOf(err) != bridge.Conflict {
			t.Errorf("Finish = %v", err)
		}
	})
}

func TestJOB_18_MergedIsTestedByContent(t *testing.T) {
	tests := []struct {
		name string
		land func(w *world, branch string)
		want Landing
	}{
		{"not at all", func(*world, string) {}, NotLanded},
		{"something else", func(w *world, _ string) { w.write(w.main, "z", "z"); w.commit(w.main, "z") }, NotLanded},
		{"merged", func(w *world, branch string) { w.git(w.main, "merge", "-q", "--no-ff", "-m", "m", branch) }, Ancestor},
		{"squashed", func(w *world, branch string) { w.git(w.main, "merge", "-q", "--squash", branch); w.commit(w.main, "s") }, Content},
		{"squashed, and changed since", func(w *world, branch string) {
			w.git(w.main, "merge", "-q", "--squash", branch)
			w.commit(w.main, "s")
			w.write(w.main, "a.txt", "all else\n")
			w.commit(w.main, "later")
		}, Content},
		{"rebased", func(w *world, branch string) {
			w.git(w.main, "cherry-pick", branch+"~1", branch)
			w.write(w.main, "a.txt", "all else\n")
			w.commit(w.main, "later")
		}, Content},
		{"only half of it", func(w *world, branch string) { w.git(w.main, "cherry-pick", branch+"~1") }, NotLanded},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			tree := w.add(w.main)
			w.write(w.main, "other.txt", "o\n")
			w.commit(w.main, "the owner's")
			w.write(tree.Path, "a.txt", "one\ntwo\n3\nfour\nfive\n")
			w.commit(tree.Path, "job 1")
			w.write(tree.Path, "new.txt", "n\n")
			w.commit(tree.Path, "job 2")
			tt.land(w, tree.Branch)
			if got, err := w.g.Landed(w.ctx(), w.main, tree.Branch, "main"); got != tt.want || err != nil {
				t.Errorf("Landed = %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

func TestJOB_19_ReclaimingTakesOnlyWhatIsLandedOrDroppedAndClean(t *testing.T) {
	work := func(w *world, tree Worktree) {
		w.write(tree.Path, "new.txt", "12345")
		w.commit(tree.Path, "job")
	}
	squash := func(w *world, tree Worktree) {
		work(w, tree)
		if _, err := w.finish(tree, Squash); err != nil {
			w.t.Fatal(err)
		}
	}
	tests := []struct {
		name string
		make func(w *world, tree Worktree)
		drop bool
		says string // of the refusal; "" is reclaimed
	}{
		{"unmerged", work, true, "neither merged nor discarded"},
		{"squashed", squash, false, ""},
		{"discarded", func(w *world, tree Worktree) { work(w, tree); _, _ = w.finish(tree, Discard) }, false, ""},
		{"untracked since", func(w *world, tree Worktree) { squash(w, tree); w.write(tree.Path, "u", "u") }, true, "uncommitted work (u)"},
		{"changed since", func(w *world, tree Worktree) { squash(w, tree); w.write(tree.Path, "a.txt", "u") }, true, "uncommitted work (a.txt)"},
		{"ignored", func(w *world, tree Worktree) { squash(w, tree); w.write(tree.Path, "x.log", "u") }, false, "only the owner can drop"},
		{"ignored, as the main checkout has it", func(w *world, tree Worktree) {
			squash(w, tree)
			w.write(w.main, ".env", "KEY=1")
			w.write(tree.Path, ".env", "KEY=1")
		}, false, ""},
		{"ignored, and other than in the main checkout", func(w *world, tree Worktree) {
			squash(w, tree)
			w.write(w.main, ".env", "KEY=1")
			w.write(tree.Path, ".env", "KEY=2")
		}, false, "only the owner can drop"},
		{"ignored and allowed", func(w *world, tree Worktree) { squash(w, tree); w.write(tree.Path, "x.log", "u") }, true, ""},
		{"detached", func(w *world, tree Worktree) { squash(w, tree); w.git(tree.Path, "checkout", "-q", "--detach") }, true, "on no branch"},
		{"a repository in it", func(w *world, tree Worktree) { squash(w, tree); w.git(tree.Path, "init", "-q", "build/inner") }, true, "another repository"},
		{"a checkout of another repository in it", func(w *world, tree Worktree) {
			squash(w, tree)
			other := filepath.Join(w.dir, "other")
			w.git(w.dir, "clone", "-q", w.main, other)
			w.git(other, "worktree", "add", "-q", filepath.Join(tree.Path, "build", "other"))
		}, true, "another repository"},
		{"a bare repository in it", func(w *world, tree Worktree) {
			squash(w, tree)
			w.git(tree.Path, "init", "-q", "--bare", "build/x.git")
		}, true, "another repository"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			tree := w.add(w.main)
			tt.make(w, tree)
			got, err := w.g.Reclaim(w.ctx(), tree, job, tt.drop)
			_, gone := os.Stat(tree.Path)
			if tt.says == "" {
				if err != nil || gone == nil || got.Bytes < 30 {
					t.Errorf("Reclaim = %+v, %v; there: %v", got, err, gone == nil)
				}
				if branches := w.git(w.main, "branch", "--list", "bridge/*"); !strings.Contains(branches, job) {
					t.Errorf("the branch is gone: %q", branches)
				}
				return
			}
			if bridge.CodeOf(err) != bridge.Conflict || !strings.Contains(err.Error(), tt.says) || gone != nil {
				t.Errorf("Reclaim = %v, want %q; there: %v", err, tt.says, gone == nil)
			}
			if list := w.git(w.main, "worktree", "list", "--porcelain"); !strings.Contains(list, "locked") {
				t.Error("it is not locked any more")
			}
		})
	}
	t.Run("no worktree of it", func(t *testing.T) {
		w := newWorld(t)
		tree := w.add(w.main)
		tree.Path = w.main
		if _, err := w.g.Reclaim(w.ctx(), tree, job, true); bridge.CodeOf(err) != bridge.Conflict {
			t.Errorf("Reclaim of the main checkout = %v", err)
		}
	})
}

func TestJOB_08_CommitsThatOnlyTheReflogKnowsKeepAName(t *testing.T) {
	w := newWorld(t)
	tree := w.add(w.main)
	w.write(tree.Path, "lost.txt", "lost\n")
	lost := w.commit(tree.Path, "to be reset")
	w.git(tree.Path, "reset", "-q", "--hard", "HEAD~1")
	if _, err := w.g.Reclaim(w.ctx(), tree, job, false); err != nil {
		t.Fatal(err)
	}
	w.git(w.main, "reflog", "expire", "--expire=now", "--all")
	w.git(w.main, "gc", "-q", "--prune=now")
	if got := w.git(w.main, "show", lost+":lost.txt"); got != "lost" {
		t.Errorf("lost.txt is %q", got)
	}
}

func TestALockOfAnotherGitIsWaitedForOrNamed(t *testing.T) {
	w := newWorld(t)
	tree := w.add(w.main)
	w.write(tree.Path, "x.txt", "x")
	lock := filepath.Join(w.main, ".git", "worktrees", filepath.Base(tree.Path), "index.lock")
	w.write(filepath.Dir(lock), "index.lock", "")
	if _, err := w.g.Park(w.ctx(), tree, job); bridge.CodeOf(err) != bridge.Busy || !strings.Contains(err.Error(), lock) {
		t.Errorf("Park = %v, want %s named", err, lock)
	}
	w.g.lockWait = time.Hour
	waits := 0
	w.g.pause = func(context.Context, time.Duration) error {
		if waits++; waits == 3 {
			return os.Remove(lock)
		}
		return nil
	}
	parked, err := w.g.Park(w.ctx(), tree, job)
	if err != nil || waits != 3 || w.git(tree.Path, "status", "--porcelain") != "" {
		t.Errorf("Park = %+v, %v after %d waits", parked, err, waits)
	}
	w.write(filepath.Join(w.main, ".git", "refs", "heads", "bridge"), job+".lock", "")
	w.write(tree.Path, "x.txt", "y")
	w.g.lockWait = 0
	if _, err := w.g.Park(w.ctx(), tree, job); bridge.CodeOf(err) != bridge.Busy || !strings.Contains(err.Error(), job+".lock") {
		t.Errorf("Park under a lock of the branch = %v", err)
	}
}

func TestARepositorysOwnProgramsDoNotRun(t *testing.T) {
	w := newWorld(t)
	tree := w.add(w.main)
	evil := filepath.Join(w.dir, "evil.sh")
	w.write(w.dir, "evil.sh", "#!/bin/sh\ntouch "+w.dir+"/ran\ncat\n")
	if err := os.Chmod(evil, 0o755); err != nil {
		t.Fatal(err)
	}
	w.write(tree.Path, ".gitattributes", "*.txt filter=evil diff=evil merge=evil\n")
	w.write(tree.Path, "a.txt", "one\ntwo\nthree\nfour\n5\n")
	for _, key := range []string{"filter.evil=x.clean", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv", "diff.evil.command", "diff.external", "merge.evil.driver", "core.fsmonitor", "core.pager", "core.editor", "gpg.program"} {
		w.git(w.main, "config", key, evil)
	}
	w.git(w.main, "config", "filter.evil.required", "true")
	w.git(w.main, "config", "commit.gpgSign", "true")
	w.write(filepath.Join(w.main, ".git", "hooks"), "reference-transaction", w.read(w.dir, "evil.sh"))
	if err := os.Chmod(filepath.Join(w.main, ".git", "hooks", "reference-transaction"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := w.g.Diff(w.ctx(), tree.Path, tree.BaseTree)
	if _, parkErr := w.g.Park(w.ctx(), tree, job); bridge.CodeOf(err) != bridge.Denied || bridge.CodeOf(parkErr) != bridge.Denied {
		t.Errorf("with a filter of the job's: Diff %v, Park %v, want both to be denied", err, parkErr)
	}
	w.write(tree.Path, ".gitattributes", "*.txt diff=evil merge=evil\n")
	if _, err := w.g.Diff(w.ctx(), tree.Path, tree.BaseTree); err != nil {
		t.Error(err)
	}
	if got, err := w.finish(tree, Squash); err != nil || !got.Done {
		t.Errorf("Finish = %+v, %v", got, err)
	}
	if _, err := w.g.Reclaim(w.ctx(), tree, job, true); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "ran")); err == nil {
		t.Error("a program that the repository names was started")
	}
}

func TestJOB_18_WhatGitLeftHalfDoneIsBroughtBack(t *testing.T) {
	w := newWorld(t)
	w.write(w.main, "gone.txt", "gone\n")
	w.write(w.main, "mine.txt", "old\n")
	w.commit(w.main, "second")
	tree := w.add(w.main)
	w.write(tree.Path, "a.txt", "one\nof the job's\n")
	w.write(tree.Path, "mine.txt", "the job's\n")
	w.write(tree.Path, "src/b.txt", "b, and more\n")
	w.write(tree.Path, "src/new.txt", "all of it\n")
	w.write(tree.Path, "build/kept.txt", "although it is ignored\n")
	w.git(tree.Path, "rm", "-q", "gone.txt")
	w.git(tree.Path, "add", "-f", "build/kept.txt")
	plan, err := w.g.Prepare(w.ctx(), tree, job, Squash, "", false)
	if err != nil {
		t.Fatal(err)
	}
	w.write(w.main, "a.txt", "one\nof")          // as a full disk cut it
	w.write(w.main, "mine.txt", "the owner's\n") // who was quicker
	w.write(w.main, "src/new.txt", "all of it\n")
	w.write(w.main, "build/kept.txt", "")
	w.write(w.main, "build/own.txt", "the owner's\n")
	for _, name := range []string{"gone.txt", "src/b.txt"} {
		if err := os.Remove(filepath.Join(w.main, name)); err != nil {
			t.Fatal(err)
		}
	}
	g, err := w.g.inWorktree(w.ctx(), tree)
	if err != nil {
		t.Fatal(err)
	}
	if err := (landing{g, tree, job}).undo(w.ctx(), plan.Target, plan.Next); err != nil {
		t.Fatal(err)
	}
	if status := w.git(w.main, "status", "--porcelain"); status != " M mine.txt" {
		t.Errorf("the checkout is left with %q", status)
	}
	for name, want := range map[string]string{"mine.txt": "the owner's\n", "a.txt": "one\ntwo\nthree\nfour\nfive\n", "gone.txt": "gone\n", "build/own.txt": "the owner's\n"} {
		if got := w.read(w.main, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if _, err := os.Lstat(filepath.Join(w.main, "build", "kept.txt")); err == nil {
		t.Error("what was cut at its begin is left")
	}
}
