// Package faults lets the system refuse what the real binary asks of it, one
// system call after another: a sync that fails, a disk that is full in the
// middle of a write, a write that comes only half. Afterwards everything that
// was acknowledged must be there, and the answer must have said what happened
// (rows MSG-04, STO-04 to STO-10).
//
// The binary runs under ptrace, and a filter stops it at the calls that write or
// sync only, so that it runs at nearly its full speed. Calls are counted over all
// threads together: the n-th is the same one in each run of a command.
package faults
