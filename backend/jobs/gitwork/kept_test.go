package gitwork

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	delegated "bridge/backend/core/job"
	"bridge/backend/platform/sandbox"
)

// turned is what the filter seal makes of a text: rot13.
const (
	secret = "TOKEN=made up\n"
	turned = "GBXRA=znqr hc\n"
	rot13  = "tr A-Za-z N-ZA-Mn-za-m"
)

// sealed is a repository that stores *.secret by a filter of its own settings.
func sealed(t *testing.T, floor bool) *world {
	w := newWorldWith(t, floor)
	for key, value := range map[string]string{"clean": rot13, "smudge": rot13, "required": "true"} {
		w.git(w.main, "config", "filter.seal."+key, value)
	}
	w.write(w.main, ".gitattributes", "*.secret filter=seal\n")
	w.write(w.main, "old.secret", secret)
	w.commit(w.main, "a sealed file")
	return w
}

// own is the record that a runner makes before its job begins.
func (w *world) own(tree Worktree) *delegated.Checkout {
	w.t.Helper()
	recorded, err := w.g.Describe(w.ctx(), tree)
	if err != nil {
		w.t.Fatal(err)
	}
	return &recorded
}

func needFloor(t *testing.T) {
	t.Helper()
	if err := sandbox.Available(); err != nil {
		t.Skipf("SKIPPED, no filter of a repository's own runs: %v", err)
	}
}

// What a repository stores by a filter of its own is stored by that filter, as it was
// before the job began, and lands in a checkout that git calls clean.
func TestRWM_02_NothingGoesRoundTheFilterOfARepository(t *testing.T) {
	needFloor(t)
	for name, meddle := range map[string]func(w *world, tree Worktree){
		"as it was":  func(*world, Worktree) {},
		"taken away": func(w *world, _ Worktree) { w.git(w.main, "config", "--remove-section", "filter.seal") },
		"replaced":   func(w *world, _ Worktree) { w.git(w.main, "config", "filter.seal.clean", "cat") },
		"not required any more": func(w *world, _ Worktree) {
			w.git(w.main, "config", "filter.seal.required", "false")
			w.git(w.main, "config", "filter.seal.clean", "")
		},
		"replaced for the worktree": func(w *world, tree Worktree) {
			w.git(w.main, "config", "extensions.worktreeConfig", "true")
			w.git(tree.Path, "config", "--worktree", "filter.seal.clean", "cat")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := sealed(t, true)
			tree := w.add(w.main)
			if got := w.read(tree.Path, "old.secret"); got != secret {
				t.Errorf("the job sees %q", got)
			}
			g := w.g.Pin(w.own(tree))
			w.write(tree.Path, "new.secret", secret)
			w.write(tree.Path, "a.txt", "plain\n")
			meddle(w, tree)
			changes, err := g.Diff(w.ctx(), tree.Path, tree.BaseTree)
			if err != nil || len(changes) != 2 {
				t.Fatalf("Diff = %+v, %v", changes, err)
			}
			touched := filepath.Join(w.main, "old.secret")
			if err := os.WriteFile(touched, []byte(secret), 0o644); err != nil { // git has to look again
				t.Fatal(err)
			}
			got, err := g.Finish(w.ctx(), tree, job, Squash, "", false)
			if err != nil || !got.Done {
				t.Fatalf("Finish = %+v, %v", got, err)
			}
			if blob := w.git(w.main, "cat-file", "blob", "HEAD:new.secret"); blob+"\n" != turned {
				t.Errorf("Bridge stored %q", blob)
			}
			if text := w.read(w.main, "new.secret"); text != secret {
				t.Errorf("the checkout has %q", text)
			}
		})
	}
}

