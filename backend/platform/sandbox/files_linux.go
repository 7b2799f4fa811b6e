package sandbox

import (
	"slices"

	"github.com/landlock-lsm/go-landlock/landlock"
	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// FileCall is a system call about files that a filter leaves to the supervisor, where the
// rules have OwnDevices. The supervisor does it for the job's own terminals and shared
// memory, and leaves all else to the kernel and the floor.
type FileCall struct {
	Does  FileCallKind
	Paths []uintptr // addresses of the paths, in the caller's memory
	Flags int       // of an open call
	Mode  uint32    // of an open call
}

// FileCallKind says what a call does.
type FileCallKind int

// The calls that are left to a supervisor.
const (
	OpenCall FileCallKind = iota
	LinkCall
	UnlinkCall
)

// fileCall says where a system call has its arguments.
type fileCall struct {
	number uint32
	does   FileCallKind
	folder int   // the argument to which its first path is relative, -1 for none
	paths  []int // the arguments that are paths
	flags  int   // the argument of its flags; that of the mode follows an open call's
}

// fileCalls are those of every processor; olderFileCalls has some of them besides.
var fileCalls = append([]fileCall{
	{number: unix.SYS_OPENAT, does: OpenCall, folder: 0, paths: []int{1}, flags: 2},
	{number: unix.SYS_LINKAT, does: LinkCall, folder: 0, paths: []int{1, 3}, flags: 4},
	{number: unix.SYS_UNLINKAT, does: UnlinkCall, folder: 0, paths: []int{1}, flags: 2},
}, olderFileCalls...)

// FileCallOf returns what a call is about that the filter left to the supervisor, false for
// a call that is not about files.
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

// leaveFileCalls leaves to the supervisor the calls by which programs open terminals and
// shared memory: files that are opened to be read and written, and names that are made and
// removed. Those that name a path by an open folder are never among them.
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

// ioctlABI is the first Landlock that bounds requests to devices (kernel 6.10).
const ioctlABI = 5

// ownDevices lets a program make terminals of its own. By /dev/tty it reaches the terminal
// that controls it: before ioctlABI it could make one of the owner's that.
func ownDevices() []landlock.Rule {
	devices := []string{"/dev/ptmx", "/dev/pts/ptmx"}
	if abi, err := llsys.LandlockGetABIVersion(); err == nil && abi >= ioctlABI {
		devices = append(devices, "/dev/tty")
	}
	return []landlock.Rule{landlock.RWFiles(devices...).WithIoctlDev().IgnoreIfMissing()}
}
