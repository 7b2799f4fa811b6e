package hook

import (
	"context"
	"os"
	"os/exec"
)

// become runs program for this one, with its input and output: nothing takes
// another's place here. done is false when it cannot be run. It shares this
// one's console, so no window opens.
func become(program string, args []string) (code int, done bool) {
	cmd := exec.CommandContext(context.Background(), program, args...) // it keeps its own budget
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if cmd.Start() != nil {
		return 0, false
	}
	_ = cmd.Wait() // its exit code is ours
	return cmd.ProcessState.ExitCode(), true
}
