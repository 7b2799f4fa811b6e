package ipc

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"bridge/backend/platform/proc"
)

// childLeaves has a child of childDials leave its connection to another program.
const childLeaves = "BRIDGE_TEST_CHILD_LEAVES"

// leaveConnection is the test binary as a program that connects, hands the connection to
// a program that it starts, and ends. Its number can then be given to another process.
func leaveConnection(socket string) int {
	conn, err := net.Dial("unix", socket) //nolint:noctx // it is there, or the test has failed
	if err != nil {
		return 1
	}
	file, err := conn.(*net.UnixConn).File()
	if err != nil {
		return 1
	}
	heir := exec.Command("sleep", "1000") //nolint:noctx // the test ends it
	heir.ExtraFiles = []*os.File{file}
	if err := heir.Start(); err != nil {
		return 1
	}
	fmt.Println(heir.Process.Pid)
	return 0
}

// A peer is known by its process as it was when it connected. One that has ended is
// nobody, whoever gets its number.
func TestSEC_01_APeerThatHasEndedHasNoIdentity(t *testing.T) {
	listener, err := Listen(newSocket(t))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	accept := func() net.Conn {
		conn, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	own, err := dial(t.Context(), listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	identity, err := proc.Identity(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if peer, err := samePeer(accept()); err != nil || peer.PID != os.Getpid() || peer.Identity != identity {
		t.Errorf("of this process it is said %+v, %v", peer, err)
	}

	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), self)
	child.Env = append(os.Environ(), childDials+"="+listener.Addr().String(), childLeaves+"=1")
	told, err := child.Output()
	if err != nil {
		t.Fatal(err)
	}
	heir, err := strconv.Atoi(strings.TrimSpace(string(told)))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(heir, syscall.SIGKILL) //nolint:errcheck // it sleeps
	if peer, err := samePeer(accept()); err != nil || peer.PID != child.Process.Pid || peer.Identity != goneIdentity {
		t.Errorf("of one that has ended it is said %+v, %v", peer, err)
	}
}
