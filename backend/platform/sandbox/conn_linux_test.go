package sandbox_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bridge/backend/core/job"
	"bridge/backend/platform/proc"
	"bridge/backend/platform/sandbox"
	"bridge/backend/testing/testkit"
)

// holdConnection is the test binary as a program that connects to a port and keeps the
// connection where it is hard to find, until its input ends. It says when it is done.
func holdConnection(how, address string) int {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // another thread than the first, and for good
		fd, err := connectTo(how, address)
		if err == nil {
			err = hide(how, fd)
		}
		done <- err
		select {}
	}()
	if err := <-done; err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("hidden")
	if how == "in a thread after its first has ended" {
		go waitAndExit()
		unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
	}
	waitAndExit()
	return 0
}

// The main goroutine of a helper that ends its first thread has to be on it.
func init() {
	if len(os.Args) > 1 && os.Args[1] == "test-hold" {
		runtime.LockOSThread()
	}
}

func waitAndExit() {
	io.Copy(io.Discard, os.Stdin) //nolint:errcheck // its end is the sign
	os.Exit(0)
}

// connectTo opens a connection by bare calls, so that nothing else knows its descriptor.
func connectTo(how, address string) (int, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host != "127.0.0.1" {
		return 0, fmt.Errorf("unexpected address %s", address)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return 0, err
	}
	if how == "in a thread's own table" {
		if err := unix.Unshare(unix.CLONE_FILES); err != nil {
			return 0, err
		}
	}
	protocol := 0
	if how == "by MPTCP" {
		protocol = unix.IPPROTO_MPTCP
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return 0, err
	}
	return fd, unix.Connect(fd, &unix.SockaddrInet4{Port: number, Addr: [4]byte{127, 0, 0, 1}})
}

func hide(how string, fd int) error {
	switch how {
	case "on its way to nobody":
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		if err := unix.Sendmsg(pair[0], []byte("x"), unix.UnixRights(fd), nil, 0); err != nil {
			return err
		}
		return unix.Close(fd)
	case "in a process that nobody looks into":
		return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	case "in two processes":
		child := exec.Command("sleep", "1000") //nolint:noctx // it is ended with its parent's input
		child.ExtraFiles = []*os.File{os.NewFile(uintptr(fd), "connection")}
		child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		return child.Start()
	}
	return nil
}

// startHolder runs holdConnection and returns this end of its connection.
func startHolder(t *testing.T, how string, wrap ...string) net.Conn {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	line := append(wrap, anybodysProgram(t), "test-hold", how, listener.Addr().String())
	cmd := exec.CommandContext(t.Context(), line[0], line[1:]...)
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		_ = cmd.Wait()
	})
	if err := listener.(*net.TCPListener).SetDeadline(time.Now().Add(testkit.Patience)); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(output).ReadString('\n')
	if strings.Contains(said, "not supported") {
		t.Skip("NOT PROVEN HERE: this kernel says " + said)
	}
	if err != nil || said != "hidden\n" {
		t.Fatalf("it says %q, %v", said, err)
	}
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// anybodysProgram copies the test binary to where every user can run it.
func anybodysProgram(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp("/tmp", "sandbox")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	program := filepath.Join(folder, "program")
	if err := errors.Join(os.Chmod(folder, 0o755), testkit.WriteProgram(program, binary, 0o755)); err != nil {
		t.Fatal(err)
	}
	return program
}

// Wherever a job keeps a connection, it is the job's, or nobody's and refused.
func TestSEC_01_AJobCannotHideItsConnection(t *testing.T) {
	var inside, outside sandbox.Trees
	inside.Set(sandbox.Mark{Job: "codex-job-1", Token: "secret"}, job.Process{PID: os.Getpid()}, nil)
	s := startRunner(t, "secret-of-another-job")
	outside.Set(sandbox.Mark{Job: "codex-job-2", Token: "secret-of-another-job"}, job.Process{PID: s.cmd.Process.Pid}, s.known)
	for how, want := range map[string]error{ // what one outside of every job gets
		"as it is":                              nil,
		"in a thread's own table":               nil,
		"in a thread after its first has ended": nil,
		"on its way to nobody":                  sandbox.ErrNoHolder,
		"by MPTCP":                              nil,
		"in two processes":                      sandbox.ErrManyHolders,
		"in a process that nobody looks into":   nil,
	} {
		t.Run(how, func(t *testing.T) {
			conn := startHolder(t, how)
			if name, err := inside.JobOfConn(conn); name == "" && err == nil {
				t.Error("of a job's process it is said that it is none's")
			}
			name, err := outside.JobOfConn(conn)
			if how == "in a thread after its first has ended" {
				if name != "" {
					t.Errorf("another's is %q, %v", name, err) // it may be refused: nobody can read who started it
				}
				return
			}
			if how == "in a process that nobody looks into" && errors.Is(err, sandbox.ErrNoHolder) {
				err = nil // whoever is not root cannot look into it
			}
			if name != "" || !errors.Is(err, want) {
				t.Errorf("another's is %q, %v, want %v", name, err, want)
			}
		})
	}
}

// TestSEC_10_ARunnersConnectionIsItsJobs: a runner connects the sockets of its job, which it
// holds for a moment, perhaps alone.
func TestSEC_10_ARunnersConnectionIsItsJobs(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, runner := range []int{os.Getpid(), os.Getppid()} { // what a runner has started is its job's, too
		var trees sandbox.Trees
		identity, err := proc.Identity(runner)
		if err != nil {
			t.Fatal(err)
		}
		trees.Set(sandbox.Mark{Job: "codex-job-1", Token: "secret"}, job.Process{PID: runner, Identity: identity}, nil)
		if name, err := trees.JobOfConn(conn); name != "codex-job-1" || err != nil {
			t.Errorf("of the runner %d it is %q, %v", runner, name, err)
		}
	}
}

// Another user's connection is refused whether jobs run or not.
func TestSEC_01_AnotherUsersConnectionIsRefused(t *testing.T) {
	conn := startHolder(t, "as it is")
	if known, err := sandbox.SameUser(conn); !known || err != nil {
		t.Errorf("this user's connection is %t, %v", known, err)
	}
	if os.Geteuid() != 0 {
		t.Skip("NOT PROVEN HERE: only root can run a process as another user")
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip("NOT PROVEN HERE: there is no setpriv")
	}
	conn = startHolder(t, "as it is", setpriv, "--reuid=65534", "--regid=65534", "--clear-groups")
	if known, err := sandbox.SameUser(conn); known || !errors.Is(err, sandbox.ErrOtherUser) {
		t.Errorf("another user's connection is %t, %v", known, err)
	}
}
