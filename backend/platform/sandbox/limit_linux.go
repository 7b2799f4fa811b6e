package sandbox

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// A resource limit marks the processes of a run where no control group does, and those
// that leave theirs: children inherit it, and only the superuser can raise it again
// (setrlimit(2)). Linux stores RLIMIT_LOCKS and enforces nothing by it since 2.4.25, so
// its value changes nothing for a program.

// limitBase is the least value that marks a run.
const limitBase = 1 << 61

// limit returns the hard RLIMIT_LOCKS of a run's processes.
func (m Mark) limit() uint64 {
	hash := m.hash()
	return limitBase | binary.BigEndian.Uint64(hash[nameBytes:])&(limitBase-1)
}

// setLimit gives a process, and all that it starts from now on, the limit of a run. One
// that has ended, or is not this user's, stays as it is.
func setLimit(pid int, mark Mark) {
	if mark.isWhole() {
		_ = unix.Prlimit(pid, unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: mark.limit(), Max: mark.limit()}, nil)
	}
}

// hasLimit reports whether a process has the limit of a run.
func hasLimit(pid int, mark Mark) bool {
	hard, ok := limitOf(pid)
	return ok && hard == mark.limit()
}

// limitOf returns the hard limit of a process of this user.
func limitOf(pid int) (hard uint64, ok bool) {
	var limit unix.Rlimit
	err := unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &limit)
	return limit.Max, err == nil
}

// hasLowered reports whether a process has a lower limit than this one: it, or what
// started it, may have hidden the limit of a run.
func hasLowered(pid int) bool {
	theirs, isKnown := limitOf(pid)
	own, isOwnKnown := limitOf(0)
	return isKnown && isOwnKnown && theirs < own
}
