package sandbox

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refuseCalls keeps this process, and all that it ever starts, from the system calls
// that the rules close. io_uring_setup is closed by all rules.
func refuseCalls(rules Rules) error {
	filter := ringFilter()
	if rules.NoNetwork || rules.NoSockets {
		family, known := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
		if !known {
			return fmt.Errorf("%w: nobody has tried how the network is closed on %s", ErrUnavailable, runtime.GOARCH)
		}
		filter = socketFilter(family, rules.NoSockets)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("close the network: %w", err)
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// All threads: a program of ours that waits for another one is below the same floor.
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program))) //nolint:gosec // as the kernel takes it
	if errno != 0 {
		return fmt.Errorf("close the network: %w", errno)
	}
	if thread != 0 {
		return fmt.Errorf("close the network: thread %d has rules of its own", thread)
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

func load(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

func jump(how uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | how | unix.BPF_K, K: k, Jt: yes, Jf: no}
}

func give(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }

// ringFilter refuses io_uring_setup, which has the same number for each family of
// processors that Bridge is built for, 32 bits and x32 among them.
func ringFilter() []unix.SockFilter {
	return []unix.SockFilter{
		load(callNumber),
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: ^uint32(otherNumbers)},
		jump(unix.BPF_JEQ, unix.SYS_IO_URING_SETUP, 0, 1),
		give(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)),
		give(unix.SECCOMP_RET_ALLOW),
	}
}

// socketFilter refuses every new socket but those of this machine's own programs: unix,
// and netlink, by which libraries ask the kernel what interfaces there are; by all also
// these. A program for another processor family, whose system calls have other numbers,
// is ended.
func socketFilter(family uint32, all bool) []unix.SockFilter {
	local := []uint32{unix.AF_UNIX, unix.AF_NETLINK}
	if all {
		local = []uint32{unix.AF_UNSPEC, unix.AF_UNSPEC} // the kernel makes no socket of this one
	}
	return []unix.SockFilter{
		load(callFamily),
		jump(unix.BPF_JEQ, family, 1, 0),
		give(unix.SECCOMP_RET_KILL_PROCESS),
		load(callNumber),
		jump(unix.BPF_JGE, otherNumbers, 6, 0),
		jump(unix.BPF_JEQ, unix.SYS_IO_URING_SETUP, 5, 0), // it makes sockets without a call of this name
		jump(unix.BPF_JEQ, unix.SYS_SOCKET, 0, 3),
		load(callArgument),
		jump(unix.BPF_JEQ, local[0], 1, 0),
		jump(unix.BPF_JEQ, local[1], 0, 2),
		give(unix.SECCOMP_RET_ALLOW),
		give(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)),
		give(unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)),
	}
}
