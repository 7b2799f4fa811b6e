//go:build unix

package run

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// leadSession puts the process at the head of a session and a process group of
// its own.
func leadSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// terminate asks the process to end.
func terminate(process *os.Process) { process.Signal(syscall.SIGTERM) } //nolint:errcheck // it may be at its end

// killGroup kills the process and its group, also when it has ended itself.
func killGroup(process *os.Process) error {
	if err := syscall.Kill(-process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return process.Kill()
}
