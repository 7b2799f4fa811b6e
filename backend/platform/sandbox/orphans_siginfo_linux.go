package sandbox

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// pidOf returns the process id in a signal's description. The field follows three
// 4-byte numbers, and its union is aligned like a pointer.
func pidOf(info *unix.Siginfo) int {
	const numbers = 3 * 4
	at := (numbers + unsafe.Alignof(uintptr(0)) - 1) &^ (unsafe.Alignof(uintptr(0)) - 1)
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(info), at))) //nolint:gosec // as the kernel fills it in
}
