package proc

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bridge/backend/testing/testkit"
)

// eventually polls until done reports true. It waits on the system, which sends
// no signal for these things.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.NewTimer(testkit.Patience)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline.C:
			t.Fatalf("%s: not within %s", what, testkit.Patience)
		case <-tick.C:
		}
	}
}

func TestStartDetachedLeadsASessionOfItsOwn(t *testing.T) {
	started := start1(t, program(t, "wait"))
	group, err := syscall.Getpgid(started.PID)
	if err != nil || group != started.PID {
		t.Errorf("process group = %d, %v; want its own %d", group, err, started.PID)
	}
}

func TestAnUncollectedProcessIsNotAlive(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "BRIDGE_TEST_PROGRAM=fail")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the zombie to count as gone", func() bool { return !Alive(cmd.Process.Pid) })
	if err := cmd.Wait(); err == nil {
		t.Error("the process did not end with its status")
	}
}

func TestBelowFindsEveryGeneration(t *testing.T) {
	command := Command{Path: "/bin/sh", Args: []string{"-c", `sh -c 'sleep 1000 & echo $! $$; wait' & echo $!; wait`}, LogFile: filepath.Join(t.TempDir(), "log")}
	root := start1(t, command)
	var pids []string
	eventually(t, "the tree to grow", func() bool {
		pids = strings.Fields(contents(t, command.LogFile))
		return len(pids) == 3
	})
	below, err := Below(root.PID)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, process := range below {
		found = append(found, strconv.Itoa(process.PID))
	}
	slices.Sort(found)
	slices.Sort(pids)
	if pids = slices.Compact(pids); len(pids) != 2 || !slices.Equal(found, pids) {
		t.Errorf("below it are %v, want %v", found, pids)
	}
	if _, err := Below(1 << 30); !errors.Is(err, ErrGone) {
		t.Errorf("below no process: %v, want ErrGone", err)
	}
}

// TestKillTreeEndsEveryGeneration has a child, one that ignores signals, one
// that leads a session of its own and an orphan.
func TestKillTreeEndsEveryGeneration(t *testing.T) {
	script := `
		sleep 1000 & echo $!
		(trap '' TERM INT HUP; sleep 1000) & echo $!
		(sleep 1000 & echo $!)
		setsid sleep 1000 & echo $!
		echo ready; wait`
	stranger := start1(t, program(t, "wait"))
	command := Command{Path: "/bin/sh", Args: []string{"-c", script}, LogFile: filepath.Join(t.TempDir(), "log")}
	root := start1(t, command)
	var lines []string
	eventually(t, "the tree to grow", func() bool {
		lines = strings.Fields(contents(t, command.LogFile))
		return len(lines) > 0 && lines[len(lines)-1] == "ready"
	})
	tree := map[int]Process{}
	all, err := list()
	if err != nil {
		t.Fatal(err)
	}
	grow(root.PID, tree, all)
	if len(tree) < len(lines) { // the pids less "ready", and the shell
		t.Fatalf("the tree has %d members, want at least %d: %v", len(tree), len(lines), tree)
	}
	if err := KillTree(root.PID); err != nil {
		t.Fatal(err)
	}
	for pid := range tree {
		eventually(t, "a member to end", func() bool { return !Alive(pid) })
	}
	if !Alive(stranger.PID) {
		t.Error("a process outside the tree was ended")
	}
}

// TestKillTreeFindsWhatAnEndedRootLeftBehind: the number of a group leader is
// not given away while the group lives.
func TestKillTreeFindsWhatAnEndedRootLeftBehind(t *testing.T) {
	command := Command{Path: "/bin/sh", Args: []string{"-c", "sleep 1000 & echo $!"}, LogFile: filepath.Join(t.TempDir(), "log")}
	root := start1(t, command)
	<-root.Done()
	all, err := list()
	if err != nil {
		t.Fatal(err)
	}
	left := grow(root.PID, map[int]Process{}, all)
	if len(left) != 1 {
		t.Fatalf("left behind: %+v, want the sleep", left)
	}
	if err := KillTree(root.PID); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the orphan to end", func() bool { return !Alive(left[0].PID) })
}

func TestParseStat(t *testing.T) {
	const rest = " S 7 42 41 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 98765 1 2 3"
	tests := []struct{ name, line, want string }{
		{name: "an ordinary name", line: "43 (bash)" + rest, want: "bash"},
		{name: "a name that looks like the fields", line: "43 (x) S 1 (y)" + rest, want: "x) S 1 (y"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseStat(tt.line)
			want := Process{PID: 43, Parent: 7, Name: tt.want, start: 98765, group: 42, session: 41}
			if err != nil || got != want {
				t.Errorf("parseStat = %+v, %v; want %+v", got, err, want)
			}
		})
	}
	for _, line := range []string{"", "43", "43 (x", "43 (x) S 1", "(x)" + rest} {
		if got, err := parseStat(line); err == nil {
			t.Errorf("parseStat(%q) = %+v, want an error", line, got)
		}
	}
}

// TestSEC_01_ParentsThatEndHideNobody reads the chains of processes whose parents end at
// that moment. Orphans fall to this process, so each chain leads to it, or is refused.
func TestSEC_01_ParentsThatEndHideNobody(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	const tries = 200
	script := "i=0; while [ $i -lt " + strconv.Itoa(tries) + " ]; do i=$((i+1)); ( ( ( read line <&3 & echo $! ) & ) & ); done"
	blocked, release, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer release.Close()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.ExtraFiles = []*os.File{blocked}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	blocked.Close()
	var pids []int
	for lines := bufio.NewScanner(out); len(pids) < tries && lines.Scan(); {
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
		above, err := Chain(pid, 4096)
		if err == nil && !slices.ContainsFunc(above, func(p Process) bool { return p.PID == os.Getpid() }) {
			t.Errorf("the chain of %d is %v", pid, above)
		}
	}
	if len(pids) != tries {
		t.Errorf("%d processes were looked at, want %d", len(pids), tries)
	}
	release.Close()
	_ = cmd.Wait()
	for range pids {
		_, _ = unix.Wait4(-1, nil, 0, nil) // they fell to this process
	}
}
