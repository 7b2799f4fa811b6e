package gitwork

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"bridge/backend/platform/disk"
	"bridge/backend/platform/sandbox"
	"bridge/backend/testing/testkit"
)

const job = "codex-job-0a1b2c3d"

// world is a home with git, a repository and a folder for worktrees.
type world struct {
	t     testing.TB
	g     *Git
	env   []string
	dir   string // of everything
	main  string // the main checkout
	trees string
}

// trapProgram is what hostile repositories name, where they are tried.
var trapProgram func(outside, inside string)

// TestMain builds the worker that runs git in the sandbox, and then runs the tests. The
// test's own program is also a command that hostile repositories name.
func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == "test-trap" {
		trapProgram(os.Args[2], os.Args[3])
		syscall.Exit(0) // os.Exit sleeps for a second under the race detector
	}
	os.Exit(runWithWorker(m))
}

// workerVariable names the built bridge-worker. The worker is not under the race detector,
// where each of the thousands of git calls would take a second longer.
const workerVariable = "BRIDGE_TEST_WORKER"

// runWithWorker runs the tests with a built worker and returns the exit code. A test that
// runs itself again as another user uses the same worker.
func runWithWorker(m *testing.M) int {
	if os.Getenv(workerVariable) != "" {
		return m.Run()
	}
	folder, err := os.MkdirTemp("", "bridge-worker")
	if err == nil {
		worker := filepath.Join(folder, "bridge-worker")
		err = errors.Join(os.Chmod(folder, 0o755), testkit.Build(worker, "bridge/cmd/bridge-worker"), os.Setenv(workerVariable, worker))
	}
	code := 1
	if err == nil {
		code = m.Run()
	} else {
		fmt.Fprintln(os.Stderr, err)
	}
	_ = os.RemoveAll(folder)
	return code
}

// newWorld has the floor where this system has one.
func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldWith(t, sandbox.Available() == nil)
}

func newWorldWith(t testing.TB, floor bool) *world {
	t.Helper()
	dir, err := disk.Canonical(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, main: filepath.Join(dir, "app"), trees: filepath.Join(dir, "worktrees")}
	home := filepath.Join(dir, "home")
	w.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}
	opts := Options{Environ: w.env, Home: filepath.Join(dir, "bridge")}
	if floor {
		opts.Sandbox = []string{os.Getenv(workerVariable), "sandbox-exec"}
	}
	if w.g, err = Open(opts); err != nil {
		t.Fatal(err)
	}
	w.g.lockWait = 0
	w.write(home, ".gitconfig", "[user]\nname = Olga Owner\nemail = olga@example.com\n[init]\ndefaultBranch = main\n[protocol \"file\"]\nallow = always\n")
	w.git(dir, "init", "-q", w.main)
	w.write(w.main, "a.txt", "one\ntwo\nthree\nfour\nfive\n")
	w.write(w.main, "src/b.txt", "b\n")
	w.write(w.main, ".gitignore", "*.log\n.env\nbuild/\n")
	w.commit(w.main, "first")
	return w
}

// git runs git as the owner or an agent does.
func (w *world) git(dir string, args ...string) string {
	w.t.Helper()
	out, err := w.try(dir, args...)
	if err != nil {
		w.t.Fatalf("git %q in %s: %v: %s", args, dir, err, out)
	}
	return out
}

func (w *world) try(dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(w.t.Context(), "git", args...)
	cmd.Dir, cmd.Env = dir, append(w.env, "GIT_EDITOR=true", "GIT_CONFIG_NOSYSTEM=1", "BRIDGE_TEST_PROVOKED=1")
	out, err := cmd.CombinedOutput()
	return strings.TrimSuffix(string(out), "\n"), err
}

func (w *world) write(dir, name, text string) {
	w.t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) read(dir, name string) string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

func (w *world) commit(dir, message string) string {
	w.t.Helper()
	w.git(dir, "add", "-A")
	w.git(dir, "commit", "-q", "--allow-empty", "-m", message)
	return w.git(dir, "rev-parse", "HEAD")
}

func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), testkit.Patience)
	w.t.Cleanup(cancel)
	return ctx
}

// add makes the job's worktree from the checkout that holds folder.
func (w *world) add(folder string) Worktree {
	w.t.Helper()
	r, err := w.g.Repository(w.ctx(), folder)
	if err != nil {
		w.t.Fatal(err)
	}
	tree, err := w.g.Add(w.ctx(), r, job, w.trees)
	if err != nil {
		w.t.Fatal(err)
	}
	return tree
}

func (w *world) finish(tree Worktree, action Action) (Finish, error) {
	return w.g.Finish(w.ctx(), tree, job, action, "", false)
}