// Where a filter cannot run nothing is stored, the sentence says why, and everything stays.
func TestRWM_02_AFilterThatIsSwitchedOffFailsClosed(t *testing.T) {
	for name, test := range map[string]struct {
		floor  bool
		record bool
		says   string
		meddle func(w *world)
	}{
		"no floor":                   {record: true, says: "no floor"},
		"nothing was recorded":       {floor: true, says: "before the job began"},
		"a process was added":        {floor: true, record: true, says: "process was set up", meddle: func(w *world) { w.git(w.main, "config", "filter.seal.process", "cat") }},
		"its program is gone":        {floor: true, record: true, says: "failed", meddle: func(w *world) {}},
		"no floor, and it is looked": {record: true, says: "no floor"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.floor {
				needFloor(t)
			}
			w := sealed(t, sandbox.Available() == nil)
			if name == "its program is gone" {
				w.write(w.dir, "seal.sh", "#!/bin/sh\nexec "+rot13+"\n")
				if err := os.Chmod(filepath.Join(w.dir, "seal.sh"), 0o755); err != nil {
					t.Fatal(err)
				}
				w.git(w.main, "config", "filter.seal.clean", filepath.Join(w.dir, "seal.sh"))
				w.git(w.main, "config", "filter.seal.required", "false")
			}
			tree := w.add(w.main)
			recorded := w.own(tree)
			g := w.g
			if test.record {
				g = g.Pin(recorded)
			}
			if !test.floor {
				g.sandbox = nil
			}
			if name == "its program is gone" {
				if err := os.Remove(filepath.Join(w.dir, "seal.sh")); err != nil {
					t.Fatal(err)
				}
			}
			w.write(tree.Path, "new.secret", secret)
			if test.meddle != nil {
				test.meddle(w)
			}
			refs := w.git(w.main, "for-each-ref")
			_, diffErr := g.Diff(w.ctx(), tree.Path, tree.BaseTree)
			_, parkErr := g.Park(w.ctx(), tree, job)
			_, finishErr := g.Finish(w.ctx(), tree, job, Squash, "", false)
			for what, err := range map[string]error{"Diff": diffErr, "Park": parkErr, "Finish": finishErr} {
				if bridge.CodeOf(err) != bridge.Denied || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), `"seal"`) {
					t.Errorf("%s = %v, want it to be denied and to say %q", what, err, test.says)
				}
			}
			if w.git(w.main, "for-each-ref") != refs || w.read(tree.Path, "new.secret") != secret {
				t.Error("something was changed")
			}
			if out, err := w.try(w.main, "cat-file", "--batch-all-objects", "--batch"); err != nil || strings.Contains(out, strings.TrimSpace(secret)) {
				t.Errorf("the plain text is in the repository, %v", err)
			}
		})
	}
}

// The owner's own filters, and those of the repositories that people have.
func TestRWM_02_RealFilters(t *testing.T) {
	needFloor(t)
	for name, test := range map[string]struct {
		program string
		setUp   func(w *world)
		stored  string // what the stored content begins with
	}{
		"git-crypt": {"git-crypt", func(w *world) {
			w.git(w.main, "crypt", "init")
			w.write(w.main, ".gitattributes", "*.secret filter=git-crypt diff=git-crypt\n")
		}, "\x00GITCRYPT"},
		"git-lfs of the repository": {"git-lfs", func(w *world) {
			w.git(w.main, "lfs", "install", "--local", "--skip-repo")
			w.write(w.main, ".gitattributes", "*.secret filter=lfs diff=lfs merge=lfs -text\n")
		}, "version https://git-lfs"},
		"git-lfs of the owner": {"git-lfs", func(w *world) {
			w.git(w.main, "lfs", "install", "--skip-repo")
			w.write(w.main, ".gitattributes", "*.secret filter=lfs diff=lfs merge=lfs -text\n")
		}, "version https://git-lfs"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(test.program); err != nil {
				t.Skipf("SKIPPED, no %s", test.program)
			}
			w := newWorld(t)
			test.setUp(w)
			w.write(w.main, "old.secret", secret)
			w.commit(w.main, "a sealed file")
			tree := w.add(w.main)
			if got := w.read(tree.Path, "old.secret"); got != secret {
				t.Fatalf("the job sees %q", got)
			}
			g := w.g.Pin(w.own(tree))
			w.write(tree.Path, "new.secret", "another\n")
			changes, err := g.Diff(w.ctx(), tree.Path, tree.BaseTree)
			if err != nil || len(changes) != 1 || changes[0].Path != "new.secret" {
				t.Fatalf("Diff = %+v, %v", changes, err)
			}
			w.write(w.main, "old.secret", secret) // the same, at another time
			got, err := g.Finish(w.ctx(), tree, job, Squash, "", false)
			if err != nil || !got.Done {
				t.Fatalf("Finish = %+v, %v", got, err)
			}
			if blob := w.git(w.main, "cat-file", "blob", "HEAD:new.secret"); !strings.HasPrefix(blob, test.stored) {
				t.Errorf("Bridge stored %q", blob)
			}
			if text := w.read(w.main, "new.secret"); text != "another\n" {
				t.Errorf("the checkout has %q", text)
			}
			if status := w.git(w.main, "status", "--porcelain"); status != "" {
				t.Errorf("the checkout is left with %q", status)
			}
			if _, err := g.Reclaim(w.ctx(), tree, job, true); err != nil {
				t.Error(err)
			}
		})
	}
}

