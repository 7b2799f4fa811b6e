package connects

import (
	"bufio"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// copyOf returns a copy of another thread's descriptor.
func copyOf(thread, descriptor int) (*os.File, error) {
	handle, err := unix.PidfdOpen(thread, unix.PIDFD_THREAD)
	if errors.Is(err, unix.EINVAL) { // a kernel before 6.9 supports only whole processes
		handle, err = unix.PidfdOpen(processOf(thread), 0)
	}
	if err != nil {
		return nil, os.NewSyscallError("pidfd_open", err)
	}
	defer unix.Close(handle) //nolint:errcheck // nothing was written to it
	fd, err := unix.PidfdGetfd(handle, descriptor, 0)
	if err != nil {
		return nil, os.NewSyscallError("pidfd_getfd", err)
	}
	return os.NewFile(uintptr(fd), "copy"), nil
}

// processOf returns the process id of a thread, or the thread's own id if it has ended.
func processOf(thread int) int {
	file, err := os.Open(filepath.Join("/proc", strconv.Itoa(thread), "status"))
	if err != nil {
		return thread
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if number, is := strings.CutPrefix(lines.Text(), "Tgid:"); is {
			if pid, err := strconv.Atoi(strings.TrimSpace(number)); err == nil {
				return pid
			}
		}
	}
	return thread
}

// readMemory copies size bytes at an address of another process.
func readMemory(pid int, address uintptr, size int) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	data := make([]byte, size)
	local := []unix.Iovec{{Base: &data[0]}}
	local[0].SetLen(size)
	n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: address, Len: size}}, 0)
	switch {
	case err != nil:
		return nil, os.NewSyscallError("process_vm_readv", err)
	case n < size:
		return nil, unix.EFAULT
	}
	return data, nil
}

// connect connects a socket to an address in the kernel's form.
func connect(socket *os.File, address []byte) unix.Errno {
	var at unsafe.Pointer
	if len(address) > 0 {
		at = unsafe.Pointer(&address[0]) //nolint:gosec // as the kernel takes it
	}
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, socket.Fd(), uintptr(at), uintptr(len(address)))
	return errno
}

// sizeOfFamily is the size of an address's family, its first field.
const sizeOfFamily = 2

// open opens the socket file of an address, in the thread's view of the file
// system, without connecting. It refuses sockets without a file.
func open(thread int, address []byte) (*os.File, unix.Errno) {
	if len(address) < sizeOfFamily {
		return nil, unix.EINVAL
	}
	family, name := *(*uint16)(unsafe.Pointer(&address[0])), address[sizeOfFamily:] //nolint:gosec // in this processor's order
	if family != unix.AF_UNIX {
		return nil, unix.EINVAL
	}
	if len(name) == 0 || name[0] == 0 {
		return nil, unix.EACCES
	}
	if end := bytes.IndexByte(name, 0); end >= 0 {
		name = name[:end]
	}
	base := "cwd"
	if name[0] == filepath.Separator {
		base = "root"
	}
	path := filepath.Join("/proc", strconv.Itoa(thread), base) + string(filepath.Separator) + string(name)
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errnoOf(err)
	}
	return os.NewFile(uintptr(fd), string(name)), 0
}

// errnoOf returns the number of an error, or 0.
func errnoOf(err error) unix.Errno {
	if err == nil {
		return 0
	}
	if number, is := errors.AsType[unix.Errno](err); is {
		return number
	}
	if errors.Is(err, fs.ErrClosed) {
		return unix.EBADF
	}
	return unix.EACCES
}
