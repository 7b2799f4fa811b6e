//go:build amd64 || arm64

package faults

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// call is one system call that the program is about to make on a file.
type call struct {
	number       uint64
	path         string
	offset, size int64 // of a write; size is the new length of a truncation
}

func (c call) isSync() bool { return c.number == unix.SYS_FSYNC || c.number == unix.SYS_FDATASYNC }

// watched are the calls at which the program stops.
var watched = []uint32{unix.SYS_WRITE, unix.SYS_PWRITE64, unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_FTRUNCATE}

// verdict says what becomes of a call. The zero one lets it through.
type verdict struct {
	refused unix.Errno      // the call is not made and fails so
	half    bool            // only half of the bytes are written
	held    <-chan struct{} // the call is made once this is closed; other threads go on
}

// traced is a program under trace.
type traced struct {
	cmd    *exec.Cmd
	below  string // only calls on files below this folder are judged
	judge  func(call) verdict
	ended  chan struct{}
	status unix.WaitStatus // once ended is closed
}

// filterEnv makes the test binary set the filter and become the program.
const filterEnv = "BRIDGE_FAULTS_FILTER"

// becomeFiltered stops at nothing before the program: a filter stays over exec.
func becomeFiltered() error {
	runtime.LockOSThread()
	program := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}} // the call's number
	for i, number := range watched {
		program = append(program, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: number, Jt: uint8(len(watched) - i)})
	}
	program = append(program,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_TRACE})
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new rights: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&filter)), 0, 0); err != nil {
		return fmt.Errorf("set the filter: %w", err)
	}
	return unix.Exec(os.Args[1], os.Args[1:], os.Environ())
}

// start runs the binary under trace. judge is asked about each call on a file
// below the folder, one after another.
func start(t *testing.T, below string, judge func(call) verdict, stdout, stderr io.Writer, args ...string) *traced {
	t.Helper()
	return startOf(t, program, below, judge, stdout, stderr, args...)
}

// startOf is start of another program.
func startOf(t *testing.T, program, below string, judge func(call) verdict, stdout, stderr io.Writer, args ...string) *traced {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &traced{cmd: exec.Command(self, append([]string{program}, args...)...), below: below, judge: judge, ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), filterEnv+"=1")
	p.cmd.Stdout, p.cmd.Stderr = stdout, stderr
	p.cmd.SysProcAttr = &unix.SysProcAttr{Ptrace: true}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // a tracer is a thread; it ends with this goroutine
		err := p.begin()
		started <- err
		if err == nil {
			p.follow()
		}
	}()
	if err := <-started; err != nil {
		t.Skipf("NOT PROVEN: faults need the right to trace: %v", err)
	}
	t.Cleanup(func() { p.kill() })
	return p
}

func (p *traced) begin() error {
	if err := p.cmd.Start(); err != nil {
		return err
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(p.cmd.Process.Pid, &status, unix.WALL, nil); err != nil {
		return err
	}
	const options = unix.PTRACE_O_TRACESECCOMP | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK |
		unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_EXITKILL
	if err := unix.PtraceSetOptions(p.cmd.Process.Pid, options); err != nil {
		return err
	}
	return unix.PtraceCont(p.cmd.Process.Pid, 0)
}

// ownThreadsChildren keeps a wait from other goroutines' processes.
const ownThreadsChildren = 0x20000000 // __WNOTHREAD

// follow serves the program's stops until it has ended.
func (p *traced) follow() {
	defer close(p.ended)
	known := map[int]bool{p.cmd.Process.Pid: true}
	held := map[int]<-chan struct{}{} // by the thread that stands at the call
	for {
		thread, status, err := nextStop(held)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			break // no thread is left
		}
		if !status.Stopped() {
			if thread == p.cmd.Process.Pid {
				p.status = status
			}
			continue
		}
		signal := status.StopSignal()
		switch {
		case signal == unix.SIGTRAP && status.TrapCause() == unix.PTRACE_EVENT_SECCOMP:
			if held[thread] = p.stopped(thread); held[thread] != nil {
				continue
			}
			delete(held, thread)
			signal = 0
		case signal == unix.SIGTRAP, signal == unix.SIGSTOP && !known[thread]:
			signal = 0 // a stop of the trace itself
		}
		known[thread] = true
		_ = unix.PtraceCont(thread, int(signal)) // it may just have been killed
	}
	_ = p.cmd.Wait() // what it printed is complete; the status is ours
}

