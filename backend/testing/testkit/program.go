package testkit

import (
	"io/fs"
	"os"
	"syscall"
)

// WriteProgram writes a file that the test will run, like [os.WriteFile]. It returns the
// errors of [os.WriteFile].
//
// Meanwhile this process starts no other one. Otherwise a child that starts at that moment
// could hold the file open for writing, and running the file would fail with ETXTBSY.
func WriteProgram(path string, data []byte, mode fs.FileMode) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, data, mode)
}
