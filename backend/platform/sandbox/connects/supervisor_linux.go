package connects

import (
	"errors"
	"io"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"bridge/backend/platform/sandbox"
)

// atOnce bounds the concurrent answers: each one blocks a thread while it connects.
const atOnce = 64

// mostRefused bounds the refused sockets that a supervisor reports.
const mostRefused = 20

// Supervisor answers the calls that the filter of one program, and of all that it
// starts, passes on.
type Supervisor struct {
	program   int // the program's process
	policy    Policy
	connector *connector
	own       *os.File // this process's end of the socket to the program
	childEnd  *os.File // the program's end
	slots     chan struct{}
	ended     sync.WaitGroup
	stop      [2]int        // a pipe; closing its write end stops the service
	stopped   chan struct{} // closed at that time
	once      sync.Once
	refused   chan string
	blind     chan struct{}  // closed when the calls cannot be answered
	looksInto func(int) bool // reports whether this process may inspect another one

	mu       sync.Mutex // guards told
	reported map[string]bool
}

// New returns a supervisor with that policy. connectorRunner is the command that
// calls [sandbox.Main], for the process that connects to the broker's socket. It
// fails if the process has no free descriptors.
func New(policy Policy, connectorRunner []string) (*Supervisor, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	s := &Supervisor{
		policy: policy, own: os.NewFile(uintptr(pair[0]), "program"), childEnd: os.NewFile(uintptr(pair[1]), "supervisor"),
		connector: newConnector(connectorRunner, policy.Broker), slots: make(chan struct{}, atOnce),
		stopped: make(chan struct{}), refused: make(chan string, mostRefused), reported: map[string]bool{},
		blind: make(chan struct{}), looksInto: canInspect,
	}
	if err := unix.Pipe2(s.stop[:], unix.O_CLOEXEC); err != nil {
		s.own.Close()
		s.childEnd.Close()
		return nil, os.NewSyscallError("pipe2", err)
	}
	return s, nil
}

// File returns the program's end of the socket to the supervisor, for its
// descriptor [sandbox.SupervisorFD].
func (s *Supervisor) File() *os.File { return s.childEnd }

// Start begins to answer the calls of process pid, which was started with the
// socket of File.
func (s *Supervisor) Start(pid int) {
	s.program = pid
	s.childEnd.Close()
	s.ended.Go(func() {
		listener, err := s.greet(pid)
		if err == nil { // otherwise the program did not start, or is not supervised
			s.serve(listener)
		}
	})
}

// Refused returns the channel of refused sockets' paths, each sent once.
func (s *Supervisor) Refused() <-chan string { return s.refused }

// Unsupervised is closed if this process may not inspect the program. The program's
// calls are then not answered, and it can connect to all sockets.
func (s *Supervisor) Unsupervised() <-chan struct{} { return s.blind }

// Done is closed by Close.
func (s *Supervisor) Done() <-chan struct{} { return s.stopped }

// Close ends the service. Waiting calls fail.
func (s *Supervisor) Close() {
	s.once.Do(func() {
		_ = unix.Shutdown(int(s.own.Fd()), unix.SHUT_RDWR) // wakes the wait for the program's hello
		_ = unix.Close(s.stop[1])                          // nothing was written to it
		close(s.stopped)
		s.childEnd.Close()
		s.ended.Wait()
		s.own.Close()
		_ = unix.Close(s.stop[0])
		s.connector.close()
	})
}

// greet reports to the program whether its calls are answered, and returns the
// listener of its filter.
func (s *Supervisor) greet(pid int) (*os.File, error) {
	if _, err := io.ReadFull(s.own, make([]byte, 1)); err != nil {
		return nil, err
	}
	if !s.looksInto(pid) {
		close(s.blind)
		_, err := s.own.Write([]byte{sandbox.SupervisorCannot})
		return nil, errors.Join(err, unix.EPERM)
	}
	if _, err := s.own.Write([]byte{sandbox.SupervisorAnswers}); err != nil {
		return nil, err
	}
	return sandbox.ReceiveFile(s.own)
}

// canInspect reports whether this process may copy the descriptors and memory of
// another one. Some systems allow that only to the superuser.
func canInspect(pid int) bool {
	socket, err := copyOf(pid, sandbox.SupervisorFD)
	if err != nil {
		return false
	}
	socket.Close()
	// No program has address 0: only a process that may be inspected gives this error.
	_, err = readMemory(pid, 0, 1)
	return errors.Is(err, unix.EFAULT)
}