// nextStop waits for the next stop or end of a thread. Meanwhile it lets go those of held
// whose channel is closed.
func nextStop(held map[int]<-chan struct{}) (thread int, status unix.WaitStatus, err error) {
	for len(held) > 0 {
		thread, err := unix.Wait4(-1, &status, unix.WALL|ownThreadsChildren|unix.WNOHANG, nil)
		if thread != 0 || err != nil {
			return thread, status, err
		}
		for thread, letGo := range held {
			select {
			case <-letGo:
				delete(held, thread)
				_ = unix.PtraceCont(thread, 0) // it may just have been killed
			case <-time.After(time.Millisecond):
			}
		}
	}
	thread, err = unix.Wait4(-1, &status, unix.WALL|ownThreadsChildren, nil)
	return thread, status, err
}

// stopped judges the call at which a thread of the program stands. It returns until when
// the call is held, nil when it is not.
func (p *traced) stopped(thread int) (held <-chan struct{}) {
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", p.cmd.Process.Pid, thread)); err != nil {
		return nil // a process that the program started
	}
	regs, err := registersOf(thread)
	if err != nil {
		return nil
	}
	fd := regs.argument(0)
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", thread, fd))
	if err != nil || !strings.HasPrefix(path, p.below) {
		return nil
	}
	c := call{number: regs.number(), path: path, offset: int64(regs.argument(3)), size: int64(regs.argument(2))}
	switch c.number {
	case unix.SYS_WRITE:
		c.offset = position(thread, fd)
	case unix.SYS_FTRUNCATE:
		c.size = int64(regs.argument(1))
	}
	v := p.judge(c)
	switch {
	case v.refused != 0:
		_ = regs.refuse(thread, v.refused) // it may just have been killed
	case v.half && regs.argument(2) > 1:
		_ = regs.setSize(thread, regs.argument(2)/2)
	}
	return v.held
}

// position is where a file is written next.
func position(thread int, fd uint64) (at int64) {
	info, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", thread, fd))
	if err == nil {
		_, _ = fmt.Sscanf(string(info), "pos: %d", &at) // the first line of every kernel
	}
	return at
}

func (p *traced) kill() {
	p.signal(unix.SIGKILL)
	<-p.ended
}

// signal sends the program a signal. Where it has ended nobody gets it: another process
// may have its number by then.
func (p *traced) signal(how unix.Signal) { _ = p.cmd.Process.Signal(how) }

// plan refuses calls by their number.
type plan struct {
	name    string
	syncs   bool // counts syncs, else what writes
	refused unix.Errno
	half    bool // the first one comes half, the next ones not at all
	lasting bool // from the n-th on, else only that one

	mu      sync.Mutex
	n       int // the first that is refused, from 1; 0 for none
	seen    int
	touched []string // the files of the refused calls
}

// arm lets the plan begin: the n-th call from now on fails. 0 ends it.
func (p *plan) arm(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n, p.seen, p.touched = n, 0, nil
}

// met is how many files the plan has failed for.
func (p *plan) met() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.touched)
}

func (p *plan) judge(c call) verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.isSync() != p.syncs {
		return verdict{}
	}
	p.seen++
	if p.n == 0 || p.seen < p.n || p.seen > p.n && !p.lasting {
		return verdict{}
	}
	if !slices.Contains(p.touched, c.path) {
		p.touched = append(p.touched, c.path)
	}
	if p.half && p.seen == p.n {
		return verdict{half: true}
	}
	return verdict{refused: p.refused}
}

// plans are the ways in which a disk fails.
func plans() []*plan {
	return []*plan{
		{name: "a sync fails", syncs: true, refused: unix.EIO},
		{name: "syncs fail", syncs: true, refused: unix.EIO, lasting: true},
		{name: "a write fails", refused: unix.EIO},
		{name: "the disk is full", refused: unix.ENOSPC, lasting: true},
		{name: "a short write, then the disk is full", refused: unix.ENOSPC, lasting: true, half: true},
		{name: "the disk is read-only", refused: unix.EROFS, lasting: true},
	}
}

// A test that kills thousands of programs signals each once more at its end. By then the
// numbers of those that have ended may be other processes'.
func TestASignalToAProgramThatHasEndedReachesNobody(t *testing.T) {
	p := start(t, t.TempDir(), func(call) verdict { return verdict{} }, nil, nil, "version")
	<-p.ended
	if err := p.cmd.Process.Signal(unix.SIGKILL); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a signal after its end: %v", err)
	}
}
