package conformance

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// victimFile is the file of the owner's that an attack changes.
func victimFile(s stage) string { return filepath.Join(ownFolder(s), "victim") }

// allowed is a new path in a folder that the job may write.
func allowed(name string) string { return filepath.Join(os.TempDir(), name+strconv.Itoa(os.Getpid())) }

func write(path string, flags int, words string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|flags, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(words)
	return errors.Join(err, file.Close())
}

func createFile(s stage) (string, error) {
	return "", write(filepath.Join(ownFolder(s), "made"), os.O_CREATE|os.O_EXCL, "x")
}

func appendFile(s stage) (string, error) { return "", write(victimFile(s), os.O_APPEND, "x") }

func truncateFile(s stage) (string, error) { return "", os.Truncate(victimFile(s), 0) }

func removeFile(s stage) (string, error) { return "", os.Remove(victimFile(s)) }

func makeFolder(s stage) (string, error) {
	return "", os.Mkdir(filepath.Join(ownFolder(s), "made"), 0o700)
}

func makePipe(s stage) (string, error) {
	return "", unix.Mkfifo(filepath.Join(ownFolder(s), "made"), 0o600)
}

func renameOut(s stage) (string, error) {
	path := allowed("out")
	if err := write(path, os.O_CREATE, "x"); err != nil {
		return "", err
	}
	return "", os.Rename(path, filepath.Join(ownFolder(s), "made"))
}

func renameIn(s stage) (string, error) { return "", os.Rename(victimFile(s), allowed("in")) }

func writeHardLink(s stage) (string, error) {
	path := allowed("hard")
	if err := os.Link(victimFile(s), path); err != nil {
		return "", err
	}
	return "", write(path, os.O_APPEND, "x")
}

func writeSymlink(s stage) (string, error) {
	path := allowed("link")
	if err := os.Symlink(victimFile(s), path); err != nil {
		return "", err
	}
	return "", write(path, os.O_APPEND, "x")
}

func writeByHandle(s stage) (string, error) {
	handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, victimFile(s), 0)
	if err != nil {
		return "", err
	}
	folder, err := unix.Open(ownFolder(s), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return "", err
	}
	fd, err := unix.OpenByHandleAt(folder, handle, unix.O_WRONLY)
	if err != nil {
		return "", err
	}
	_, err = unix.Write(fd, []byte("x"))
	return "", err
}

func writeThroughProc(s stage) (string, error) {
	return "", write(fmt.Sprintf("/proc/%d/root%s", s.Broker, victimFile(s)), os.O_APPEND, "x")
}

// bindMount writes through a mount of its own, in namespaces of its own.
func bindMount(s stage) (string, error) {
	at := allowed("bound")
	if err := os.Mkdir(at, 0o700); err != nil {
		return "", err
	}
	cmd := helper(s, "bind", ownFolder(s), at)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	said, err := cmd.CombinedOutput()
	return string(said), err
}

