//go:build !windows

package proc

import (
	"os"
	"syscall"
)

// Replace has the program at path run in this one's place, so that for whoever started this
// one nothing changes. It returns only where that cannot be done.
func Replace(path string, args []string) error {
	return syscall.Exec(path, append([]string{path}, args...), os.Environ())
}
