//go:build unix

package clidata

import "syscall"

// nonBlocking makes the opening of a pipe return immediately.
const nonBlocking = syscall.O_NONBLOCK
