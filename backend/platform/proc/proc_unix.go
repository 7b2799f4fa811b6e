//go:build !windows

package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// lowest is the niceness of the lowest priority.
const lowest = 19

func start(command Command, output *os.File) (*exec.Cmd, error) {
	cmd := command.cmd(output)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if command.LowPriority {
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, cmd.Process.Pid, lowest); err != nil && !errors.Is(err, syscall.ESRCH) {
			return nil, errors.Join(fmt.Errorf("lower its priority: %w", err), cmd.Process.Kill(), cmd.Wait())
		}
	}
	return cmd, nil
}

// hold suspends a process.
func hold(pid int) error { return send(pid, syscall.SIGSTOP) }

func kill(pid int) error { return send(pid, syscall.SIGKILL) }

func send(pid int, sig syscall.Signal) error {
	err := syscall.Kill(pid, sig)
	if errors.Is(err, syscall.ESRCH) {
		return ErrGone
	}
	return err
}
