package driver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bridge/backend/agent/driver/run"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/sandbox"
	"bridge/backend/testing/testkit"
)

// The test's own program is also the sandbox.
func init() {
	if len(os.Args) > 1 && os.Args[1] == "test-sandbox-exec" {
		fmt.Fprintln(os.Stderr, sandbox.Main(os.Args[2:], os.Environ()))
		os.Exit(1)
	}
}

// What comes of a command.
const (
	works   = "works"
	refused = "refused"
	depends = "depends"
)

// everyday are commands that people run in a project all day. Each one works in a job that
// edits; in one that reads, those work that change nothing.
var everyday = []struct {
	name   string
	needs  string // programs besides the shell
	script string
	reads  string // what comes of it in a job that reads: works, refused, or what depends on this PC
}{
	{"list files", "", `ls -la . /tmp`, works},
	{"search", "grep find", `grep -rn package . && find . -name '*.go' | grep -q hello`, works},
	{"make and remove files", "", `mkdir -p a/b && echo x > a/b/c && mv a/b/c a/d && cp -r a e && rm -r a e`, refused},
	{"change a mode", "", `echo 'echo hi' > run.sh && chmod +x run.sh && ./run.sh`, refused},
	{"pipe and redirect", "sort", `printf 'b\na\n' | sort > sorted && test "$(head -1 sorted)" = a`, refused},
	{"here document", "", `cat <<END | grep -q words
words
END`, works},
	{"temporary file", "mktemp", `f=$(mktemp) && echo x > "$f" && rm "$f"`, works},
	{"named pipe", "mkfifo", `mkfifo p && (echo x > p &) && cat p && rm p`, refused},
	{"discard output", "", `echo x > /dev/null 2>&1`, works},
	{"job control", "bash", `bash -c 'set -m; sleep 1000 & kill %1; wait %1; test $? = 143'`, works},
	{"git status", "git", `git status --short && git log --oneline`, works},
	{"git commit", "git", `echo x >> hello.go.txt && git add . && git commit -qm more`, refused},
	{"git branch and merge", "git", `git checkout -qb side && echo y > side && git add side && git commit -qm side && git checkout -q - && git merge -q side`, refused},
	{"git stash", "git", `echo z >> hello.txt && git stash -q && git stash pop -q && git checkout -q .`, refused},
	{"git clone", "git", `git clone -q . "$TMPDIR/clone" && rm -rf "$TMPDIR/clone"`, refused},
	{"patch", "patch diff", `cp hello.txt old && echo more >> old && diff -u hello.txt old > p.diff; patch -s hello.txt p.diff && rm old p.diff`, refused},
	{"archive", "tar gzip", `tar czf a.tgz hello.txt && mkdir -p out && tar xzf a.tgz -C out && test -f out/hello.txt`, refused},
	{"make", "make", `printf 'made: hello.txt\n\tcp hello.txt made\n' > Makefile && make && test -f made`, refused},
	{"go build", "go", `go build -o hello ./ && ./hello`, refused},
	{"go test", "go", `go test ./...`, depends},
	{"python", "python3", `python3 -c 'print(1)' && echo 'x = 1' > m.py && python3 -c 'import m'`, refused},
	{"python processes", "python3", `python3 -c '
import multiprocessing as m
from multiprocessing import shared_memory as s
with m.Lock(): pass
with m.get_context("fork").Pool(2) as p: assert p.map(abs, [-1, -2]) == [1, 2]
a = s.SharedMemory(create=True, size=10)
b = s.SharedMemory(name=a.name)
a.buf[0] = 7
assert b.buf[0] == 7
b.close(); a.close(); a.unlink()'`, refused},
	{"python terminal", "python3", `python3 -c '
import os, pty, tty
first, second = pty.openpty()
named = os.open(os.ttyname(second), os.O_RDWR | os.O_NOCTTY)
os.write(named, b"words")
assert b"words" in os.read(first, 100)
pid, fd = pty.fork()
if pid == 0:
    open("/dev/tty", "w").write("controlled")
    os._exit(0)
assert b"controlled" in os.read(fd, 100)
assert os.waitpid(pid, 0)[1] == 0'`, refused},
	{"virtual environment", "python3", `python3 -m venv --without-pip venv && venv/bin/python -c 'import sys; assert sys.prefix != sys.base_prefix' && rm -r venv`, refused},
	{"a terminal's record", "script", `script -qec 'test -t 0 && echo on a terminal' record < /dev/null && grep -q 'on a terminal' record`, refused},
	{"node", "node", `node -e 'require("fs").writeFileSync("n.txt", "x")' && test -f n.txt`, refused},
	{"npm install", "node npm", `mkdir -p dep && echo '{"name":"dep","version":"1.0.0"}' > dep/package.json && echo '{"name":"p","version":"1.0.0","scripts":{"test":"node -e 0"}}' > package.json && npm install --offline --no-audit --no-fund ./dep && npm test`, refused},
	{"npm cache", "node npm", `cd dep && npm pack && npm cache add ./dep-1.0.0.tgz && npm cache verify`, refused},
	{"pip", "pip", `pip cache dir | grep -q "$TMPDIR"`, refused},
	{"sqlite", "sqlite3", `sqlite3 d.db 'pragma journal_mode=wal; create table t(x); insert into t values (1); select * from t' && sqlite3 d.db 'insert into t values (2)'`, refused},
	{"ssh key", "ssh-keygen", `ssh-keygen -q -t ed25519 -N '' -f key && ssh-keygen -lf key.pub`, refused},
	{"cargo", "cargo", `mkdir -p c/src && printf '[package]\nname="c"\nversion="0.1.0"\nedition="2021"\n' > c/Cargo.toml && echo 'fn main(){}' > c/src/main.rs && cd c && cargo build --offline`, refused},
	{"tmux", "tmux", `tmux -S ./t.sock -f /dev/null new-session -d 'echo x > in-tmux; sleep 1000' && timeout 60 sh -c 'until test -s in-tmux; do sleep 0.01; done'; tmux -S ./t.sock kill-server`, depends},
}

