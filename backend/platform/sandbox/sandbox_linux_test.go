package sandbox_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/proc"
	"bridge/backend/platform/sandbox"
	"bridge/backend/testing/testkit"
)

// The test's own program is also the runner and `bridge sandbox-exec`.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "test-sandbox-exec":
			fmt.Fprintln(os.Stderr, sandbox.Main(os.Args[2:], os.Environ()))
			os.Exit(1)
		case "test-sockets":
			trySockets()
			os.Exit(0)
		case "test-reap":
			os.Exit(reapOrphans())
		case "test-hold":
			os.Exit(holdConnection(os.Args[2], os.Args[3]))
		case "test-runner":
			os.Exit(runner(os.Args[2:]))
		case "test-end-own":
			os.Exit(endOwn(sandbox.Mark{Job: os.Args[2], Token: os.Args[3], Cgroup: os.Args[4]}))
		}
	}
	os.Exit(m.Run())
}

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

// trySockets says which kinds of sockets it can make.
func trySockets() {
	for _, test := range []struct {
		name         string
		family, kind int
	}{
		{"tcp", unix.AF_INET, unix.SOCK_STREAM},
		{"udp", unix.AF_INET, unix.SOCK_DGRAM},
		{"icmp", unix.AF_INET, unix.SOCK_RAW},
		{"tcp6", unix.AF_INET6, unix.SOCK_STREAM},
		{"udp6", unix.AF_INET6, unix.SOCK_DGRAM},
		{"packet", unix.AF_PACKET, unix.SOCK_RAW},
		{"vsock", unix.AF_VSOCK, unix.SOCK_STREAM},
		{"unix", unix.AF_UNIX, unix.SOCK_STREAM},
		{"netlink", unix.AF_NETLINK, unix.SOCK_RAW},
	} {
		fd, err := unix.Socket(test.family, test.kind, 0)
		if err == nil {
			unix.Close(fd)
		}
		fmt.Println(test.name, err)
	}
	var params [120]byte
	ring, _, err := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
	if err == 0 {
		unix.Close(int(ring))
	}
	fmt.Println("io_uring", err)
	if runtime.GOARCH == "amd64" {
		fd, _, err := unix.Syscall(0x40000000+unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 0)
		if err == 0 {
			unix.Close(int(fd))
		}
		fmt.Println("x32", err)
	}
}

