package connects

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"bridge/backend/platform/proc"
	"bridge/backend/platform/sandbox"
)

// The paths of a job's own terminals and shared memory.
const (
	devices     = "/dev/"
	terminals   = devices + "pts/"
	sharedNames = devices + "shm/"
	// longestPath is the longest of these paths.
	longestPath = len(sharedNames) + unix.NAME_MAX
)

// fileAnswer returns the function that answers a call on the job's own terminals or
// shared memory, or nil for another call.
func (s *Supervisor) fileAnswer(listener int, call notification) func() {
	thread := int(call.PID)
	if call.Call == unix.SYS_IOCTL {
		return func() { s.openPeer(listener, call) }
	}
	fileCall, is := sandbox.FileCallOf(call.Call, call.Args)
	if !is {
		return nil
	}
	var paths []string
	for _, address := range fileCall.Paths {
		path, ok := readPath(thread, address)
		if !ok {
			return nil
		}
		paths = append(paths, path)
	}
	if number, is := strings.CutPrefix(paths[0], terminals); is && fileCall.Does == sandbox.OpenCall {
		if index, err := strconv.Atoi(number); err == nil && index >= 0 {
			return func() { s.openTerminal(listener, call, index, fileCall.Flags) }
		}
		return nil
	}
	if s.policy.Shared == "" {
		return nil
	}
	for i, path := range paths {
		name, is := strings.CutPrefix(path, sharedNames)
		if !is || name == "" || name == "." || name == ".." || strings.Contains(name, "/") {
			return nil
		}
		paths[i] = name
	}
	return func() { s.shared(listener, call, fileCall, paths) }
}

// readPath reads a path from another process. It returns false if the path cannot be a device's.
func readPath(thread int, address uintptr) (string, bool) {
	const page = 4096 // the bytes after a page may be missing
	var path []byte
	for len(path) <= longestPath {
		size := min(longestPath+1-len(path), page-int(address%page))
		if len(path) == 0 {
			size = min(size, len(devices)) // most paths fail here
		}
		part, err := readMemory(thread, address, size)
		if err != nil {
			return "", false
		}
		address += uintptr(size)
		path = append(path, part...)
		if end := bytes.IndexByte(path, 0); end >= 0 {
			path = path[:end]
			break
		}
		if n := min(len(path), len(devices)); string(path[:n]) != devices[:n] {
			return "", false
		}
	}
	return string(path), len(path) <= longestPath && strings.HasPrefix(string(path), devices)
}

// addition is struct seccomp_notif_addfd.
type addition struct {
	ID       uint64
	Flags    uint32
	Source   uint32
	New      uint32
	NewFlags uint32
}

// hand answers a call with a new descriptor of the file.
func hand(listener int, call notification, fd, flags int) {
	request := addition{ID: call.ID, Flags: unix.SECCOMP_ADDFD_FLAG_SEND, Source: uint32(fd), NewFlags: uint32(flags & unix.O_CLOEXEC)}
	if number := control(listener, unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&request)); number != 0 { //nolint:gosec // as the kernel takes it
		reply(listener, call, number) // the caller has too many open files, or has ended
	}
}

// peerOf opens the second end of the terminal with the given first end. That
// terminal never becomes the controlling terminal of this process.
func peerOf(first *os.File, flags int) (int, unix.Errno) {
	flags = flags&(unix.O_ACCMODE|unix.O_NONBLOCK) | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, _, number := unix.Syscall(unix.SYS_IOCTL, first.Fd(), unix.TIOCGPTPEER, uintptr(flags))
	return int(fd), number
}

// openPeer opens the second end of a terminal for a process that has the first.
func (s *Supervisor) openPeer(listener int, call notification) {
	first, err := copyOf(int(call.PID), int(int32(call.Args[0])))
	if err != nil {
		reply(listener, call, errnoOf(err))
		return
	}
	defer first.Close()
	flags := int(int32(call.Args[2]))
	if !waits(listener, call) {
		return
	}
	fd, number := peerOf(first, flags)
	if number != 0 {
		reply(listener, call, number)
		return
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written to it
	hand(listener, call, fd, flags)
}

// openTerminal opens the second end of terminal index if a process of the job has
// the first end. It leaves other terminals to the sandbox.
func (s *Supervisor) openTerminal(listener int, call notification, index, flags int) {
	first := s.firstEnd(int(call.PID), index)
	if first == nil {
		goOn(listener, call)
		return
	}
	defer first.Close()
	fd, number := peerOf(first, flags)
	if number != 0 {
		reply(listener, call, number)
		return
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written to it
	hand(listener, call, fd, flags)
}

// firstEnd returns the first end of a terminal that the caller or another process
// of the job holds, or nil.
func (s *Supervisor) firstEnd(thread, index int) *os.File {
	if first := firstEndOf(thread, index); first != nil {
		return first
	}
	below, err := proc.Below(s.program)
	if err != nil {
		return nil
	}
	for _, process := range append(below, proc.Process{PID: s.program}) {
		first := firstEndOf(process.PID, index)
		if first == nil {
			continue
		}
		if process.PID == s.program || s.isBelow(process) { // its id was not reused meanwhile
			return first
		}
		first.Close()
	}
	return nil
}

// isBelow reports whether a process currently belongs to the job.
func (s *Supervisor) isBelow(process proc.Process) bool {
	below, err := proc.Below(s.program)
	return err == nil && slices.ContainsFunc(below, func(item proc.Process) bool { return item.PID == process.PID })
}

// firstEndOf returns the first end of a terminal that a process holds, or nil.
func firstEndOf(pid, index int) *os.File {
	folder := filepath.Join("/proc", strconv.Itoa(pid))
	entries, err := os.ReadDir(filepath.Join(folder, "fd"))
	if err != nil {
		return nil // it has ended
	}
	want := "tty-index:\t" + strconv.Itoa(index) + "\n"
	for _, entry := range entries {
		if target, err := os.Readlink(filepath.Join(folder, "fd", entry.Name())); err != nil || filepath.Base(target) != "ptmx" {
			continue
		}
		number, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		first, err := copyOf(pid, number)
		if err != nil {
			continue
		}
		// The copy has the same file information as the original.
		info, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(int(first.Fd())))
		if err == nil && strings.Contains(string(info), want) {
			return first
		}
		first.Close()
	}
	return nil
}

// shared executes a call on shared memory in the job's own folder. The folder holds
// only files, because nothing else is ever created there.
func (s *Supervisor) shared(listener int, call notification, fileCall sandbox.FileCall, names []string) {
	folder, err := unix.Open(s.policy.Shared, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		reply(listener, call, errnoOf(err))
		return
	}
	defer unix.Close(folder) //nolint:errcheck // nothing was written to it
	if !waits(listener, call) {
		return
	}
	switch fileCall.Does {
	case sandbox.LinkCall:
		reply(listener, call, errnoOf(unix.Linkat(folder, names[0], folder, names[1], 0)))
	case sandbox.UnlinkCall:
		reply(listener, call, errnoOf(unix.Unlinkat(folder, names[0], 0)))
	case sandbox.OpenCall:
		const passedFlags = unix.O_CREAT | unix.O_EXCL | unix.O_TRUNC | unix.O_APPEND | unix.O_NONBLOCK
		fd, err := unix.Openat(folder, names[0], fileCall.Flags&passedFlags|unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, fileCall.Mode&0o700)
		if err != nil {
			reply(listener, call, errnoOf(err))
			return
		}
		defer unix.Close(fd) //nolint:errcheck // the job has it
		hand(listener, call, fd, fileCall.Flags)
	}
}
