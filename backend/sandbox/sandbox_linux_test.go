package sandbox_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"bridge/backend/bridge"
	"bridge/backend/job"
	"bridge/backend/proc"
	"bridge/backend/sandbox"
)

// The test's own program is also the runner and `bridge sandbox-exec`.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "test-sandbox-exec":
			fmt.Fprintln(os.Stderr, sandbox.Main(os.Args[2:], os.Environ()))
			os.Exit(1)
		case "test-runner":
			os.Exit(runner(os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}

const patience = time.Minute

func run(t *testing.T, rules sandbox.Rules, script string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	line := sandbox.CommandLine([]string{self, "test-sandbox-exec"}, rules, []string{"/bin/sh", "-c", script})
	out, err := exec.CommandContext(t.Context(), line[0], line[1:]...).CombinedOutput()
	return string(out), err
}

func needFloor(t *testing.T) {
	t.Helper()
	if err := sandbox.Available(); err != nil {
		t.Skipf("SKIPPED, no floor was tried: %v", err)
	}
}

// What a program under the floor does reaches no file but those that it was given,
// by whatever way.
func TestJOB_14_UnderTheFloorOnlyWhatIsNamedIsWritten(t *testing.T) {
	needFloor(t)
	outside, inside := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "old"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(inside, "link")); err != nil {
		t.Fatal(err)
	}
	refused := map[string]string{
		"a new file":            "echo x > OUT/new",
		"an old file":           "echo x > OUT/old",
		"append":                "echo x >> OUT/old",
		"truncate":              "truncate -s 0 OUT/old",
		"through a link":        "echo x > IN/link/new",
		"by ..":                 "echo x > IN/../$(basename OUT)/new",
		"remove":                "rm OUT/old",
		"rename out":            "echo x > IN/x && mv IN/x OUT/new",
		"rename in":             "mv OUT/old IN/old && test ! -e OUT/old",
		"a hard link":           "ln OUT/old IN/hard && echo x > IN/hard",
		"a folder":              "mkdir OUT/d",
		"a symlink":             "ln -s / OUT/l",
		"a pipe":                "mkfifo OUT/p",
		"another session":       "setsid sh -c 'echo x > OUT/new'; test -e OUT/new",
		"shared memory":         "echo x > /dev/shm/bridge-test-floor",
		"a file in /tmp itself": "echo x > /tmp/bridge-test-floor",
	}
	for name, script := range refused {
		t.Run(name, func(t *testing.T) {
			script = strings.NewReplacer("OUT", outside, "IN", inside).Replace(script)
			if out, err := run(t, sandbox.Rules{Writable: []string{inside}}, script); err == nil {
				t.Errorf("%s went through:\n%s", script, out)
			}
		})
	}
	if old, err := os.ReadFile(filepath.Join(outside, "old")); err != nil || string(old) != "kept" {
		t.Errorf("the old file is %q, %v", old, err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("outside holds %v, %v", entries, err)
	}
}

// What is named can be worked in, everything can be read, and the ordinary
// devices are there.
func TestJOB_14_UnderTheFloorWorkGoesOn(t *testing.T) {
	needFloor(t)
	inside := t.TempDir()
	script := "cd " + inside + " && mkdir -p a b && echo x > a/x && mv a/x b/y && ln b/y a/z && rm a/z && cat b/y /etc/hostname > out 2>/dev/null; cat b/y && head -c 1 /dev/urandom > /dev/null"
	if out, err := run(t, sandbox.Rules{Writable: []string{inside}}, script); err != nil || out != "x\n" {
		t.Errorf("= %q, %v; want x", out, err)
	}
}

// A program under the floor cannot end those who are not.
func TestJOB_14_NoSignalLeavesTheFloor(t *testing.T) {
	needFloor(t)
	if out, err := run(t, sandbox.Rules{}, fmt.Sprintf("kill -0 %d", os.Getpid())); err == nil {
		t.Errorf("it reached this process:\n%s", out)
	}
}

// Nothing runs without the floor that was asked for.
func TestSandboxExecRefusesWhatItDoesNotKnow(t *testing.T) {
	for name, args := range map[string][]string{
		"no program":           {"--writable=/tmp"},
		"nothing behind":       {"--"},
		"a relative program":   {"--", "sh"},
		"an unknown flag":      {"--net", "--", "/bin/sh"},
		"a relative folder":    {"--writable=x", "--", "/bin/sh"},
		"a folder without a =": {"--writable", "/tmp", "--", "/bin/sh"},
	} {
		if err := sandbox.Main(args, nil); bridge.CodeOf(err) != bridge.Invalid {
			t.Errorf("%s: %v, want it to be invalid", name, err)
		}
	}
	out, err := run(t, sandbox.Rules{Writable: []string{"/no-such-folder"}}, "echo ran")
	if err == nil || strings.Contains(out, "ran") {
		t.Errorf("with a folder that is not there: %q, %v", out, err)
	}
}

// runner is a runner of a job: it adopts, starts a shell with the script, writes
// down who that is, and waits for a line. Then it ends everything, or is killed
// before.
func runner(args []string) int {
	if err := sandbox.Adopt(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cmd := exec.CommandContext(context.Background(), "/bin/sh", "-c", args[0])
	cmd.Env = append(os.Environ(), "BRIDGE_JOB=codex-job-1", "BRIDGE_JOB_TOKEN="+args[1])
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return 1
	}
	go cmd.Wait() //nolint:errcheck // its end is seen by what is left
	identity, _ := proc.Identity(cmd.Process.Pid)
	line, _ := json.Marshal([]job.Process{{PID: cmd.Process.Pid, Identity: identity, Role: "cli"}})
	fmt.Println(string(line))
	bufio.NewReader(os.Stdin).ReadString('\n') //nolint:errcheck // the end of the input is a sign, too
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	// Without identity and mark, only what was adopted is left to go by.
	if err := sandbox.End(ctx, sandbox.Mark{}, nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// tree starts ordinary and detached sleepers; the last ones have left session,
// group and parent before anybody looks.
const tree = `sleep 1000 & setsid sleep 1000 & (setsid sh -c 'sleep 1000 & sleep 1000' &) ; (env -u BRIDGE_JOB_TOKEN setsid sleep 1000 &)
 echo $$ > PIDS; sleep 1000`

// started is a runner with its job at work.
type started struct {
	cmd   *exec.Cmd
	stdin io.Closer
	known []job.Process
	below []int // everything below it
}

func startRunner(t *testing.T, token string, want int) *started {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := strings.ReplaceAll(tree, "PIDS", filepath.Join(t.TempDir(), "pids"))
	cmd := exec.CommandContext(t.Context(), self, "test-runner", script, token)
	cmd.Stderr = os.Stderr
	stdin, inErr := cmd.StdinPipe()
	stdout, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	s := &started{cmd: cmd, stdin: stdin}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &s.known) != nil {
		t.Fatalf("the runner said %q, %v", line, err)
	}
	// The sleepers are there when so many run below it.
	for deadline := time.Now().Add(patience); len(s.below) < want; s.below = descendants(t, cmd.Process.Pid) {
		if time.Now().After(deadline) {
			t.Fatalf("only %v run", s.below)
		}
	}
	t.Cleanup(func() {
		for _, pid := range s.below {
			if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.Contains(string(name), "1000") {
				syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
			}
		}
	})
	return s
}

func descendants(t *testing.T, pid int) []int {
	t.Helper()
	var all []int
	children, err := proc.Children(pid)
	if err != nil {
		t.Fatal(err)
	}
	for _, child := range children {
		all = append(all, child.PID)
		if more, err := proc.Children(child.PID); err == nil {
			for _, p := range more {
				all = append(all, p.PID)
			}
		}
	}
	slices.Sort(all)
	return all
}

func living(pids []int) []int {
	return slices.DeleteFunc(slices.Clone(pids), func(pid int) bool { return !proc.Alive(pid) })
}

// 1 shell, 3 sleepers of its own session or not, 1 shell with 2, 1 without mark.
const wholeTree = 7

// The runner ends what its CLI left, in whatever session, and nothing is left.
func TestJOB_06_TheRunnerEndsWhatLeftItsSession(t *testing.T) {
	s := startRunner(t, "secret-a", wholeTree)
	s.stdin.Close() //nolint:errcheck // its end is the sign
	if err := s.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if left := living(s.below); len(left) > 0 {
		t.Errorf("of %v still run %v", s.below, left)
	}
}

// When the runner was killed first, another process ends what is left, by what
// was written down, and nothing of another job.
func TestJOB_06_AnotherProcessEndsWhatADeadRunnerLeft(t *testing.T) {
	other := startRunner(t, "secret-of-another-job", wholeTree)
	s := startRunner(t, "secret-b", wholeTree)
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.cmd.Wait() //nolint:errcheck // it was killed
	if left := living(s.below); len(left) != len(s.below) {
		t.Fatalf("of %v only %v outlived the runner: the test proves nothing", s.below, left)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	mark := sandbox.Mark{Job: "codex-job-1", Token: "secret-b"}
	if err := sandbox.End(ctx, mark, s.known); err != nil {
		t.Error(err)
	}
	// The one that put off its mark and left its session and parent cannot be told
	// from a stranger any more.
	if left := living(s.below); len(left) > 1 {
		t.Errorf("of %v still run %v", s.below, left)
	}
	if left, err := sandbox.Left(mark, s.known); err != nil || len(left) > 0 {
		t.Errorf("Left = %v, %v", left, err)
	}
	if left := living(other.below); len(left) != len(other.below) {
		t.Errorf("of another job's %v only %v run", other.below, left)
	}
	other.stdin.Close() //nolint:errcheck // its end is the sign
	if err := other.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A number that was given to another process, or half a mark, ends nobody.
func TestJOB_06_AStrangerIsNotEnded(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "1000")
	cmd.Env = []string{"BRIDGE_JOB=codex-job-1", "BRIDGE_JOB_TOKEN=secret-c"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()         //nolint:errcheck // it is killed
	defer cmd.Process.Kill() //nolint:errcheck // it may have ended
	known := []job.Process{{PID: cmd.Process.Pid, Identity: "another boot:1"}}
	for _, mark := range []sandbox.Mark{{}, {Job: "codex-job-1"}, {Job: "codex-job-1", Token: "secret"}, {Job: "codex-job", Token: "secret-c"}} {
		if err := sandbox.End(t.Context(), mark, known); err != nil {
			t.Error(err)
		}
	}
	if !proc.Alive(cmd.Process.Pid) {
		t.Error("it was ended")
	}
}
