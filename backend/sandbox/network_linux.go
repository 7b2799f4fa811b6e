package sandbox

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// closeNetwork keeps this thread, and all that it ever starts, from every new socket
// but those of this machine's own programs: unix, and netlink, by which libraries ask
// the kernel what interfaces there are. Its caller stays on the thread. A program for
// another processor family, whose system calls have other numbers, is ended.
func closeNetwork() error {
	family, known := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if !known {
		return fmt.Errorf("%w: nobody has tried how the network is closed on %s", ErrUnavailable, runtime.GOARCH)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("close the network: %w", err)
	}
	filter := socketFilter(family)
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil { //nolint:gosec // as the kernel takes it
		return fmt.Errorf("close the network: %w", err)
	}
	return nil
}

// Where the kernel puts what a filter looks at, in bytes.
const (
	callNumber   = 0
	callFamily   = 4
	callArgument = 16 // the low half of the first: both processors begin with it
	// otherNumbers is where the numbers of x32 begin: calls of 64 bits by other numbers.
	otherNumbers = 0x40000000
)

func socketFilter(family uint32) []unix.SockFilter {
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	jump := func(how uint16, k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | how | unix.BPF_K, K: k, Jt: yes, Jf: no}
	}
	give := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	return []unix.SockFilter{
		load(callFamily),
		jump(unix.BPF_JEQ, family, 1, 0),
		give(unix.SECCOMP_RET_KILL_PROCESS),
		load(callNumber),
		jump(unix.BPF_JGE, otherNumbers, 6, 0),
		jump(unix.BPF_JEQ, unix.SYS_IO_URING_SETUP, 5, 0), // it makes sockets without a call of this name
		jump(unix.BPF_JEQ, unix.SYS_SOCKET, 0, 3),
		load(callArgument),
		jump(unix.BPF_JEQ, unix.AF_UNIX, 1, 0),
		jump(unix.BPF_JEQ, unix.AF_NETLINK, 0, 2),
		give(unix.SECCOMP_RET_ALLOW),
		give(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)),
		give(unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)),
	}
}
