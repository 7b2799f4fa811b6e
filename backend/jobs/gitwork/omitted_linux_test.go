package gitwork

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"bridge/backend/core/bridge"
)

// ordinaryVariable marks a test that runs as a user from whom files can be kept.
const ordinaryVariable = "BRIDGE_TEST_ORDINARY_USER"

// asOrdinaryUser runs the test itself where this process is not root. Root reads
// everything, so as root it starts the test anew as another user, and reports false.
func asOrdinaryUser(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return true
	}
	if os.Getenv(ordinaryVariable) != "" {
		t.Fatal("this is still root")
	}
	const nobody = 65534
	root, err := os.MkdirTemp("", "gitwork-ordinary-") // t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	program, temporary := filepath.Join(root, "test"), filepath.Join(root, "tmp")
	w := &world{t: t}
	from, err := os.Open(os.Args[0])
	w.must(err)
	defer from.Close()
	file, err := os.OpenFile(program, os.O_CREATE|os.O_WRONLY, 0o755)
	w.must(err)
	_, err = io.Copy(file, from)
	w.must(err, file.Chmod(0o755), file.Close(), os.Chmod(root, 0o755), os.Mkdir(temporary, 0o700), os.Chown(temporary, nobody, nobody))
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir, cmd.Env = temporary, append(os.Environ(), ordinaryVariable+"=1", "TMPDIR="+temporary, "HOME="+temporary)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		t.Errorf("as an ordinary user: %v\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP: "+t.Name()+" "):
		t.Skipf("SKIPPED as an ordinary user:\n%s", out)
	case !strings.Contains(string(out), "--- PASS: "+t.Name()+" "):
		t.Errorf("it did not run as an ordinary user:\n%s", out)
	}
	return false
}

// closed takes all rights from a path until the test ends.
func (w *world) closed(path string) {
	w.t.Helper()
	w.must(os.Chmod(path, 0))
	w.t.Cleanup(func() { _ = os.Chmod(path, 0o700) })
}

// What a landing leaves out is named with its reason, and the rest lands.
func TestRWM_15_WhatALandingLeavesOutIsNamed(t *testing.T) {
	if !asOrdinaryUser(t) {
		return
	}
	for name, c := range map[string]struct {
		lay  func(w *world, tree Worktree)
		want []string // beginnings of the sentences
	}{
		"a new folder that cannot be read": {func(w *world, tree Worktree) {
			w.write(tree.Path, "data/pg/x", "x")
			w.closed(filepath.Join(tree.Path, "data", "pg"))
		}, []string{"data/pg/ cannot be read (permission denied)"}},
		"a new folder whose files cannot be reached": {func(w *world, tree Worktree) {
			w.write(tree.Path, "data/x", "x")
			w.closed(filepath.Join(tree.Path, "data"))
			w.must(os.Chmod(filepath.Join(tree.Path, "data"), 0o400))
		}, []string{"data/x cannot be read (permission denied)"}},
		"a new file that cannot be read": {func(w *world, tree Worktree) {
			w.write(tree.Path, "secret", "x")
			w.closed(filepath.Join(tree.Path, "secret"))
		}, []string{"secret cannot be read (permission denied)"}},
		"a changed file that cannot be read": {func(w *world, tree Worktree) {
			w.write(tree.Path, "a.txt", "changed")
			w.closed(filepath.Join(tree.Path, "a.txt"))
		}, []string{"a.txt cannot be read (permission denied)"}},
		"a folder of committed files that cannot be read": {func(w *world, tree Worktree) {
			w.closed(filepath.Join(tree.Path, "src"))
		}, []string{"src/ cannot be read (permission denied)"}},
		"a pipe and a socket": {func(w *world, tree Worktree) {
			w.must(syscall.Mkfifo(filepath.Join(tree.Path, "pipe"), 0o600), syscall.Mkfifo(filepath.Join(tree.Path, "ignored.log"), 0o600))
			socket, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
			w.must(err, os.Chdir(tree.Path), syscall.Bind(socket, &syscall.SockaddrUnix{Name: "socket"}), os.Chdir("/"), syscall.Close(socket))
		}, []string{"pipe is no file but a socket, a pipe or a device", "socket is no file but"}},
		"a pipe in the place of a committed file": {func(w *world, tree Worktree) {
			w.must(os.Remove(filepath.Join(tree.Path, "a.txt")), syscall.Mkfifo(filepath.Join(tree.Path, "a.txt"), 0o600))
		}, []string{"a.txt is no file but"}},
		"a repository": {func(w *world, tree Worktree) {
			w.git(tree.Path, "init", "-q", "own")
			w.write(tree.Path, "own/x.txt", "x\n")
		}, []string{"own/ is another repository"}},
		"a file named .git": {func(w *world, tree Worktree) { w.write(tree.Path, "odd/.git", "notes\n") }, []string{"odd/.git is named .git"}},
	} {
		for _, dry := range []bool{true, false} {
			if dry && name != "a new file that cannot be read" && name != "a pipe and a socket" {
				continue
			}
			t.Run(name, func(t *testing.T) {
				w := newWorld(t)
				tree := w.add(w.main)
				var said []string
				g := w.g.Pin(w.own(tree)).Say(func(sentence string) { said = append(said, sentence) })
				w.write(tree.Path, "work.txt", "work\n")
				c.lay(w, tree)
				got, err := g.Finish(w.ctx(), tree, job, Squash, "", dry)
				if err != nil || got.Done == dry {
					t.Fatalf("Finish = %+v, %v", got, err)
				}
				if !slices.EqualFunc(got.LeftOut, c.want, strings.HasPrefix) || !slices.Equal(got.LeftOut, said) {
					t.Errorf("left out: %q, said: %q; want %q", got.LeftOut, said, c.want)
				}
				if dry {
					return
				}
				if names := w.git(w.main, "ls-tree", "-r", "--name-only", "HEAD"); names != ".gitignore\na.txt\nsrc/b.txt\nwork.txt" {
					t.Errorf("landed: %s", names)
				}
				if w.git(w.main, "show", "HEAD:a.txt") != "one\ntwo\nthree\nfour\nfive" {
					t.Error("a file that cannot be read was changed")
				}
			})
		}
	}
}

