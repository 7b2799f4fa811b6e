package sandbox

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// pidOf returns the process that a signal's description names. The field follows three
// numbers of four bytes, and the union that it belongs to is aligned as a pointer is.
func pidOf(info *unix.Siginfo) int {
	const numbers = 3 * 4
	at := (numbers + unsafe.Alignof(uintptr(0)) - 1) &^ (unsafe.Alignof(uintptr(0)) - 1)
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(info), at))) //nolint:gosec // as the kernel fills it in
}