// dotfiles is a home folder that is a repository, with a job's folder and other files.
func dotfiles(t *testing.T) (w *world, home, notes string) {
	w = newWorld(t)
	home = filepath.Join(w.dir, "person")
	notes = filepath.Join(home, "notes")
	w.git(w.dir, "init", "-q", home)
	w.write(home, ".bashrc", "x\n")
	w.commit(home, "dotfiles")
	w.write(home, ".ssh/id_ed25519", "made up key\n")
	w.write(home, ".bashrc", "changed\n")
	w.write(notes, "a.md", "hi\n")
	return w, home, notes
}

// What lies beside a job's folder is not taken up, whatever repository holds both.
func TestRWM_01_NothingAboveTheJobsFolderIsTakenUp(t *testing.T) {
	w, home, notes := dotfiles(t)
	record, err := w.g.Checkout(w.ctx(), notes)
	if err != nil {
		t.Fatal(err)
	}
	g := w.g.Pin(&record)
	if record.Top != home || record.Inside != "notes" {
		t.Fatalf("Checkout = %+v", record)
	}
	_, start, err := g.Start(w.ctx(), record.Top, job)
	if err != nil {
		t.Fatal(err)
	}
	w.write(notes, "b.md", "of the job\n")
	w.write(home, ".netrc", "another secret\n")
	w.write(home, ".profile", "staged by the owner\n")
	w.git(home, "add", ".profile")
	end, err := g.End(w.ctx(), record.Top, job)
	if err != nil {
		t.Fatal(err)
	}
	changes, err := g.DiffTrees(w.ctx(), record.Top, start, end)
	if err != nil || len(changes) != 1 || changes[0].Path != "notes/b.md" {
		t.Errorf("the job changed %+v, %v", changes, err)
	}
	for _, ref := range []string{refOf(job, "start"), refOf(job, "end")} {
		if names := w.git(home, "ls-tree", "-r", "--name-only", ref); strings.Contains(names, ".ssh") || strings.Contains(names, ".netrc") {
			t.Errorf("%s holds %q", ref, names)
		}
	}
	if out := w.git(home, "cat-file", "--batch-all-objects", "--batch"); strings.Contains(out, "made up key") || strings.Contains(out, "another secret") || strings.Contains(out, "changed\n") {
		t.Error("other files of the home are in its repository")
	}
}

// No file of Bridge's own is taken up, also where the job's folder holds Bridge's home.
func TestRWM_01_NoFileOfBridgesHomeIsTakenUp(t *testing.T) {
	w := newWorld(t)
	w.git(w.dir, "init", "-q", w.dir)
	w.write(w.dir, "bridge/config.json", "{}\n")
	w.git(w.dir, "add", "bridge/config.json")
	w.git(w.dir, "commit", "-q", "-m", "one file of it")
	w.write(w.dir, "bridge/config.json", "{\"changed\": 1}\n")
	w.write(w.dir, "bridge/launch-secret", "made up secret\n")
	tree, err := w.g.Snapshot(w.ctx(), w.dir)
	if err != nil {
		t.Fatal(err)
	}
	if names := w.git(w.dir, "ls-tree", "-r", "--name-only", tree); !strings.Contains(names, ".gitconfig") || strings.Contains(names, "launch-secret") {
		t.Errorf("it holds %q", names)
	}
	if text := w.git(w.dir, "show", tree+":bridge/config.json"); text != "{}" {
		t.Errorf("the settings are taken up: %q", text)
	}
}

