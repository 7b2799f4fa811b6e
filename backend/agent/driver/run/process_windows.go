package run

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// leadSession starts the process without a window and in a group of its own.
func leadSession(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW}
}

// signalOf names nothing: this system has no signals.
func signalOf(*os.ProcessState) string { return "" }

// terminate ends the process: without a console there is no way to ask, and
// closing its input has asked before.
func terminate(process *os.Process) { process.Kill() } //nolint:errcheck // it may be at its end

// killGroup kills the process; what it started is in the Job Object of the
// runner.
func killGroup(process *os.Process) error { return process.Kill() }