// notification and response are struct seccomp_notif and struct seccomp_notif_resp.
type notification struct {
	ID           uint64
	PID          uint32 // the thread's id
	Flags        uint32
	Call         int32
	Architecture uint32
	Instruction  uint64
	Args         [6]uint64
}

type response struct {
	ID    uint64
	Value int64
	Error int32
	Flags uint32
}

func control(fd int, request uint, argument unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(argument))
	return errno
}

// serve answers calls until Close, or until no calling process is left. It closes
// the listener after the last connection, which may take minutes.
func (s *Supervisor) serve(listener *os.File) {
	fd := int(listener.Fd())
	var answering sync.WaitGroup
	defer func() {
		go func() {
			answering.Wait()
			listener.Close()
		}()
	}()
	for s.waitForCall(fd) {
		var call notification
		if control(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&call)) != 0 { //nolint:gosec // as the kernel takes it
			continue // the caller has ended
		}
		answer := func() { s.answerConnect(fd, call) }
		if call.Call != unix.SYS_CONNECT {
			if answer = s.fileAnswer(fd, call); answer == nil {
				goOn(fd, call)
				continue
			}
		}
		select {
		case s.slots <- struct{}{}:
		case <-s.stopped:
			return
		}
		answering.Go(func() {
			defer func() { <-s.slots }()
			answer()
		})
	}
}

// answerConnect makes the connection of one call and answers it.
func (s *Supervisor) answerConnect(listener int, call notification) {
	reply(listener, call, s.answer(listener, call))
}

// reply answers a call with an error number, or 0.
func reply(listener int, call notification, number unix.Errno) {
	answer := response{ID: call.ID, Error: -int32(number)}
	_ = control(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&answer)) //nolint:gosec // whoever called may have ended
}

// goOn leaves a call to the kernel, which applies the sandbox.
func goOn(listener int, call notification) {
	answer := response{ID: call.ID, Flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	_ = control(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&answer)) //nolint:gosec // whoever called may have ended
}

// waits reports whether the calling thread still waits for its answer. Only then
// the data read belongs to that thread.
func waits(listener int, call notification) bool {
	return control(listener, unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&call.ID)) == 0 //nolint:gosec // as the kernel takes it
}

// waitForCall waits for a call. It returns false if none will follow.
func (s *Supervisor) waitForCall(listener int) bool {
	for {
		ready := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}, {Fd: int32(s.stop[0]), Events: unix.POLLIN}}
		_, err := unix.Poll(ready, -1)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil, ready[1].Revents != 0:
			return false
		}
		return ready[0].Revents&unix.POLLIN != 0
	}
}

// mostOfAddress bounds an address of any family (sockaddr_storage).
const mostOfAddress = 128

// answer makes the connection of one call and returns the error number, or 0.
func (s *Supervisor) answer(listener int, call notification) unix.Errno {
	thread, descriptor, size := int(call.PID), int(int32(call.Args[0])), int(int32(call.Args[2]))
	if size < 0 || size > mostOfAddress {
		return unix.EINVAL
	}
	socket, err := copyOf(thread, descriptor)
	if err != nil {
		return errnoOf(err)
	}
	defer socket.Close()
	address, err := readMemory(thread, uintptr(call.Args[1]), size)
	if err != nil {
		return errnoOf(err)
	}
	family, err := unix.GetsockoptInt(int(socket.Fd()), unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return errnoOf(err)
	}
	if family != unix.AF_UNIX {
		if !waits(listener, call) {
			return unix.EINTR
		}
		return connect(socket, address)
	}
	target, errno := open(thread, address)
	if errno != 0 {
		return errno
	}
	defer target.Close()
	if !waits(listener, call) {
		return unix.EINTR
	}
	return s.connectUnix(socket, target)
}

// connectUnix connects a unix socket to the socket file in target.
func (s *Supervisor) connectUnix(socket, target *os.File) unix.Errno {
	info, err := target.Stat()
	if err != nil {
		return errnoOf(err)
	}
	if info.Mode()&os.ModeSocket == 0 {
		return unix.ECONNREFUSED
	}
	path, err := os.Readlink(sandbox.HeldName(target))
	if err != nil {
		return errnoOf(err)
	}
	switch s.policy.decide(path, info) {
	case viaConnector:
		return s.connector.connect(socket)
	case allowed:
		return errnoOf(unix.Connect(int(socket.Fd()), &unix.SockaddrUnix{Name: sandbox.HeldName(target)}))
	case denied:
		s.noteRefused(path)
	}
	return unix.EACCES
}

// noteRefused reports a refused socket once.
func (s *Supervisor) noteRefused(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.reported[path] && len(s.reported) < mostRefused {
		s.reported[path] = true
		s.refused <- path
	}
}