// The list of what is left out has an end, and says how much more there is.
func TestRWM_15_WhatIsLeftOutIsBounded(t *testing.T) {
	w := newWorld(t)
	tree := w.add(w.main)
	for _, letter := range "abcdefghijkl" {
		for _, other := range "abcdefghijkl" {
			w.must(syscall.Mkfifo(filepath.Join(tree.Path, string(letter)+string(other)), 0o600))
		}
	}
	got, err := w.g.Finish(w.ctx(), tree, job, Squash, "", true)
	if err != nil || len(got.LeftOut) != maxOmissions+1 || !strings.HasPrefix(got.LeftOut[maxOmissions], "44 more file") {
		t.Errorf("Finish = %+v, %v", got, err)
	}
}

// A worktree stays for the reason that is stated.
func TestRWM_15_EachReasonToStayIsTheRealOne(t *testing.T) {
	if !asOrdinaryUser(t) {
		return
	}
	for name, c := range map[string]struct {
		before, lay func(w *world, dir string)
		says        string // "" is reclaimed
	}{
		"a folder that cannot be read": {lay: func(w *world, dir string) {
			w.write(dir, "build/pg/x", "x")
			w.closed(filepath.Join(dir, "build", "pg"))
		}, says: "build/pg cannot be read (permission denied)"},
		"another repository":    {lay: func(w *world, dir string) { w.git(dir, "init", "-q", "build/inner") }, says: "there is another repository in it, "},
		"a bare one":            {lay: func(w *world, dir string) { w.git(dir, "init", "-q", "--bare", "build/x.git") }, says: "there is another repository in it, "},
		"a file named .git":     {lay: func(w *world, dir string) { w.write(dir, "build/.git", "notes\n") }, says: "build/.git, which git does not keep"},
		"an empty folder of it": {lay: func(w *world, dir string) { w.must(os.MkdirAll(filepath.Join(dir, "build", ".git"), 0o700)) }},
		"a committed bare one": {before: func(w *world, dir string) {
			for _, name := range []string{"HEAD", "objects/x", "refs/x"} {
				w.write(dir, "testdata/x.git/"+name, "x\n")
			}
			w.commit(dir, "test data")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.before != nil {
				c.before(w, w.main)
			}
			tree := w.add(w.main)
			if c.lay != nil {
				c.lay(w, tree.Path)
			}
			_, err := w.g.Reclaim(w.ctx(), tree, job, true)
			if c.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if bridge.CodeOf(err) != bridge.Conflict || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("Reclaim = %v, want %q", err, c.says)
			}
			if strings.Contains(c.says, "cannot be read") && strings.Contains(err.Error(), "another repository") {
				t.Errorf("a wrong reason is stated: %v", err)
			}
		})
	}
}
