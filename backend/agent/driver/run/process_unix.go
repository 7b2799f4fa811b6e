//go:build unix

package run

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// leadSession puts the process at the head of a session and a process group of
// its own.
func leadSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// signalOf names the signal that ended a process, "" for an end of its own.
func signalOf(state *os.ProcessState) string {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return unix.SignalName(status.Signal())
	}
	return ""
}

// terminate asks the process to end.
func terminate(process *os.Process) { process.Signal(syscall.SIGTERM) } //nolint:errcheck // it may be at its end

// killGroup kills the process and its group, also when it has ended itself.
func killGroup(process *os.Process) error {
	if err := syscall.Kill(-process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return process.Kill()
}
