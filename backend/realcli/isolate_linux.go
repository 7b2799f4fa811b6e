package realcli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// insideVar marks the process that runs inside the namespace.
const insideVar = "BRIDGE_TEST_ISOLATED"

// Isolated reports whether this process runs in a network namespace made by
// Isolate: nothing that it starts can reach beyond its loopback.
func Isolated() bool { return os.Getenv(insideVar) == "1" }

// Isolate runs this same program again, with the same arguments, in a network
// namespace that holds nothing but a loopback and with a temporary folder of its
// own, and returns its exit code. When it ends, however it ends, every process
// that it left behind is killed by its id, and the folder is removed. An error
// means that the system does not permit namespaces.
func Isolate() (code int, err error) {
	dir, err := temporary()
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // whoever might still write there has been killed
	runtime.LockOSThread()  // Pdeathsig follows the thread
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("becoming the parent of orphans: %w", err)
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), insideVar+"=1", "TMPDIR="+dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("making a network namespace: %w", err)
	}
	go func() {
		<-stop
		cmd.Process.Kill() //nolint:errcheck // it may be at its end
	}()
	err = cmd.Wait()
	killOrphans()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		return 0, fmt.Errorf("running in a network namespace: %w", err)
	}
	return cmd.ProcessState.ExitCode(), nil
}

// maxTemporary is the most bytes in the name of a folder for homes that leaves
// enough for the names of the sockets in them: 107 is what the system allows.
const maxTemporary = 50

// temporary makes the folder for all that the tests make.
func temporary() (string, error) {
	parent := os.TempDir()
	if len(parent) > maxTemporary-len("/cli0123456789") {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, "cli")
	if err != nil {
		return "", fmt.Errorf("making a folder for the tests: %w", err)
	}
	return dir, nil
}

// RaiseLoopback brings up the loopback of a fresh namespace.
func RaiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("raising the loopback: %w", err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("raising the loopback: %w", err)
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("raising the loopback: %w", err)
	}
	return nil
}
