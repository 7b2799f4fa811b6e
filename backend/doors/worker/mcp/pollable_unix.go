//go:build unix

package mcp

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// pollable returns input in polled form, so that no read blocks a thread: the
// runtime would otherwise use another thread for each of the session's requests. It
// changes only pipes and sockets, which agents use. It leaves a file that is also
// an output unchanged, because a write must not report that it is full. Processes
// that inherited the same input see its mode, so restore must be called at the end.
func pollable(input io.Reader, outputs ...io.Writer) (from io.Reader, restore func()) {
	restore = func() {}
	file, ok := input.(*os.File)
	if !ok {
		return input, restore
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return input, restore
	}
	for _, output := range outputs {
		if other, ok := output.(*os.File); ok {
			if written, err := other.Stat(); err != nil || os.SameFile(info, written) {
				return input, restore
			}
		}
	}
	if from = polled(file); from == nil {
		return input, restore
	}
	return from, func() {
		raw, err := file.SyscallConn()
		if err == nil {
			_ = raw.Control(func(fd uintptr) { _ = unix.SetNonblock(int(fd), false) })
		}
	}
}

// polled returns a new polled descriptor of file, or nil if file is already polled
// or cannot be.
func polled(file *os.File) io.Reader {
	raw, err := file.SyscallConn() // Fd would change its mode
	if err != nil {
		return nil
	}
	own := -1
	_ = raw.Control(func(fd uintptr) {
		flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
		if err == nil && flags&unix.O_NONBLOCK == 0 {
			own, _ = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
		}
	})
	if own < 0 {
		return nil
	}
	if err := unix.SetNonblock(own, true); err != nil {
		_ = unix.Close(own)
		return nil
	}
	return os.NewFile(uintptr(own), file.Name())
}
