package faults

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// registers are those of a thread that stands before a system call.
type registers struct{ unix.PtraceRegsArm64 }

// The sets of registers, as elf.h numbers them.
const (
	general    = 1     // NT_PRSTATUS
	systemCall = 0x404 // NT_ARM_SYSTEM_CALL: the number of the call that is about to be made
)

func registersOf(thread int) (*registers, error) {
	r := &registers{}
	return r, unix.PtraceGetRegSetArm64(thread, general, &r.PtraceRegsArm64)
}

func (r *registers) number() uint64 { return r.Regs[8] }

// argument is one of the call's first four.
func (r *registers) argument(i int) uint64 { return r.Regs[i] }

// refuse lets the call not be made and fail so. The kernel has taken the number
// out of its register by now, so it is changed in a set of its own; what is not
// made returns what stands in the first register.
func (r *registers) refuse(thread int, errno unix.Errno) error {
	r.Regs[0] = uint64(-int64(errno))
	if err := unix.PtraceSetRegSetArm64(thread, general, &r.PtraceRegsArm64); err != nil {
		return err
	}
	none := int32(-1) // no call at all
	set := unix.Iovec{Base: (*byte)(unsafe.Pointer(&none)), Len: uint64(unsafe.Sizeof(none))}
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SETREGSET, uintptr(thread), systemCall, uintptr(unsafe.Pointer(&set)), 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// setSize changes the third argument.
func (r *registers) setSize(thread int, size uint64) error {
	r.Regs[2] = size
	return unix.PtraceSetRegSetArm64(thread, general, &r.PtraceRegsArm64)
}