// A folder that is not the job's worktree any more is left alone, with all its files, and
// so are the branches of every repository around.
func TestRWM_01_AFolderThatIsNotTheWorktreeIsNotParked(t *testing.T) {
	for name, meddle := range map[string]func(w *world, tree Worktree, outer string){
		"its .git is gone": func(w *world, tree Worktree, _ string) {
			if err := os.Remove(filepath.Join(tree.Path, ".git")); err != nil {
				w.t.Fatal(err)
			}
		},
		"its .git leads to the repository around": func(w *world, tree Worktree, outer string) {
			w.write(tree.Path, ".git", "gitdir: "+filepath.Join(outer, ".git")+"\n")
		},
		"its .git leads to another worktree": func(w *world, tree Worktree, _ string) {
			w.git(w.main, "worktree", "add", "-q", "-b", "other", filepath.Join(w.dir, "other"))
			w.write(tree.Path, ".git", "gitdir: "+filepath.Join(w.main, ".git/worktrees/other")+"\n")
		},
		"another worktree's folder leads back to it": func(w *world, tree Worktree, _ string) {
			w.git(w.main, "worktree", "add", "-q", "-b", "other", filepath.Join(w.dir, "other"))
			w.write(tree.Path, ".git", "gitdir: "+filepath.Join(w.main, ".git/worktrees/other")+"\n")
			w.write(w.main, ".git/worktrees/other/gitdir", filepath.Join(tree.Path, ".git")+"\n")
		},
		"its .git leads to a folder of the job's that leads back": func(w *world, tree Worktree, _ string) {
			w.write(tree.Path, ".git", "gitdir: "+filepath.Join(tree.Path, "fake")+"\n")
			w.write(tree.Path, "fake/gitdir", filepath.Join(tree.Path, ".git")+"\n")
			w.write(tree.Path, "fake/commondir", filepath.Join(w.main, ".git")+"\n")
			w.write(tree.Path, "fake/HEAD", "ref: refs/heads/main\n")
		},
		"it is a repository of its own": func(w *world, tree Worktree, _ string) {
			if err := os.Remove(filepath.Join(tree.Path, ".git")); err != nil {
				w.t.Fatal(err)
			}
			w.git(tree.Path, "init", "-q")
			w.commit(tree.Path, "anew")
		},
		"its .git is a link": func(w *world, tree Worktree, outer string) {
			err := os.Remove(filepath.Join(tree.Path, ".git"))
			if err == nil {
				err = os.Symlink(filepath.Join(outer, ".git"), filepath.Join(tree.Path, ".git"))
			}
			if err != nil {
				w.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, outer, _ := dotfiles(t)
			w.trees = filepath.Join(outer, "worktrees")
			tree := w.add(w.main)
			recorded := w.own(tree)
			w.write(tree.Path, "new.txt", "work\n")
			meddle(w, tree, outer)
			refs := w.git(outer, "for-each-ref") + w.git(outer, "symbolic-ref", "HEAD") + w.git(w.main, "for-each-ref") + w.git(w.main, "worktree", "list")
			for what, g := range map[string]*Git{"recorded": w.g.Pin(recorded), "not recorded": w.g} {
				if name == "another worktree's folder leads back to it" && what == "not recorded" {
					continue // nothing but a record tells these two apart
				}
				if _, err := g.Park(w.ctx(), tree, job); bridge.CodeOf(err) != bridge.Conflict || !strings.Contains(err.Error(), "its files stay there") {
					t.Errorf("%s: Park = %v", what, err)
				}
				for _, action := range []Action{Squash, Discard, Keep} {
					if got, err := g.Finish(w.ctx(), tree, job, action, "", false); bridge.CodeOf(err) != bridge.Conflict {
						t.Errorf("%s: Finish by %s = %+v, %v", what, action, got, err)
					}
				}
				if _, err := g.Reclaim(w.ctx(), tree, job, true); bridge.CodeOf(err) != bridge.Conflict {
					t.Errorf("%s: Reclaim = %v", what, err)
				}
			}
			if now := w.git(outer, "for-each-ref") + w.git(outer, "symbolic-ref", "HEAD") + w.git(w.main, "for-each-ref") + w.git(w.main, "worktree", "list"); now != refs {
				t.Errorf("before:\n%s\nafter:\n%s", refs, now)
			}
			if w.read(tree.Path, "new.txt") != "work\n" {
				t.Error("a file was changed")
			}
		})
	}
}

// A snapshot takes up so many new files and bytes, says what it left out, and nothing of
// the rest is lost or landed without it.
func TestRWM_01_SnapshotsAreBoundedAndSaySo(t *testing.T) {
	for name, test := range map[string]struct {
		limit bounds
		large int // bytes of one file; four have five
		files int // that are left out
		bytes int64
	}{"too many": {bounds{4, 1 << 20}, 20, 5, 40}, "too much": {bounds{100, 25}, 6, 5, 26}, "one too large": {bounds{100, 40}, 20, 1, 20}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tree := w.add(w.main)
			var said []string
			g := w.g.Say(func(sentence string) { said = append(said, sentence) })
			g.bounds = test.limit
			for _, name := range []string{"1.txt", "2.txt", "3.txt", "4.txt"} {
				w.write(tree.Path, name, "four\n")
			}
			w.write(tree.Path, "large.txt", strings.Repeat("a", test.large))
			parked, err := g.Park(w.ctx(), tree, job)
			if err != nil || parked.LeftOut != (LeftOut{test.files, test.bytes, "large.txt"}) {
				t.Fatalf("Park = %+v, %v", parked, err)
			}
			if len(said) != 1 || !strings.Contains(said[0], bridge.Counted(test.files, "new file")) {
				t.Errorf("it said %q", said)
			}
			for _, dry := range []bool{true, false} {
				if got, err := g.Finish(w.ctx(), tree, job, Squash, "", dry); bridge.CodeOf(err) != bridge.TooLarge {
					t.Errorf("Finish = %+v, %v", got, err)
				}
			}
			if _, err := g.Finish(w.ctx(), tree, job, Discard, "", false); err != nil {
				t.Error(err)
			}
			if _, err := g.Reclaim(w.ctx(), tree, job, true); bridge.CodeOf(err) != bridge.Conflict {
				t.Errorf("Reclaim = %v", err)
			}
			if w.read(tree.Path, "4.txt") != "four\n" {
				t.Error("a file is gone")
			}
		})
	}
}

