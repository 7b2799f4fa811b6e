package hook

import (
	"context"
	"os"
	"os/exec"
)

// become runs program with this process's input and output, because Windows cannot
// replace a process. done is false if it cannot run. It shares this process's
// console, so no window opens.
func become(program string, args []string) (code int, done bool) {
	cmd := exec.CommandContext(context.Background(), program, args...) // it has a separate budget
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if cmd.Start() != nil {
		return 0, false
	}
	_ = cmd.Wait() // its exit code is used
	return cmd.ProcessState.ExitCode(), true
}
