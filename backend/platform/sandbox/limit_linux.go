package sandbox

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// A resource limit marks the processes of a run that are in no control group or
// left theirs. Children inherit it, and only the superuser can raise it again
// (setrlimit(2)). Linux stores RLIMIT_LOCKS but has not enforced it since 2.4.25,
// so its value does not affect a program.

// limitBase is the lowest value that marks a run.
const limitBase = 1 << 61

// limit returns the hard RLIMIT_LOCKS of a run's processes.
func (m Mark) limit() uint64 {
	hash := m.hash()
	return limitBase | binary.BigEndian.Uint64(hash[nameBytes:])&(limitBase-1)
}

// setLimit sets the limit of a run on a process and its later children. It ignores
// a process that has ended or belongs to another user.
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

// hasLowered reports whether a process has a lower limit than this one: it or a
// parent may have hidden the limit of a run.
func hasLowered(pid int) bool {
	processLimit, isKnown := limitOf(pid)
	own, isOwnKnown := limitOf(0)
	return isKnown && isOwnKnown && processLimit < own
}
