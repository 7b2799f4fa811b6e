package presence

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/proc"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "test-init" {
		os.Exit(adoptOrphan())
	}
	os.Exit(m.Run())
}

// adoptOrphan is the test binary as a program that takes over processes whose parents have
// ended, as a system's first process does. It tells the number of one.
func adoptOrphan() int {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 1
	}
	out, err := exec.Command("sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo $!").Output() //nolint:noctx // the test ends it
	if err != nil {
		return 1
	}
	fmt.Print(string(out))
	io.Copy(io.Discard, os.Stdin) //nolint:errcheck // its end is the sign
	pid, _ := strconv.Atoi(strings.TrimSpace(string(out)))
	_ = unix.Kill(pid, unix.SIGKILL)
	var status unix.WaitStatus
	_, _ = unix.Wait4(pid, &status, 0, nil)
	return 0
}

// orphan starts a process whose parent has ended, below a program of that name.
func orphan(t *testing.T, name string) job.Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, "test-init") // its input tells it to end
	input, inErr := cmd.StdinPipe()
	output, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return processOf(t, pid)
}

func processOf(t *testing.T, pid int) job.Process {
	t.Helper()
	identity, err := proc.Identity(pid)
	if err != nil {
		t.Fatal(err)
	}
	return job.Process{PID: pid, Identity: identity}
}

// sleeper starts a program with that environment besides this one's.
func sleeper(t *testing.T, env ...string) job.Process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sleep", "1000")
	cmd.Env = append(os.Environ(), env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return processOf(t, cmd.Process.Pid)
}

// startedAfter starts a process that the system knows to be newer than another one: it
// counts in hundredths of a second.
func startedAfter(t *testing.T, older job.Process) int {
	t.Helper()
	first, err := proc.Find(older.PID)
	for err == nil {
		pid := sleeper(t).PID
		var next proc.Process
		if next, err = proc.Find(pid); err == nil && next.StartedAfter(first) {
			return pid
		}
	}
	t.Fatal(err)
	return 0
}

func TestSEC_07_WhoHasLeftAnAgentsSessionIsNotTheOwner(t *testing.T) {
	older, dead := []int{os.Getpid()}, job.Process{PID: 1 << 22, Identity: "gone"}
	orphaned := orphan(t, "tini")
	newer := []int{startedAfter(t, orphaned)}
	for name, c := range map[string]struct {
		peer   job.Process
		agents []int
		want   string // of the refusal, "" for the owner
	}{
		"a command of this program":            {sleeper(t), older, ""},
		"one that claude marked":               {sleeper(t, "CLAUDECODE=1"), nil, "CLAUDECODE is set"},
		"one that codex marked":                {sleeper(t, "CODEX_THREAD_ID=x"), nil, "CODEX_THREAD_ID is set"},
		"one with a mark that is empty":        {sleeper(t, "CLAUDECODE="), nil, ""},
		"one whose parent has ended":           {orphaned, older, "has no terminal"},
		"the same, and no agent is there":      {orphaned, nil, ""},
		"the same, and the agent came later":   {orphaned, newer, ""},
		"below a program that adopts nobody":   {orphan(t, "shell"), older, ""},
		"one that has ended":                   {dead, nil, "has ended"},
		"one whose number is another's":        {job.Process{PID: os.Getpid(), Identity: "another"}, nil, "has ended"},
		"an agent that is no process any more": {orphaned, []int{dead.PID}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkLeft(c.peer, c.agents)
			if c.want == "" && err != nil || c.want != "" && (bridge.CodeOf(err) != bridge.Denied || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("it says %v, want %q", err, c.want)
			}
		})
	}
}
