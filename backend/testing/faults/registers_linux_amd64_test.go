package faults

import "golang.org/x/sys/unix"

// registers are those of a thread that stands before a system call.
type registers struct{ unix.PtraceRegs }

func registersOf(thread int) (*registers, error) {
	r := &registers{}
	return r, unix.PtraceGetRegs(thread, &r.PtraceRegs)
}

func (r *registers) number() uint64 { return r.Orig_rax }

// argument is one of the call's first four.
func (r *registers) argument(i int) uint64 { return [...]uint64{r.Rdi, r.Rsi, r.Rdx, r.R10}[i] }

// refuse lets the call not be made and fail so.
func (r *registers) refuse(thread int, errno unix.Errno) error {
	r.Orig_rax = ^uint64(0) // no call at all
	r.Rax = uint64(-int64(errno))
	return unix.PtraceSetRegs(thread, &r.PtraceRegs)
}

// setSize changes the third argument.
func (r *registers) setSize(thread int, size uint64) error {
	r.Rdx = size
	return unix.PtraceSetRegs(thread, &r.PtraceRegs)
}
