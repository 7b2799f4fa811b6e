package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refuseCalls blocks the system calls that the rules close, for this process and
// all that it starts. It always blocks io_uring_setup. If the rules require it, a
// supervisor then answers the calls that the filter passes to it.
func refuseCalls(rules Rules) error {
	supervisor, err := findSupervisor(rules)
	if err != nil {
		return err
	}
	defer supervisor.Close()
	filter, err := callFilter(rules, supervisor.answers)
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("restrict system calls: %w", err)
	}
	// All threads: a Bridge program that waits for another one is in the same sandbox.
	flags := uintptr(unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH)
	if supervisor.answers {
		flags |= unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	listener, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program))) //nolint:gosec // as the kernel takes it
	if errno != 0 {
		return fmt.Errorf("restrict system calls: %w", errno)
	}
	if !supervisor.answers {
		return nil
	}
	return supervisor.handOver(os.NewFile(listener, "seccomp listener"))
}

// callFilter returns the filter of the system calls that the rules close. With a
// supervisor, it passes on the connect calls, and those that open terminals and
// shared memory.
func callFilter(rules Rules, supervised bool) ([]unix.SockFilter, error) {
	if !rules.NoNetwork && !rules.NoSockets && !rules.KeepAttributes && !supervised {
		return ringFilter(), nil
	}
	architecture, known := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if !known {
		return nil, fmt.Errorf("%w: Bridge cannot restrict system calls on %s", ErrUnavailable, runtime.GOARCH)
	}
	filter := nativeFilter(architecture)
	switch {
	case rules.NoSockets:
		filter = append(filter, onCall(unix.SYS_SOCKET, give(refused))...)
	case rules.NoNetwork:
		filter = append(filter, onCall(unix.SYS_SOCKET, onlyFamilies(unix.AF_UNIX, unix.AF_NETLINK)...)...)
	}
	if supervised {
		// A datagram call may name its receiver, which no filter can read.
		filter = append(filter, onCall(unix.SYS_SOCKET, noUnixDatagrams()...)...)
		filter = append(filter, onCall(unix.SYS_SOCKETPAIR, noUnixDatagrams()...)...)
		filter = append(filter, onCall(unix.SYS_CONNECT, give(unix.SECCOMP_RET_USER_NOTIF))...)
	}
	if supervised && rules.OwnDevices {
		filter = append(filter, leaveFileCalls()...)
	}
	if rules.KeepAttributes {
		for _, call := range attributeCalls {
			filter = append(filter, onCall(call, give(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM)))...)
		}
		filter = append(filter, onCall(unix.SYS_IOCTL, noFlagChanges()...)...)
	}
	return append(filter, give(unix.SECCOMP_RET_ALLOW)), nil
}

// The offsets, in bytes, of the kernel's filter data.
const (
	callNumber       = 0
	callArchitecture = 4
	callArgument     = 16 // the low half of the first argument: both processors are little-endian
	nextArgument     = 8
	// otherNumbers is the first number of the x32 calls: 64-bit calls with other numbers.
	otherNumbers = 0x40000000
)

const (
	refused     = unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)
	unsupported = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	// socketTypes masks a socket's type without its flags.
	socketTypes = 0xf
)

func load(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

func mask(k uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: k}
}

func jump(how uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | how | unix.BPF_K, K: k, Jt: yes, Jf: no}
}

func give(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }

// onCall returns a filter part that runs then for one system call and skips it for
// the others.
func onCall(number uint32, then ...unix.SockFilter) []unix.SockFilter {
	return slices.Concat([]unix.SockFilter{load(callNumber), jump(unix.BPF_JEQ, number, 0, uint8(len(then)))}, then)
}

// ringFilter blocks io_uring_setup. Its number is the same for every processor
// family that Bridge supports, including 32 bits and x32.
func ringFilter() []unix.SockFilter {
	return []unix.SockFilter{
		load(callNumber),
		mask(^uint32(otherNumbers)),
		jump(unix.BPF_JEQ, unix.SYS_IO_URING_SETUP, 0, 1),
		give(unsupported),
		give(unix.SECCOMP_RET_ALLOW),
	}
}

// nativeFilter is the start of a filter. It kills a program for another processor
// family, whose system calls have other numbers. It blocks the x32 numbers and
// io_uring_setup, which creates and connects sockets without the usual calls.
func nativeFilter(architecture uint32) []unix.SockFilter {
	return append([]unix.SockFilter{
		load(callArchitecture),
		jump(unix.BPF_JEQ, architecture, 1, 0),
		give(unix.SECCOMP_RET_KILL_PROCESS),
		load(callNumber),
		jump(unix.BPF_JGE, otherNumbers, 0, 1),
		give(unsupported),
	}, onCall(unix.SYS_IO_URING_SETUP, give(unsupported))...)
}

// onlyFamilies blocks new sockets of families other than these two. Libraries query
// the network interfaces by netlink.
func onlyFamilies(first, second uint32) []unix.SockFilter {
	return []unix.SockFilter{
		load(callArgument),
		jump(unix.BPF_JEQ, first, 2, 0),
		jump(unix.BPF_JEQ, second, 1, 0),
		give(refused),
	}
}

// noUnixDatagrams blocks new unix sockets except those that must connect before
// they send: streams and sequenced packets.
func noUnixDatagrams() []unix.SockFilter {
	return []unix.SockFilter{
		load(callArgument),
		jump(unix.BPF_JEQ, unix.AF_UNIX, 0, 5),
		load(callArgument + nextArgument),
		mask(socketTypes),
		jump(unix.BPF_JEQ, unix.SOCK_STREAM, 2, 0),
		jump(unix.BPF_JEQ, unix.SOCK_SEQPACKET, 1, 0),
		give(refused),
	}
}

// noFlagChanges blocks the ioctl(2) requests behind chattr(1).
func noFlagChanges() []unix.SockFilter {
	return []unix.SockFilter{
		load(callArgument + nextArgument),
		jump(unix.BPF_JEQ, unix.FS_IOC_SETFLAGS, 1, 0),
		jump(unix.BPF_JEQ, fsIocFSSetXAttr, 0, 1),
		give(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)),
	}
}

// fsIocFSSetXAttr is FS_IOC_FSSETXATTR of linux/fs.h.
const fsIocFSSetXAttr = 0x401c5820
