package sandbox

import (
	"slices"

	"github.com/landlock-lsm/go-landlock/landlock"
	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// FileCall is a system call on files that a filter passes to the supervisor, if the
// rules have OwnDevices. The supervisor executes it for the job's own terminals and
// shared memory, and leaves all others to the kernel and the sandbox.
type FileCall struct {
	Does  FileCallKind
	Paths []uintptr // addresses of the paths, in the caller's memory
	Flags int       // of an open call
	Mode  uint32    // of an open call
}

// FileCallKind is the kind of a file call.
type FileCallKind int

// The kinds of calls that are passed to a supervisor.
const (
	OpenCall FileCallKind = iota
	LinkCall
	UnlinkCall
)

// fileCall describes the arguments of a system call.
type fileCall struct {
	number uint32
	does   FileCallKind
	folder int   // index of the folder argument of its first path, or -1
	paths  []int // indexes of the path arguments
	flags  int   // index of the flags argument; an open call's mode follows it
}

// fileCalls are the calls of every processor, with the older forms in olderFileCalls.
var fileCalls = append([]fileCall{
	{number: unix.SYS_OPENAT, does: OpenCall, folder: 0, paths: []int{1}, flags: 2},
	{number: unix.SYS_LINKAT, does: LinkCall, folder: 0, paths: []int{1, 3}, flags: 4},
	{number: unix.SYS_UNLINKAT, does: UnlinkCall, folder: 0, paths: []int{1}, flags: 2},
}, olderFileCalls...)

// FileCallOf returns the file call that the filter passed on, or false for another
// call.
func FileCallOf(number int32, args [6]uint64) (FileCall, bool) {
	i := slices.IndexFunc(fileCalls, func(c fileCall) bool { return int64(c.number) == int64(number) })
	if i < 0 {
		return FileCall{}, false
	}
	call := FileCall{Does: fileCalls[i].does}
	for _, path := range fileCalls[i].paths {
		call.Paths = append(call.Paths, uintptr(args[path]))
	}
	if call.Does == OpenCall {
		call.Flags, call.Mode = int(int32(args[fileCalls[i].flags])), uint32(args[fileCalls[i].flags+1])
	}
	return call, true
}

// atWorkingFolder is AT_FDCWD as a filter reads it.
const atWorkingFolder = ^uint32(99)

// leaveFileCalls passes to the supervisor the calls by which programs open
// terminals and shared memory: opens for reading and writing, and calls that create
// and remove names. It excludes calls that name a path relative to an open folder.
func leaveFileCalls() []unix.SockFilter {
	var filter []unix.SockFilter
	for _, call := range fileCalls {
		var checks []unix.SockFilter
		flags := argument(call.flags)
		switch call.does {
		case OpenCall:
			checks = []unix.SockFilter{flags, mask(unix.O_ACCMODE), jump(unix.BPF_JEQ, unix.O_RDWR, 0, 1)}
		case UnlinkCall:
			if call.flags >= 0 {
				checks = []unix.SockFilter{flags, jump(unix.BPF_JEQ, 0, 0, 1)}
			}
		case LinkCall:
		}
		then := append(checks, give(unix.SECCOMP_RET_USER_NOTIF))
		if call.folder >= 0 {
			then = append([]unix.SockFilter{argument(call.folder), jump(unix.BPF_JEQ, atWorkingFolder, 0, uint8(len(then)))}, then...)
		}
		filter = append(filter, onCall(call.number, then...)...)
	}
	// Libraries ask a terminal's controlling end for its other end.
	return append(filter, onCall(unix.SYS_IOCTL, argument(1), jump(unix.BPF_JEQ, unix.TIOCGPTPEER, 0, 1), give(unix.SECCOMP_RET_USER_NOTIF))...)
}

// argument loads the low half of a call's argument.
func argument(index int) unix.SockFilter {
	return load(callArgument + nextArgument*uint32(max(index, 0)))
}

// ioctlABI is the first Landlock that restricts device requests (kernel 6.10).
const ioctlABI = 5

// ownDevices allows a program to create terminals. /dev/tty is its controlling
// terminal: before ioctlABI the program could make the owner's terminal that one.
func ownDevices() []landlock.Rule {
	devices := []string{"/dev/ptmx", "/dev/pts/ptmx"}
	if abi, err := llsys.LandlockGetABIVersion(); err == nil && abi >= ioctlABI {
		devices = append(devices, "/dev/tty")
	}
	return []landlock.Rule{landlock.RWFiles(devices...).WithIoctlDev().IgnoreIfMissing()}
}
