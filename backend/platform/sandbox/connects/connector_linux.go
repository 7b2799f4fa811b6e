package connects

import (
	"io"
	"os"
	"os/exec"
	"sync"

	"golang.org/x/sys/unix"

	"bridge/backend/platform/sandbox"
)

// connector connects sockets to the broker's socket through a separate process. The
// broker identifies callers by their processes and treats that one as the job's
// (SEC-01). The process starts with the first socket.
type connector struct {
	command []string

	mu      sync.Mutex // guards the fields below and serializes requests
	process *exec.Cmd
	socket  *os.File
}

func newConnector(runner []string, path string) *connector {
	return &connector{command: sandbox.ConnectorCommand(runner, path)}
}

// connect connects a socket and returns the error number, or 0.
func (c *connector) connect(socket *os.File) unix.Errno {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil {
		if err := c.startLocked(); err != nil {
			return unix.ECONNREFUSED
		}
	}
	answer := make([]byte, 1)
	err := sandbox.SendFile(c.socket, socket)
	if err == nil {
		_, err = io.ReadFull(c.socket, answer)
	}
	if err != nil {
		c.endLocked() // the next call starts a new process
		return unix.ECONNREFUSED
	}
	return unix.Errno(answer[0])
}

func (c *connector) startLocked() error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socketpair", err)
	}
	own, file := os.NewFile(uintptr(pair[0]), "connector"), os.NewFile(uintptr(pair[1]), "requests")
	defer file.Close()
	process := exec.Command(c.command[0], c.command[1:]...) //nolint:noctx // close ends it
	process.ExtraFiles = []*os.File{file}                   // sandbox.SupervisorFD
	if err := process.Start(); err != nil {
		own.Close()
		return err
	}
	c.process, c.socket = process, own
	return nil
}

// endLocked ends the process, if there is one.
func (c *connector) endLocked() {
	if c.process == nil {
		return
	}
	c.socket.Close()
	_ = c.process.Process.Kill() // it may have ended already
	_ = c.process.Wait()         // its exit status does not matter
	c.process = nil
}

func (c *connector) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked()
}
