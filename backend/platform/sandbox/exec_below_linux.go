package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"bridge/backend/platform/proc"
)

// startAndEndAll starts the program, waits for it, ends the processes it left, and
// exits with the program's status. Orphans of the program become children of this
// process. If the program kills this process, it dies with it; the remaining
// processes stay in the sandbox. It returns only if the program did not start.
func startAndEndAll(argv, env []string) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the parent of orphans: %w", err)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	program, err := os.StartProcess(argv[0], argv, &os.ProcAttr{
		Env: env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return err
	}
	state, err := waitFor(program, signals)
	if err != nil {
		return fmt.Errorf("wait for %s: %w", argv[0], err)
	}
	if err := endChildren(); err != nil {
		return err
	}
	code := state.ExitCode()
	if ended, ok := state.Sys().(syscall.WaitStatus); ok && ended.Signaled() {
		code = 128 + int(ended.Signal())
	}
	os.Exit(code)
	return nil
}

// mostTime is the time after which a program is killed, because its starter may be
// dead and it could wait forever.
const mostTime = time.Hour

// waitFor waits for the program's end, and kills it on a signal to end. It runs on
// the thread that started the program: each thread entered the sandbox separately,
// so a signal from another thread would not reach processes below this one.
func waitFor(program *os.Process, signals <-chan os.Signal) (state *os.ProcessState, err error) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		state, err = program.Wait()
	}()
	late := time.After(mostTime)
	for {
		select {
		case <-ended:
			return state, err
		case <-signals:
			_ = program.Kill() // it may have ended already
		case <-late:
			_ = program.Kill()
		}
	}
}

// endAllTime bounds the time to end the remaining processes. Processes that start
// others faster than they end stay in the sandbox.
const endAllTime = 10 * time.Second

// endChildren ends every process below this one: it repeats until this process has
// no children, so none is below it.
func endChildren() error {
	for began := time.Now(); time.Since(began) < endAllTime; { //nolint:forbidigo // the kernel is waited for, by its own clock
		_, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if errors.Is(err, unix.ECHILD) {
			return nil
		}
		remaining, err := proc.Below(os.Getpid())
		if err != nil {
			return err
		}
		for _, process := range remaining {
			_ = unix.Kill(process.PID, unix.SIGKILL) // it may have ended already
		}
		if len(remaining) > 0 {
			if _, err := unix.Wait4(-1, nil, 0, nil); err != nil && !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.ECHILD) {
				return fmt.Errorf("end what a program left behind: %w", err)
			}
		}
	}
	return nil
}
