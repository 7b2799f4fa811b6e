package proc

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func contents(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestMain makes this test binary behave as one of a few small programs.
func TestMain(m *testing.M) {
	switch os.Getenv("BRIDGE_TEST_PROGRAM") {
	case "print":
		os.Stdout.WriteString("out " + strings.Join(os.Args[1:], "|") + "\n")
		os.Stderr.WriteString("err\n")
		os.Exit(0)
	case "fail":
		os.Exit(3)
	case "wait":
		interrupted := make(chan os.Signal, 1)
		signal.Notify(interrupted, os.Interrupt)
		<-interrupted
	}
	os.Exit(m.Run())
}

func program(t *testing.T, what string, args ...string) Command {
	t.Helper()
	return Command{
		Path: os.Args[0], Args: args,
		Env:     append(os.Environ(), "BRIDGE_TEST_PROGRAM="+what),
		LogFile: filepath.Join(t.TempDir(), "logs", "out.log"),
	}
}

func start1(t *testing.T, command Command) *Detached {
	t.Helper()
	started, err := StartDetached(command)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := KillTree(started.PID); err != nil {
			t.Error(err)
		}
		<-started.Done()
	})
	return started
}

func TestStartDetachedWritesToItsLogAndTellsTheEnd(t *testing.T) {
	command := program(t, "print", "a b", `"$(x)"`)
	started := start1(t, command)
	<-started.Done()
	if got, want := contents(t, command.LogFile), "out a b|\"$(x)\"\nerr\n"; got != want {
		t.Errorf("log = %q, want %q", got, want)
	}

	<-start1(t, program(t, "fail")).Done()
}

func TestStartDetachedNamesAMissingProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nothing-here")
	if _, err := StartDetached(Command{Path: path}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error = %v, want one that names %s", err, path)
	}
}

func TestIdentityTellsProcessesApart(t *testing.T) {
	first, second := start1(t, program(t, "wait")), start1(t, program(t, "wait"))
	identity, err := Identity(first.PID)
	if err != nil {
		t.Fatal(err)
	}
	if boot, start, found := strings.Cut(identity, ":"); !found || boot == "" || start == "" {
		t.Errorf("identity = %q, want <boot id>:<start time>", identity)
	}
	if again, err := Identity(first.PID); err != nil || again != identity {
		t.Errorf("the identity of the same process is %q and then %q, %v", identity, again, err)
	}
	if self, err := Identity(os.Getpid()); err != nil || self == identity {
		t.Errorf("another process's identity is %q, %v, too", self, err)
	}
	if err := KillTree(first.PID); err != nil {
		t.Fatal(err)
	}
	<-first.Done()
	if Alive(first.PID) {
		t.Error("an ended process is alive")
	}
	if _, err := Identity(first.PID); !errors.Is(err, ErrGone) {
		t.Errorf("Identity of an ended process = %v, want ErrGone", err)
	}
	if !Alive(second.PID) {
		t.Error("a stranger was ended too")
	}
}

func TestStartedIsTheCalendarsTime(t *testing.T) {
	before := time.Now()
	child := start1(t, program(t, "wait"))
	if at, err := Started(child.PID); err != nil || at.Before(before.Add(-2*time.Second)) || at.After(time.Now().Add(2*time.Second)) {
		t.Errorf("a process started at %s is said to have started at %s, %v", before, at, err)
	}
	if _, err := Started(-1); !errors.Is(err, ErrGone) {
		t.Errorf("no process: %v", err)
	}
}

func TestAncestorsAreNearestFirst(t *testing.T) {
	child := start1(t, program(t, "wait"))
	above := Ancestors(child.PID, 2)
	if len(above) != 2 || above[0].PID != os.Getpid() || above[1].PID != os.Getppid() {
		t.Errorf("Ancestors = %+v, want this process %d and its parent %d", above, os.Getpid(), os.Getppid())
	}
	if name := above[0].Name; name == "" || !strings.HasPrefix(filepath.Base(os.Args[0]), strings.TrimSuffix(name, ".exe")) {
		t.Errorf("name = %q, want that of %s", name, os.Args[0])
	}
}

func TestKillTreeRefusesItsOwnTree(t *testing.T) {
	for _, pid := range []int{-1, 0, 1, os.Getpid(), os.Getppid()} {
		if err := KillTree(pid); err == nil {
			t.Errorf("KillTree(%d) = nil, want a refusal", pid)
		}
	}
}
