package sandbox

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"bridge/backend/core/job"
	"bridge/backend/platform/proc"
	"bridge/backend/testing/testkit"
)

// The control group of a process is found by the mount that shows it.
func TestSEC_08_TheMountOfACgroupIsFound(t *testing.T) {
	const (
		v1      = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
		hybrid  = "38 31 0:31 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
		unified = "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
		below   = "35 24 0:30 /user.slice /mnt/a\\040b rw - cgroup2 cgroup2 rw\n"
		outside = "35 24 0:30 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	)
	for name, c := range map[string]struct{ mounts, group, want string }{
		"cgroup v2 alone":                     {unified, "/user.slice/x.scope", "/sys/fs/cgroup/user.slice/x.scope"},
		"beside v1":                           {v1 + hybrid, "/a", "/sys/fs/cgroup/unified/a"},
		"the topmost group":                   {hybrid, "/", "/sys/fs/cgroup/unified"},
		"a mount that shows a part":           {below, "/user.slice/x", "/mnt/a b/x"},
		"a mount that shows another part":     {below, "/system.slice/x", ""},
		"the second of two mounts shows it":   {below + unified, "/system.slice/x", "/sys/fs/cgroup/system.slice/x"},
		"a mount from outside a namespace":    {outside, "/a", ""},
		"a group from outside of a namespace": {unified, "/../a", ""},
		"v1 alone":                            {v1, "/a", ""},
		"no mounts":                           {"", "/a", ""},
		"lines that are cut off":              {"35 24 -\n35 24 0:30 / /x rw -\n", "/a", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := findCgroup(bufio.NewScanner(strings.NewReader(c.mounts)), c.group)
			if got != c.want || (err != nil) != (c.want == "") {
				t.Errorf("it finds %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

// A bound is written where the control group has one, and nothing is made where not.
func TestSEC_08_ProcessesAreBoundedWhereTheGroupHasABound(t *testing.T) {
	folder := t.TempDir()
	if err := boundProcesses(folder, 77); err != nil {
		t.Errorf("without the file: %v", err)
	}
	if _, err := os.Stat(filepath.Join(folder, "pids.max")); err == nil {
		t.Error("the file was made")
	}
	if err := os.WriteFile(filepath.Join(folder, "pids.max"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := boundProcesses(folder, 77); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(folder, "pids.max")); err != nil || string(text) != "77" {
		t.Errorf("the bound is %q, %v", text, err)
	}
}

// The sandbox keeps signals inside from Landlock 6 on.
func TestSEC_08_SignalsAreScopedFromLandlock6On(t *testing.T) {
	for abi, want := range map[int]bool{0: false, 3: false, 5: false, 6: true, 7: true} {
		if got := scopesSignals(abi, nil); got != want {
			t.Errorf("by Landlock %d: %t", abi, got)
		}
	}
	if scopesSignals(7, errors.New("no Landlock")) {
		t.Error("without Landlock")
	}
}

// markOf returns a mark that no other test has.
func markOf(t *testing.T) Mark {
	return Mark{Job: "codex-job-0000000c", Token: t.TempDir()}
}

// withCgroup makes the control group of a mark, or skips where this process can make none.
func withCgroup(t *testing.T, mark Mark) Mark {
	t.Helper()
	if mark.Cgroup = PlanCgroup(mark); mark.Cgroup == "" {
		t.Skip("SKIPPED, no control group was tried: this process can make none")
	}
	if err := MakeCgroup(mark, 1000); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endAll(t, mark) })
	return mark
}

func endAll(t *testing.T, mark Mark, known ...job.Process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	if err := End(ctx, mark, known); err != nil {
		t.Error(err)
	}
}

// agent starts a shell as the agent of a run, which leaves a process that has no mark in
// its environment, heads a session of its own and has lost its parents. It returns both.
func agent(t *testing.T, mark Mark) (shell, left job.Process) {
	t.Helper()
	return agentBy(t, mark, StartLeader)
}

// agentInGroup is agent where nothing but the control group of the run marks its processes.
func agentInGroup(t *testing.T, mark Mark) (shell, left job.Process) {
	t.Helper()
	return agentBy(t, mark, func(cmd *exec.Cmd) error {
		cmd.Env = nil
		if err := cmd.Start(); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(mark.Cgroup, procsFile), []byte(strconv.Itoa(cmd.Process.Pid)), 0o600)
	})
}

func agentBy(t *testing.T, mark Mark, start func(*exec.Cmd) error) (shell, left job.Process) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "/bin/sh", "-c", //nolint:contextcheck // the test ends it
		`read begin; left=$(env -i setsid sh -c 'env -i setsid sleep 1000 >/dev/null 2>&1 & echo $!'); echo $left; read line`)
	cmd.Env = append(os.Environ(), JobVariable+"="+mark.Job, TokenVariable+"="+mark.Token)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	read, stdin, inErr := os.Pipe()
	out, write, outErr := os.Pipe()
	cmd.Stdin, cmd.Stdout = read, write
	if err := errors.Join(inErr, outErr, start(cmd), read.Close(), write.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := stdin.WriteString("begin\n"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = stdin.Close(), out.Close()
		_ = cmd.Wait()
		Collected(cmd.Process.Pid)
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) }) // a test that fails leaves nothing
	return identified(t, cmd.Process.Pid), identified(t, pid)
}

func identified(t *testing.T, pid int) job.Process {
	t.Helper()
	identity, err := proc.Identity(pid)
	if err != nil {
		t.Fatal(err)
	}
	return job.Process{PID: pid, Identity: identity}
}

// gone is a runner that has ended.
var gone = job.Process{PID: 1 << 22, Identity: "gone"}

// Whatever a process leaves, its control group says whose it is, also when the runner has
// died, and in a group that the job has made below its own.
func TestSEC_08_AProcessInAJobsCgroupIsTheJobs(t *testing.T) {
	mark := withCgroup(t, markOf(t))
	shell, left := agentInGroup(t, mark)
	if !HasCgroup(mark, shell.PID) || !HasCgroup(mark, left.PID) || HasCgroup(mark, os.Getpid()) {
		t.Fatal("the agent and what it leaves are to be in the group, and this process not")
	}
	var trees Trees
	trees.Set(Mark{Job: mark.Job, Token: mark.Token}, gone, nil) // a broker that has heard of no group
	check := func(where string) {
		t.Helper()
		if name, err := trees.JobOf(left); name != mark.Job || err != nil {
			t.Errorf("%s it is of %q, %v", where, name, err)
		}
	}
	check("in the group")
	inner := filepath.Join(mark.Cgroup, "bridge-other-job")
	if err := os.Mkdir(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(inner, procsFile), []byte(strconv.Itoa(left.PID)), 0o600); err != nil {
		t.Fatal(err)
	}
	check("in a group below")
	if name, err := trees.JobOf(identified(t, os.Getpid())); name != "" || err != nil {
		t.Errorf("this process is of %q, %v", name, err)
	}
	endAll(t, mark)
	if proc.Alive(shell.PID) || proc.Alive(left.PID) {
		t.Error("they outlive the end of the job")
	}
	if _, err := os.Stat(mark.Cgroup); err == nil {
		t.Error("the group is there after the end of the job")
	}
}

// The group is ended as a whole and at once; without that the processes in it are found.
func TestSEC_08_ACgroupIsKilledAsAWhole(t *testing.T) {
	mark := withCgroup(t, markOf(t))
	shell, left := agentInGroup(t, mark)
	found, err := inCgroup(mark)
	if err != nil || len(found) != 2 {
		t.Errorf("in the group are %v, %v, want %v and %v", found, err, shell.PID, left.PID)
	}
	if err := RemoveCgroup(mark); !errors.Is(err, unix.EBUSY) {
		t.Errorf("a group with processes is removed: %v", err)
	}
	fd, err := unix.PidfdOpen(left.PID, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := killCgroup(mark); err != nil {
		t.Fatal(err)
	}
	ended := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := 0, error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Poll(ended, int(testkit.Patience.Milliseconds()))
	}
	if n != 1 {
		t.Errorf("it runs on: %v", err)
	}
}

// A path that was written down is taken for a run's group only if it is one, of that name.
func TestSEC_08_OnlyTheRunsOwnCgroupIsEnded(t *testing.T) {
	mark := markOf(t)
	if mark.Cgroup, _ = ownCgroup(); mark.Cgroup == "" {
		t.Skip("SKIPPED, no control group was tried: this process is in none")
	}
	if got := cgroupPath(mark); got != "" {
		t.Errorf("a group of another name is taken for the run's: %s", got)
	}
	mark.Cgroup = filepath.Join(t.TempDir(), mark.cgroupName())
	if err := os.Mkdir(mark.Cgroup, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := cgroupPath(mark); got != "" {
		t.Errorf("a folder that is no group is taken for one: %s", got)
	}
}

// StartLeader puts the agent into the group before it becomes its program.
func TestSEC_08_TheAgentStartsInItsCgroup(t *testing.T) {
	mark := withCgroup(t, markOf(t))
	shell, left := agent(t, mark)
	if !HasCgroup(mark, shell.PID) || !HasCgroup(mark, left.PID) {
		t.Error("the agent, or what it left, is not in the group")
	}
}

// A group that cannot be entered, or none, keeps no agent from starting.
func TestSEC_08_WithoutACgroupTheAgentStartsAllTheSame(t *testing.T) {
	mark := withCgroup(t, markOf(t))
	if err := os.Remove(mark.Cgroup); err != nil {
		t.Fatal(err)
	}
	shell, left := agent(t, mark)
	if HasCgroup(mark, shell.PID) {
		t.Error("it is in a group that is gone")
	}
	endAll(t, mark, shell)
	if proc.Alive(left.PID) {
		t.Error("what it left runs on")
	}
	if err := MakeCgroup(markOf(t), 1); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a mark without a group: %v", err)
	}
}

// A resource limit that children inherit, and cannot raise, tells a job's processes where
// there is no group.
func TestSEC_08_ALimitMarksAJobsProcesses(t *testing.T) {
	mark, other := markOf(t), markOf(t)
	shell, left := agent(t, mark)
	var trees Trees
	if name, err := trees.JobOf(left); name != "" || err != nil {
		t.Errorf("where no job has run it is of %q, %v", name, err)
	}
	trees.Set(other, gone, nil)
	if name, err := trees.JobOf(left); name != "" || !errors.Is(err, ErrLowered) {
		t.Errorf("beside another job it is of %q, %v", name, err)
	}
	trees.Forget(other.Job)
	if name, err := trees.JobOf(left); name != "" || !errors.Is(err, ErrLowered) {
		t.Errorf("after that job's end it is of %q, %v", name, err)
	}
	trees.Set(mark, gone, nil)
	if name, err := trees.JobOf(left); name != mark.Job || err != nil {
		t.Errorf("it is of %q, %v", name, err)
	}
	if err := unix.Prlimit(left.PID, unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: 5, Max: 5}, nil); err != nil {
		t.Fatal(err)
	}
	if name, err := trees.JobOf(left); name != "" || !errors.Is(err, ErrLowered) {
		t.Errorf("with a limit of its own it is of %q, %v", name, err)
	}
	if name, err := trees.JobOf(identified(t, os.Getpid())); name != "" || err != nil {
		t.Errorf("this process is of %q, %v", name, err)
	}
	endAll(t, mark, left)
	if proc.Alive(shell.PID) {
		t.Error("the shell outlives the end of the job")
	}
}

func TestSEC_08_TheLimitAloneFindsWhatIsLeft(t *testing.T) {
	mark := markOf(t)
	_, left := agent(t, mark)
	endAll(t, mark)
	if proc.Alive(left.PID) {
		t.Error("it outlives the end of the job")
	}
}
