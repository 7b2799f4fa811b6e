package worker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
	"bridge/backend/testing/testkit"
)

var errAsked = errors.New("asked whether a broker can serve")

// starting is a program in a new home whose console writes "started" into a file and then
// waits for a word in a pipe.
func starting(t *testing.T) (p Program, starts func() int, release func()) {
	t.Helper()
	dir := t.TempDir()
	home, err := config.ResolveHome(filepath.Join(dir, "home"), func(string) string { return "" })
	if err == nil {
		err = home.Ensure()
	}
	note, pipe, console := filepath.Join(dir, "started"), filepath.Join(dir, "pipe"), filepath.Join(dir, "bridge")
	err = errors.Join(err, syscall.Mkfifo(pipe, 0o600),
		testkit.WriteProgram(console, []byte("#!/bin/sh\necho started >> "+note+"\nread word < "+pipe+"\n"), 0o700))
	if err != nil {
		t.Fatal(err)
	}
	starts = func() int {
		text, _ := os.ReadFile(note) // none yet: none started
		return strings.Count(string(text), "started\n")
	}
	release = func() {
		if err := os.WriteFile(pipe, []byte("end\n"), 0o600); err != nil {
			t.Error(err)
		}
	}
	check := func(context.Context, config.Home) error { return nil }
	return Program{Home: home, Console: console, Getenv: func(string) string { return "" }, CheckHome: check}, starts, release
}

func TestMSG_01_OfManyProcessesOneStartsABroker(t *testing.T) {
	p, starts, release := starting(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	ends := make(chan (<-chan struct{}), 20)
	for range cap(ends) {
		all.Go(func() {
			over, err := p.StartBroker()(ctx)
			if err != nil {
				t.Error(err)
			}
			ends <- over
		})
	}
	all.Wait()
	release() // the broker ends once it has started: so do the waits of the others
	for range cap(ends) {
		ended(t, <-ends)
	}
	if n := starts(); n != 1 {
		t.Errorf("%d processes started a broker, want 1", n)
	}
}

func TestMSG_01_TheStartLockIsReleased(t *testing.T) {
	for name, run := range map[string]func(t *testing.T, p Program, release func()){
		"the caller is connected": func(t *testing.T, p Program, release func()) {
			ctx, cancel := context.WithCancel(t.Context())
			if _, err := p.StartBroker()(ctx); err != nil {
				t.Error(err)
			}
			if _, err := disk.TryLock(p.Home.Dir()); !errors.Is(err, disk.ErrLocked) {
				t.Errorf("while the broker starts: %v", err)
			}
			cancel()
			awaitLock(t, p)
			release()
		},
		"the broker ended": func(t *testing.T, p Program, release func()) {
			over, err := p.StartBroker()(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			release()
			ended(t, over)
			awaitLock(t, p)
		},
		"no broker can serve": func(t *testing.T, p Program, _ func()) {
			p.CheckHome = func(context.Context, config.Home) error { return errAsked }
			if _, err := p.StartBroker()(t.Context()); !errors.Is(err, errAsked) {
				t.Errorf("%v", err)
			}
			if isLocked(t, p) {
				t.Error("the lock is still held")
			}
		},
		"the program is missing": func(t *testing.T, p Program, _ func()) {
			p.Console += "-missing"
			if _, err := p.StartBroker()(t.Context()); bridge.CodeOf(err) != bridge.Storage {
				t.Errorf("%v", err)
			}
			if isLocked(t, p) {
				t.Error("the lock is still held")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, _, release := starting(t)
			run(t, p, release)
		})
	}
}

func isLocked(t *testing.T, p Program) bool {
	t.Helper()
	locked, err := disk.IsLocked(p.Home.Dir())
	if err != nil {
		t.Fatal(err)
	}
	return locked
}

// awaitLock returns when the lock was free.
func awaitLock(t *testing.T, p Program) {
	t.Helper()
	file, err := os.Open(p.Home.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	free := make(chan struct{})
	go func() {
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
			t.Error(err)
		}
		close(free)
	}()
	ended(t, free)
}

func ended(t *testing.T, over <-chan struct{}) {
	t.Helper()
	select {
	case <-over:
	case <-time.After(testkit.Patience):
		t.Fatal("a start has not ended, or its lock is still held")
	}
}

// A process that was suspended while it started a broker keeps its lock.
func TestMSG_01_AProcessThatKeepsTheStartLockDelaysTheOthersOnly(t *testing.T) {
	p, _, _ := starting(t)
	p.CheckHome = func(context.Context, config.Home) error { return errAsked }
	synctest.Test(t, func(t *testing.T) {
		lock, err := disk.TryLock(p.Home.Dir())
		if err != nil {
			t.Fatal(err)
		}
		start := p.StartBroker()
		for range 2 { // it waits at each loss of a broker anew
			ended, err := start(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			<-ended
			if _, err := start(t.Context()); !errors.Is(err, errAsked) {
				t.Errorf("after the wait: %v", err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended, err := start(ctx)
		if err != nil {
			t.Fatal(err)
		}
		cancel() // the caller is connected
		<-ended
		second, err := start(t.Context())
		if err != nil {
			t.Fatalf("a wait that the caller ended counts as too long: %v", err)
		}
		if err := lock.Release(); err != nil {
			t.Error(err)
		}
		<-second
		if _, err := start(t.Context()); !errors.Is(err, errAsked) {
			t.Errorf("after the other process: %v", err)
		}
	})
}
