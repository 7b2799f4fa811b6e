// Command tidy runs a program of tests for `go test -exec` and fails when that leaves
// processes behind: `tidy [-grace TIME] [-nice N] PROGRAM [ARGUMENT …]`. Whatever loses its
// parent below it becomes its child, so none can hide. When go itself is ended, so are the
// tests.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"bridge/backend/platform/proc"
)

func main() {
	grace := flag.Duration("grace", 20*time.Second, "how `long` what is about to end may take for that")
	nice := flag.Int("nice", 0, "by so `much` let others have the processors first")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "Usage: tidy [-grace TIME] [-nice N] PROGRAM [ARGUMENT …]")
		os.Exit(2)
	}
	code, err := run(flag.Args(), *grace, *nice)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tidy:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// run runs a program to its end. Then it waits until what the program left has ended, or
// names and ends it.
func run(argv []string, grace time.Duration, nice int) (code int, err error) {
	runtime.LockOSThread() // Pdeathsig and niceness follow the thread
	if nice > 0 {
		own, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // 20 less the niceness
		if err == nil {
			err = unix.Setpriority(unix.PRIO_PROCESS, 0, 20-own+nice)
		}
		if err != nil {
			return 0, fmt.Errorf("letting others go first: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("becoming the parent of orphans: %w", err)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // who reads what is said may have ended: all is ended all the same
	parent, unknown := unix.PidfdOpen(os.Getppid(), 0)      // Linux knows it since 5.3; before the start, for it may end right then
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	var abandoned atomic.Bool
	if unknown == nil {
		go func() {
			awaitEnd(parent)
			abandoned.Store(true)
			_ = cmd.Process.Kill() // it may be at its end
		}()
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s) // it may be at its end
		}
	}()
	code, err = reap(cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	if abandoned.Load() { // the caller is gone
		grace = 0
	}
	if remaining := proc.EndAllBelow(grace); remaining != "" {
		fmt.Print(remaining)
		code = max(code, 1)
	}
	return code, nil
}

// awaitEnd waits until the process that a descriptor stands for has ended.
func awaitEnd(pidfd int) {
	for {
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, -1); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// reap waits for a process, and meanwhile takes leave of each orphan that ends: who looks
// for one must not find it as a zombie.
func reap(main int) (code int, err error) {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, fmt.Errorf("waiting for the tests: %w", err)
		case pid == main && status.Signaled():
			fmt.Printf("the tests were ended by %s\n", status.Signal())
			return 128 + int(status.Signal()), nil
		case pid == main:
			return status.ExitStatus(), nil
		}
	}
}
