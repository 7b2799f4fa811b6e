package scripted

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/proc"
)

// insideVar marks the process that runs inside the namespaces. It names those of its parent.
const insideVar = "BRIDGE_ISOLATED"

// keptVar lists more paths below /tmp that stay visible inside.
const keptVar = "BRIDGE_KEPT_BELOW_TMP"

// ownNamespaces are the kinds of namespaces in which the process inside is not its parent's.
var ownNamespaces = []string{"net", "mnt"}

// namespace returns the name of the namespace that this process is in.
func namespace(kind string) (string, error) { return os.Readlink("/proc/self/ns/" + kind) }

// namespaces returns the names of the namespaces that this process is in.
func namespaces() (string, error) {
	var names []string
	for _, kind := range ownNamespaces {
		name, err := namespace(kind)
		if err != nil {
			return "", fmt.Errorf("naming a namespace: %w", err)
		}
		names = append(names, name)
	}
	return strings.Join(names, " "), nil
}

// checkApart fails with Denied if this process is in a namespace of its parent.
func checkApart() error {
	outside := strings.Fields(os.Getenv(insideVar))
	for _, kind := range ownNamespaces {
		name, err := namespace(kind)
		if err != nil || len(outside) != len(ownNamespaces) || slices.Contains(outside, name) {
			return bridge.Errorf(bridge.Denied, "this process is in no %s namespace of its own", kind)
		}
	}
	return nil
}

// Isolated reports whether this process was started by Isolate. After Enter nothing that
// it starts can reach beyond its loopback, or sees the machine's /tmp.
func Isolated() bool { return os.Getenv(insideVar) != "" }

// Isolation is one run of this program in namespaces of its own.
type Isolation struct {
	Args           []string // of the program, without its name
	Keep           []string // paths that stay visible if they are below /tmp
	Stdout, Stderr io.Writer
}

// Isolate runs this same program again, in a network namespace that holds nothing but a
// loopback and in a mount namespace whose /tmp will be a temporary folder of its own, and
// returns its exit code, which is below 0 if it was ended. The end of ctx ends it. When it
// ends, however it ends, every process that it left behind is killed by its id, and the
// folder is removed. left names what it leaves when it ends by itself. It fails if the
// system does not permit namespaces.
func Isolate(ctx context.Context, run Isolation) (code int, left string, err error) {
	dir, err := temporary()
	if err != nil {
		return 0, "", err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // whoever might still write there has been killed
	runtime.LockOSThread()  // Pdeathsig follows the thread
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, "", fmt.Errorf("becoming the parent of orphans: %w", err)
	}
	outside, err := namespaces()
	if err != nil {
		return 0, "", err
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", run.Args...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), keptVar+"="+strings.Join(run.Keep, string(filepath.ListSeparator)), insideVar+"="+outside, "TMPDIR="+dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, run.Stdout, run.Stderr
	cmd.WaitDelay = time.Second // a process that it left may hold its output open
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	if err := cmd.Start(); err != nil {
		return 0, "", fmt.Errorf("making namespaces: %w", err)
	}
	err = cmd.Wait()
	grace := lastGrace
	if cmd.ProcessState.ExitCode() < 0 { // it was ended, and could not tidy up
		grace = 0
	}
	left = proc.EndAllBelow(grace)
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed && ctx.Err() == nil && !errors.Is(err, exec.ErrWaitDelay) {
		return 0, "", fmt.Errorf("running in namespaces: %w", err)
	}
	code = cmd.ProcessState.ExitCode()
	if code < 0 {
		left = ""
	}
	return code, left, nil
}

// lastGrace is how long what is about to end may take for that.
const lastGrace = 10 * time.Second

// maxTemporary is the most bytes in the name of a folder for homes that leaves
// enough for the names of the sockets in them: 107 is what the system allows.
const maxTemporary = 50

// temporary makes the folder for all that the run makes. It is never within a folder of
// /tmp: that may be one that stays visible, and would then hold itself, which codex's
// sandbox fails at.
func temporary() (string, error) {
	parent := os.TempDir()
	if len(parent) > maxTemporary-len("/cli0123456789") || strings.HasPrefix(filepath.Clean(parent), "/tmp/") {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, "cli")
	if err != nil {
		return "", fmt.Errorf("making a temporary folder: %w", err)
	}
	return dir, nil
}

// Enter makes the namespaces of Isolate ready: with a /tmp of its own and with a
// loopback. The one who was started by Isolate does it first of all. It fails with Denied,
// and does nothing, if Isolate did not start it.
func Enter() error {
	if err := errors.Join(checkApart(), CheckAlone()); err != nil {
		return err
	}
	if err := ownTemporary(os.Getenv("TMPDIR")); err != nil {
		return fmt.Errorf("making a /tmp of its own: %w", err)
	}
	return raiseLoopback()
}

// CheckAlone fails with Denied if a network of this process is up, other than a loopback.
// A new namespace may have tunnels that are down.
func CheckAlone() error {
	all, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("listing the networks: %w", err)
	}
	for _, item := range all {
		if item.Flags&net.FlagUp != 0 && item.Flags&net.FlagLoopback == 0 {
			return bridge.Errorf(bridge.Denied, "this process has the network %s, so it is in no namespace of its own", item.Name)
		}
	}
	return nil
}

// ownTemporary puts dir in the place of /tmp. The CLIs have fixed names there, in
// folders that belong to whoever came first: within a user namespace everybody is
// root, and what the machine's root left there is not theirs. What this run was
// started with stays where it is.
func ownTemporary(dir string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keeping mounts to itself: %w", err)
	}
	for _, name := range keptOfTemporary() {
		from, to := filepath.Join("/tmp", name), filepath.Join(dir, name)
		info, err := os.Stat(from)
		if err != nil {
			continue
		}
		if info.IsDir() {
			err = os.Mkdir(to, 0o700)
		} else {
			err = os.WriteFile(to, nil, 0o600)
		}
		if err != nil {
			return err
		}
		if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("keeping %s: %w", from, err)
		}
	}
	if err := unix.Mount(dir, "/tmp", "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	return os.Setenv("TMPDIR", "/tmp")
}

// keptOfTemporary names what of /tmp this run was started with: its program, its
// working folder, and what its environment says of Bridge and Go.
func keptOfTemporary() []string {
	program, _ := os.Executable()
	folder, _ := os.Getwd()
	paths := append([]string{program, folder, os.Getenv("HOME")}, filepath.SplitList(os.Getenv("PATH"))...)
	paths = append(paths, filepath.SplitList(os.Getenv(keptVar))...)
	for _, pair := range os.Environ() {
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "BRIDGE_") || strings.HasPrefix(name, "GO") {
			paths = append(paths, value)
		}
	}
	var names []string
	for _, path := range paths {
		within, ok := strings.CutPrefix(filepath.Clean(path), "/tmp/")
		name, _, _ := strings.Cut(within, "/")
		if ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// raiseLoopback brings up the loopback of a fresh namespace.
func raiseLoopback() error {
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
