package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"bridge/backend/core/bridge"
)

// The supervisor of connect calls and the sandboxed program communicate over a socket.
// The program sends [SupervisorHello]. The supervisor answers with [SupervisorAnswers],
// or with [SupervisorCannot] if the system does not let it inspect the program. Then
// the program sends the listener of its filter (seccomp(2)).
const (
	// SupervisorFD is the descriptor of that socket in the sandboxed program.
	SupervisorFD = 3

	SupervisorHello   = 'h'
	SupervisorAnswers = 'y'
	SupervisorCannot  = 'n'
)

// supervisor is the process that answers the connect calls of a program; the zero
// value means none.
type supervisor struct {
	socket  *os.File
	answers bool
}

// findSupervisor returns the supervisor of this sandboxed program.
func findSupervisor(rules Rules) (supervisor, error) {
	if !rules.Supervised {
		return supervisor{}, nil
	}
	unix.CloseOnExec(SupervisorFD)
	s := supervisor{socket: os.NewFile(SupervisorFD, "supervisor")}
	answer := make([]byte, 1)
	_, err := s.socket.Write([]byte{SupervisorHello})
	if err == nil {
		_, err = io.ReadFull(s.socket, answer)
	}
	if err != nil {
		s.Close()
		return supervisor{}, fmt.Errorf("ask for the supervisor of connections: %w", err)
	}
	s.answers = answer[0] == SupervisorAnswers
	return s, nil
}

// handOver sends the listener of the filter to the supervisor.
func (s supervisor) handOver(listener *os.File) error {
	defer listener.Close()
	if err := SendFile(s.socket, listener); err != nil {
		return fmt.Errorf("hand over the connect calls: %w", err)
	}
	return nil
}

// Close closes the socket to the supervisor.
func (s supervisor) Close() {
	if s.socket != nil {
		_ = s.socket.Close() // all data was sent
	}
}

// SendFile sends a descriptor over a unix socket. It fails if the other end is
// closed.
func SendFile(socket, file *os.File) error {
	return unix.Sendmsg(int(socket.Fd()), []byte{0}, unix.UnixRights(int(file.Fd())), nil, 0)
}

// ReceiveFile receives a descriptor from a unix socket. It fails with [io.EOF] if the
// other end is closed, and with Invalid for a message without exactly one descriptor.
func ReceiveFile(socket *os.File) (*os.File, error) {
	rights := make([]byte, unix.CmsgSpace(4))
	for {
		n, size, _, _, err := unix.Recvmsg(int(socket.Fd()), make([]byte, 1), rights, unix.MSG_CMSG_CLOEXEC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, err
		case n == 0:
			return nil, io.EOF
		}
		return fileOf(rights[:size])
	}
}

// fileOf returns the only descriptor of a control message.
func fileOf(rights []byte) (*os.File, error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(err, bridge.Errorf(bridge.Invalid, "a message has %s, not 1", bridge.Counted(len(messages), "descriptor")))
	}
	descriptors, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(descriptors) != 1 {
		for _, descriptor := range descriptors {
			_ = unix.Close(descriptor) // it has no other owner
		}
		return nil, errors.Join(err, bridge.Errorf(bridge.Invalid, "a message has %s, not 1", bridge.Counted(len(descriptors), "descriptor")))
	}
	return os.NewFile(uintptr(descriptors[0]), "received"), nil
}

// connectAll runs the connector. It returns only an error.
func connectAll(path string) error {
	requests := os.NewFile(SupervisorFD, "requests")
	defer requests.Close()
	unix.CloseOnExec(SupervisorFD)
	for {
		socket, err := ReceiveFile(requests)
		if errors.Is(err, io.EOF) {
			os.Exit(0)
		}
		if err != nil {
			return fmt.Errorf("take a socket to connect: %w", err)
		}
		err = unix.Connect(int(socket.Fd()), &unix.SockaddrUnix{Name: path})
		_ = socket.Close() // the sender still has it
		number := unix.Errno(0)
		if err != nil && !errors.As(err, &number) {
			number = unix.EIO
		}
		if _, err := requests.Write([]byte{byte(number)}); err != nil {
			return fmt.Errorf("answer about a socket: %w", err)
		}
	}
}
