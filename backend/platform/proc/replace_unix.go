//go:build !windows

package proc

import (
	"os"
	"syscall"
)

// Replace runs the program at path in place of this one, with the same process id
// for the parent process. It returns only if that fails.
func Replace(path string, args []string) error {
	return syscall.Exec(path, append([]string{path}, args...), os.Environ())
}