// bind is the helper of bindMount.
func bind(folder, at string) error {
	if err := unix.Mount(folder, at, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	return write(filepath.Join(at, "made"), os.O_CREATE, "x")
}

// writeTarget makes the file of the attack whose function is running.
func writeTarget(s stage) (string, error) {
	a, err := find(os.Args[3])
	if err != nil {
		return "", err
	}
	return "", write(a.target(s), os.O_CREATE, "x")
}

func writeShared(s stage) (string, error) {
	_, plain := writeTarget(s)
	a, err := find(os.Args[3])
	if err != nil {
		return "", err
	}
	// As libraries open shared memory: a job that writes has it in a folder of its own.
	file, err := os.OpenFile(a.target(s), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err == nil {
		err = file.Close()
	}
	return "", errors.Join(plain, err)
}

func writeOwnFolder(s stage) (string, error) { return writeTarget(s) }
func writeHome(s stage) (string, error)      { return writeTarget(s) }

func writeTerminal(s stage) (string, error) {
	own := write("/dev/tty", unix.O_NOCTTY, markOf(s))
	file, both := os.OpenFile(s.Terminal, os.O_RDWR|unix.O_NOCTTY, 0) // as programs open a terminal of their own
	if both == nil {
		_, err := file.WriteString(markOf(s))
		both = errors.Join(err, file.Close())
	}
	return "", errors.Join(own, both, write(s.Terminal, unix.O_NOCTTY, markOf(s)))
}

func writeStartup(s stage) (string, error) {
	return "", write(filepath.Join(s.User, ".bashrc"), os.O_APPEND, "x")
}

func connectTo(s stage, address string) error {
	conn, err := net.Dial("unix", address)
	if err != nil {
		return err
	}
	_, err = io.WriteString(conn, markOf(s)+"\n")
	return errors.Join(err, conn.Close())
}

func connectPath(s stage) (string, error)     { return "", connectTo(s, s.Socket) }
func connectAbstract(s stage) (string, error) { return "", connectTo(s, s.Abstract) }

func changeMode(s stage) (string, error) { return "", os.Chmod(victimFile(s), 0o777) }

// changeOwner changes the group as well where the user has another one.
func changeOwner(s stage) (string, error) {
	if os.Getuid() == 0 {
		return "", os.Chown(victimFile(s), 12345, 12345)
	}
	groups, err := os.Getgroups()
	for _, group := range groups {
		if group != os.Getgid() {
			return "", os.Chown(victimFile(s), -1, group)
		}
	}
	return "", errors.Join(err, errors.New("the user has one group"))
}

func changeTimes(s stage) (string, error) {
	return "", os.Chtimes(victimFile(s), time.Unix(1, 0), time.Unix(1, 0))
}

func setAttribute(s stage) (string, error) {
	return "", unix.Setxattr(victimFile(s), "user.attacked", []byte("x"), 0)
}

// signal sends a signal that does nothing to a process that runs: the kernel asks the same
// for each signal.
func signalTo(pid int) (string, error) { return permittedCall, unix.Kill(pid, unix.SIGCONT) }

func signalRunner(s stage) (string, error) { return signalTo(s.Runner) }
func signalBroker(s stage) (string, error) { return signalTo(s.Broker) }

// trace seizes a process without stopping it, and lets it go with this one's end.
func trace(pid int) (string, error) { return permittedCall, unix.PtraceSeize(pid) }

func traceRunner(s stage) (string, error) { return trace(s.Runner) }
func traceBroker(s stage) (string, error) { return trace(s.Broker) }

// open opens a file of a process and, where it is to be read, reads a byte.
func open(pid int, name string, flags int) (string, error) {
	file, err := os.OpenFile(fmt.Sprintf("/proc/%d/%s", pid, name), flags, 0)
	if err != nil {
		return "", err
	}
	defer file.Close()
	if name == "environ" {
		_, err = file.Read(make([]byte, 1))
	}
	return permittedCall, err
}

func openBrokerMemory(s stage) (string, error)      { return open(s.Broker, "mem", os.O_WRONLY) }
func readRunnerMemory(s stage) (string, error)      { return open(s.Runner, "mem", os.O_RDONLY) }
func readRunnerEnvironment(s stage) (string, error) { return open(s.Runner, "environ", os.O_RDONLY) }

func readBrokerEnvironment(s stage) (string, error) { return open(s.Broker, "environ", os.O_RDONLY) }
func readToken(s stage) (string, error)             { return read(s.Home, "token") }
func readLaunchSecret(s stage) (string, error)      { return read(s.Home, "launch-secret") }
func readDatabase(s stage) (string, error)          { return read(s.Home, "bridge.db") }
func readKey(s stage) (string, error)               { return read(s.User, ".ssh/id_ed25519") }
func readOtherProject(s stage) (string, error)      { return read(s.User, "other/secret.go") }

// read returns the beginning of a file.
func read(folder, name string) (string, error) {
	data, err := os.ReadFile(filepath.Join(folder, name))
	return strings.TrimSpace(string(data[:min(len(data), 60)])), err
}

// writeState returns the attack that changes files below the owner's home folder: it
// appends to each, lays a file and a link beside it, and renames it.
func writeState(files ...string) func(stage) (string, error) {
	return func(s stage) (string, error) {
		var errs []error
		for _, name := range files {
			path := filepath.Join(s.User, name)
			errs = append(errs, write(path, os.O_APPEND, "x"), write(path+".new", os.O_CREATE, "x"), os.Symlink("/etc/passwd", path+".link"), os.Rename(path, path+".moved"))
		}
		return "", errors.Join(errs...)
	}
}