// TestRWM_22_EverydayCommands runs each command below the sandbox of a job, for the kinds
// whose commands differ in what lies below them: those of opencode have a sandbox of their
// own inside. What a tool keeps for the next time is then in the job's folder.
func TestRWM_22_EverydayCommands(t *testing.T) {
	if err := sandbox.Available(); err != nil {
		t.Skipf("SKIPPED, no command was tried: %v", err)
	}
	state := t.TempDir() // one cache for the jobs that edit
	for _, column := range []struct {
		kind   bridge.AgentKind
		access job.Access
	}{{bridge.Claude, job.AccessEdit}, {bridge.OpenCode, job.AccessEdit}, {bridge.Claude, job.AccessRead}} {
		t.Run(fmt.Sprint(column.kind, " ", column.access), func(t *testing.T) {
			s := everydayJob(t, column.kind, column.access)
			if column.access == job.AccessEdit {
				s.StateFolder = state
			}
			for _, command := range everyday {
				t.Run(command.name, func(t *testing.T) {
					for _, program := range strings.Fields(command.needs) {
						if err := exec.Command("sh", "-c", program+" --version || command -v "+program).Run(); err != nil {
							t.Skipf("SKIPPED, this PC has no %s", program)
						}
					}
					want := works
					if column.access == job.AccessRead {
						want = command.reads
					}
					if want == depends {
						return
					}
					if out, code := runIn(t, s, command.script); (code == 0) != (want == works) {
						t.Errorf("it ends with %d, want: %s:\n%s", code, want, out)
					}
				})
			}
		})
	}
}

// everydayJob makes a project in a repository, and a job in it.
func everydayJob(t *testing.T, kind bridge.AgentKind, access job.Access) job.Spec {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.org/hello\n\ngo 1.21\n", "hello.go": "package main\n\nfunc main() { println(\"hello\") }\n",
		"hello_test.go": "package main\n\nimport \"testing\"\n\nfunc TestHello(t *testing.T) {}\n", "hello.txt": "hello\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range [][]string{{"init", "-q"}, {"config", "user.name", "A"}, {"config", "user.email", "a@example.org"}, {"add", "."}, {"commit", "-qm", "first"}} {
		if out, err := exec.Command("git", append([]string{"-C", folder}, line...)...).CombinedOutput(); err != nil {
			t.Skipf("SKIPPED, git does not work here: %v %s", err, out)
		}
	}
	return job.Spec{
		Job: "job-1", Token: "secret", Kind: kind, Access: access, Folder: folder, StateFolder: t.TempDir(),
		Sandbox: []string{self, "test-sandbox-exec"}, Env: []string{"GOTOOLCHAIN=local", "GOFLAGS=-buildvcs=false", "SHELL=/bin/bash"},
	}
}

// runIn runs a script as a command of the job's agent.
func runIn(t *testing.T, s job.Spec, script string) (string, int) {
	t.Helper()
	argv := []string{"/bin/sh", "-c"}
	if s.Kind == bridge.OpenCode {
		shell, err := openCodeShell(s, job.FloorSandbox)
		if err != nil {
			t.Fatal(err)
		}
		argv[0] = shell
	}
	out := filepath.Join(run.Temporary(s), "out")
	p, err := run.Launch(s, run.Command{
		Argv: append(argv, "{ "+script+"\n} > "+bridge.QuotePOSIX(out)+" 2>&1; echo $? > "+bridge.QuotePOSIX(out)+".code"),
		Env:  run.Environment(s), Floor: job.FloorSandbox, OwnersCaches: s.Kind == bridge.OpenCode,
	})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Ended():
	case <-time.After(testkit.Patience):
		p.Terminate()
		t.Fatal("it did not end")
	}
	text, _ := os.ReadFile(out) // without it the code is missing, too
	code := -1
	if said, err := os.ReadFile(out + ".code"); err == nil {
		fmt.Sscan(string(said), &code) //nolint:errcheck // -1 then
	}
	os.Remove(out + ".code") //nolint:errcheck // it may be missing
	return string(text), code
}