// Where the rules say so nothing is reached but the programs of this machine, also by
// what is started later and whoever it is.
func TestJOB_14_NoSocketLeadsOutWhereTheRulesCloseTheNetwork(t *testing.T) {
	needFloor(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const denied, absent = "permission denied", "function not implemented"
	want := map[string]string{
		"tcp": denied, "udp": denied, "icmp": denied, "tcp6": denied, "udp6": denied, "packet": denied, "vsock": denied,
		"unix": "<nil>", "netlink": "<nil>", "io_uring": absent, "x32": absent,
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	reach := fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d && echo reached", listener.Addr().(*net.TCPAddr).Port)
	script := fmt.Sprintf("(%s test-sockets); setsid bash -c '%s' 2>/dev/null; true", self, reach)
	open, err := run(t, sandbox.Rules{}, script)
	if err != nil || !strings.Contains(open, "tcp <nil>\n") || !strings.HasSuffix(open, "reached\n") {
		t.Fatalf("with the network as it is: %v\n%s", err, open)
	}
	out, err := run(t, sandbox.Rules{NoNetwork: true}, script)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(out) {
		name, said, _ := strings.Cut(strings.TrimSpace(line), " ")
		if said != want[name] {
			t.Errorf("%s: %q, want %q", name, said, want[name])
		}
		delete(want, name)
	}
	if delete(want, "x32"); len(want) > 0 {
		t.Errorf("nothing is told of %v:\n%s", want, out)
	}
}

// Registered files of an io_uring stand in no table of descriptors, where the owner of a
// connection is looked for: below every floor there is none.
func TestSEC_02_NoIORingBelowAnyFloor(t *testing.T) {
	needFloor(t)
	for name, rules := range map[string]sandbox.Rules{
		"the network is open": {}, "no network": {NoNetwork: true}, "no sockets": {NoSockets: true}, "all is ended": {EndAll: true},
	} {
		t.Run(name, func(t *testing.T) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			out, err := run(t, rules, self+" test-sockets")
			if err != nil || !strings.Contains(out, "io_uring function not implemented\n") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// A service that listens on this machine runs what it is asked outside of the floor.
func TestSEC_02_NoSocketAtAllWhereTheRulesCloseThem(t *testing.T) {
	needFloor(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := run(t, sandbox.Rules{NoSockets: true}, "setsid "+self+" test-sockets")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(out) {
		name, said, _ := strings.Cut(strings.TrimSpace(line), " ")
		want := "permission denied"
		if name == "io_uring" || name == "x32" {
			want = "function not implemented"
		}
		if said != want {
			t.Errorf("%s: %q, want %q", name, said, want)
		}
	}
	if strings.Count(out, "\n") < 10 {
		t.Errorf("not all was tried:\n%s", out)
	}
}

// Nothing that a program started is left when it has ended, however it ended and whatever
// session its children have; its exit code and its output are its own.
func TestSEC_02_WhatAProgramStartedEndsWithIt(t *testing.T) {
	needFloor(t)
	inside := t.TempDir()
	alive := filepath.Join(inside, "alive")
	linger := fmt.Sprintf("setsid setsid env -i /bin/sh -c 'trap \"\" TERM HUP; echo $$ > %s; exec sleep 1000' >/dev/null 2>&1 & while ! test -s %s; do sleep 0.01; done; ", alive, alive)
	for name, test := range map[string]struct {
		end  string
		code int
	}{"it ends well": {"exit 0", 0}, "it fails": {"exit 3", 3}, "it is killed": {"kill -9 $$", 137}} {
		t.Run(name, func(t *testing.T) {
			out, err := run(t, sandbox.Rules{Writable: []string{inside}, NoSockets: true, EndAll: true}, "rm -f "+alive+"; echo begun; "+linger+test.end)
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				if code := exit.ExitCode(); code != test.code {
					t.Errorf("exit code %d, want %d", code, test.code)
				}
			} else if test.code != 0 || err != nil {
				t.Errorf("%v, want exit code %d", err, test.code)
			}
			if out != "begun\n" {
				t.Errorf("it said %q", out)
			}
			pid, err := os.ReadFile(alive)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat("/proc/" + strings.TrimSpace(string(pid))); err == nil {
				t.Errorf("process %s is still there", pid)
			}
		})
	}
}

// Who is asked to end ends what the program started, too, and waits for none of it.
func TestSEC_02_WhatIsBrokenOffLeavesNothing(t *testing.T) {
	needFloor(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	inside := t.TempDir()
	alive := filepath.Join(inside, "alive")
	script := fmt.Sprintf("(setsid setsid /bin/sh -c 'echo $$ > %s; exec sleep 1000' & sleep 1000) & sleep 1000", alive)
	line := sandbox.CommandLine([]string{self, "test-sandbox-exec"}, sandbox.Rules{Writable: []string{inside}, EndAll: true}, []string{"/bin/sh", "-c", script})
	cmd := exec.CommandContext(t.Context(), line[0], line[1:]...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		if data, _ := os.ReadFile(alive); len(data) > 0 {
			break
		}
		if time.Since(began) > testkit.Patience {
			t.Fatal("the last of them did not start")
		}
	}
	late := time.AfterFunc(testkit.Patience, func() { cmd.Process.Kill() }) //nolint:errcheck // it may have ended
	defer late.Stop()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 137 {
		t.Errorf("it ended with %v, want the code of a program that was killed", err)
	}
	pid, _ := os.ReadFile(alive)
	if _, err := os.Stat("/proc/" + strings.TrimSpace(string(pid))); err == nil {
		t.Errorf("process %s is still there", pid)
	}
}

// Nothing runs without the floor that was asked for.
func TestSandboxExecRefusesWhatItDoesNotKnow(t *testing.T) {
	for name, args := range map[string][]string{
		"no program":           {"--writable=/tmp"},
		"nothing behind":       {"--"},
		"a relative program":   {"--", "sh"},
		"an unknown flag":      {"--net", "--", "/bin/sh"},
		"a flag with a value":  {"--no-network=no", "--", "/bin/sh"},
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
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
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
	below []int // the sleepers below it, and their shell
}

func startRunner(t *testing.T, token string) *started {
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
	// What starts them comes and goes: they are counted themselves.
	for deadline := time.Now().Add(testkit.Patience); len(s.below) < sleepers; s.below = sleeping(t, cmd.Process.Pid) {
		if time.Now().After(deadline) {
			t.Fatalf("only %v of %d sleep", s.below, sleepers)
		}
	}
	if shell := s.known[0].PID; !slices.Contains(s.below, shell) {
		s.below = append(s.below, shell)
	}
	t.Cleanup(func() {
		for _, pid := range s.below {
			if sleeps(pid) {
				syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
			}
		}
	})
	return s
}

// sleeping lists the sleepers below a process.
func sleeping(t *testing.T, pid int) []int {
	t.Helper()
	var found []int
	var look func(pid, depth int)
	look = func(pid, depth int) {
		children, err := proc.Children(pid)
		if err != nil && depth == 0 {
			t.Fatal(err)
		}
		for _, child := range children {
			if sleeps(child.PID) {
				found = append(found, child.PID)
			}
			if depth < 3 {
				look(child.PID, depth+1)
			}
		}
	}
	look(pid, 0)
	slices.Sort(found)
	return slices.Compact(found) // one may have changed its parent meanwhile
}

func sleeps(pid int) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && string(line) == "sleep\x001000\x00"
}

func living(pids []int) []int {
	return slices.DeleteFunc(slices.Clone(pids), func(pid int) bool { return !proc.Alive(pid) })
}

// sleepers are those of the tree: 3 of its own session or not, 2 below another shell, 1
// without mark.
const sleepers = 6

// The runner ends what its CLI left, in whatever session, and nothing is left.
func TestJOB_06_TheRunnerEndsWhatLeftItsSession(t *testing.T) {
	s := startRunner(t, "secret-a")
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
	other := startRunner(t, "secret-of-another-job")
	s := startRunner(t, "secret-b")
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.cmd.Wait() //nolint:errcheck // it was killed
	if left := living(s.below); len(left) != len(s.below) {
		t.Fatalf("of %v only %v outlived the runner: the test proves nothing", s.below, left)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
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

// Whose a process is, is told by where it stands: also of what has left its session,
// its parent and its mark.
func TestJOB_11_AProcessOfAJobIsKnownByWhereItStands(t *testing.T) {
	var trees sandbox.Trees
	if name, err := trees.JobOf(job.Process{PID: 1 << 22}); name != "" || err != nil {
		t.Errorf("where no job runs: %q, %v", name, err)
	}
	s, other := startRunner(t, "secret-d"), startRunner(t, "secret-of-another-job")
	runner := func(s *started) job.Process {
		identity, err := proc.Identity(s.cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		return job.Process{PID: s.cmd.Process.Pid, Identity: identity}
	}
	trees.Set(sandbox.Mark{Job: "codex-job-1", Token: "secret-d"}, runner(s), s.known)
	of := func(pids []int) (names []string) {
		for _, pid := range pids {
			name, err := trees.JobOf(job.Process{PID: pid})
			if err != nil {
				t.Error(err)
			}
			names = append(names, name)
		}
		return names
	}
	if got := of(s.below); slices.Contains(got, "") {
		t.Errorf("of its processes %v are %q", s.below, got)
	}
	strangers := slices.Concat(other.below, []int{s.cmd.Process.Pid, os.Getpid(), 1})
	if got := of(strangers); slices.Contains(got, "codex-job-1") {
		t.Errorf("of others %v are %q", strangers, got)
	}
	if _, err := trees.JobOf(job.Process{PID: 1 << 22}); !errors.Is(err, proc.ErrGone) {
		t.Errorf("of one that is gone nobody can tell, and it says %v", err)
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.cmd.Wait() //nolint:errcheck // it was killed
	if got := of(s.below); len(slices.DeleteFunc(got, func(name string) bool { return name == "" })) < sleepers-1 {
		t.Errorf("without their runner %v are %q", s.below, got)
	}
	trees.Forget("codex-job-1")
	if got := of(living(s.below)); slices.Contains(got, "codex-job-1") {
		t.Errorf("forgotten, they are %q", got)
	}
}

// TestRMT_09_TheFloorIsTakenWhereNoLinkLeads: a folder whose name leads through a link
// is refused, and one that is swapped for a link at any moment is not written.
func TestRMT_09_TheFloorIsTakenWhereNoLinkLeads(t *testing.T) {
	needFloor(t)
	root := t.TempDir()
	outside, place, link := filepath.Join(root, "outside"), filepath.Join(root, "place"), filepath.Join(root, "link")
	for _, folder := range []string{outside, place, filepath.Join(outside, "below")} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{link, filepath.Join(link, "below")} {
		if out, err := run(t, sandbox.Rules{Unlinked: []string{folder}}, "echo ran"); err == nil || !strings.Contains(out, "a link leads elsewhere") {
			t.Errorf("%s: %s, %v", folder, out, err)
		}
	}
	if out, err := run(t, sandbox.Rules{Unlinked: []string{place}}, "echo x > "+place+"/in && ! echo x > "+outside+"/out"); err != nil {
		t.Errorf("what is allowed: %s, %v", out, err)
	}
	stop, swapped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(swapped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := unix.Renameat2(unix.AT_FDCWD, place, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE); err != nil {
				t.Errorf("swap: %v", err)
				return
			}
		}
	}()
	ran := 0
	for deadline := time.Now().Add(testkit.Patience); ran < 40 && time.Now().Before(deadline); {
		if out, _ := run(t, sandbox.Rules{Unlinked: []string{place}}, "echo ran; echo x > "+place+"/named"); strings.HasPrefix(out, "ran") {
			ran++
		}
	}
	close(stop)
	<-swapped
	if ran < 40 {
		t.Errorf("only %d have run", ran)
	}
	if _, err := os.Stat(filepath.Join(outside, "named")); err == nil {
		t.Error("the other folder was written")
	}
}