// Temporary files have their place in Bridge's home, which is made again where it is gone.
func TestRWM_09_TemporaryFilesNeedNoFolderOfTheStarter(t *testing.T) {
	w := newWorld(t)
	gone := filepath.Join(w.dir, "gone")
	t.Setenv("TMPDIR", gone)
	var err error
	before := w.g.sandbox
	if w.g, err = Open(Options{Environ: append(w.env, "TMPDIR="+gone), Home: filepath.Join(w.dir, "bridge"), Sandbox: before}); err != nil {
		t.Fatal(err)
	}
	tree := w.add(w.main)
	w.write(tree.Path, "new.txt", "work\n")
	for range 2 {
		if _, err := w.g.Diff(w.ctx(), tree.Path, tree.BaseTree); err != nil {
			t.Error(err)
		}
		scratch := filepath.Join(w.dir, "bridge", "scratch")
		if entries, err := os.ReadDir(scratch); err != nil || len(entries) > 0 {
			t.Errorf("the scratch folder holds %v, %v", entries, err)
		}
		if err := os.Remove(scratch); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := w.finish(tree, Squash); err != nil || !got.Done {
		t.Errorf("Finish = %+v, %v", got, err)
	}
}

// A repository whose git folder is elsewhere works like any other, or is refused before
// anything is made.
func TestRWM_14_AGitFolderElsewhere(t *testing.T) {
	for name, lay := range map[string]func(w *world, folder string){
		"--separate-git-dir": func(w *world, folder string) {
			w.git(w.dir, "init", "-q", "--separate-git-dir", filepath.Join(w.dir, "store"), folder)
		},
		".git is a link": func(w *world, folder string) {
			w.git(w.dir, "init", "-q", folder)
			store := filepath.Join(w.dir, "store")
			err := os.Rename(filepath.Join(folder, ".git"), store)
			if err == nil {
				err = os.Symlink(store, filepath.Join(folder, ".git"))
			}
			if err != nil {
				w.t.Fatal(err)
			}
		},
		"core.worktree": func(w *world, folder string) {
			w.git(w.dir, "init", "-q", folder)
			w.git(folder, "config", "core.worktree", folder)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			folder := filepath.Join(w.dir, "elsewhere")
			lay(w, folder)
			w.write(folder, "a.txt", "one\n")
			w.commit(folder, "first")
			tree := w.add(folder)
			g := w.g.Pin(w.own(tree))
			w.write(tree.Path, "new.txt", "work\n")
			if changes, err := g.Diff(w.ctx(), tree.Path, tree.BaseTree); err != nil || len(changes) != 1 {
				t.Errorf("Diff = %+v, %v", changes, err)
			}
			if got, err := g.Finish(w.ctx(), tree, job, Squash, "", false); err != nil || !got.Done || w.read(folder, "new.txt") != "work\n" {
				t.Errorf("Finish = %+v, %v", got, err)
			}
			if _, err := g.Reclaim(w.ctx(), tree, job, true); err != nil {
				t.Error(err)
			}
		})
	}
}

// Where each worktree would work on the owner's files there is none.
func TestRWM_14_AFolderForAllWorktreesIsRefusedBeforeAnythingIsMade(t *testing.T) {
	w := newWorld(t)
	w.git(w.main, "config", "extensions.worktreeConfig", "true")
	w.git(w.main, "config", "core.worktree", w.main)
	r, err := w.g.Repository(w.ctx(), w.main)
	if err != nil {
		t.Fatal(err)
	}
	refs := w.git(w.main, "for-each-ref")
	if _, err := w.g.Add(w.ctx(), r, job, w.trees); bridge.CodeOf(err) != bridge.Invalid || !strings.Contains(err.Error(), "core.worktree") {
		t.Errorf("Add = %v", err)
	}
	if _, err := os.Lstat(w.trees); err == nil || w.git(w.main, "for-each-ref") != refs {
		t.Error("something was made")
	}
}
