package sandbox

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cgroupPrefix is the name prefix of the control groups of jobs.
const cgroupPrefix = "bridge-"

// nameBytes is the length of the hash in a control group's name, long enough to
// exclude accidental matches.
const nameBytes = 10

// hash returns a hash of the mark alone. It does not reveal the secret.
func (m Mark) hash() [sha256.Size]byte {
	return sha256.Sum256([]byte(m.Job + "\x00" + m.Token))
}

// isWhole reports whether the mark names one run: half a mark would match other processes.
func (m Mark) isWhole() bool { return m.Job != "" && m.Token != "" }

// cgroupName returns the name of the control group of the mark's run.
func (m Mark) cgroupName() string {
	hash := m.hash()
	return cgroupPrefix + m.Job + "-" + hex.EncodeToString(hash[:nameBytes])
}

// cgroups holds the control groups that this process has made, by the marks of
// their runs. StartLeader starts a run's agent in its group.
var cgroups = struct {
	mu   sync.Mutex
	open map[Mark]*os.File
}{open: map[Mark]*os.File{}}

// PlanCgroup returns the path of the control group that MakeCgroup would make for
// the mark's run. It returns "" without cgroup v2, or if this process's group is
// not writable.
func PlanCgroup(mark Mark) string {
	if !mark.isWhole() {
		return ""
	}
	parent, err := ownCgroup()
	if err != nil {
		return ""
	}
	// Moving a process requires both files (cgroups(7), delegation).
	if errors.Join(unix.Access(parent, unix.W_OK), unix.Access(filepath.Join(parent, procsFile), unix.W_OK)) != nil {
		return ""
	}
	return filepath.Join(parent, mark.cgroupName())
}

// MakeCgroup makes the control group mark.Cgroup, in which StartLeader then starts the agent.
// maxProcesses bounds its processes and threads if the group has pids.max; 0 sets no bound. It
// fails with [ErrUnavailable] if mark names no group or the group can hold no processes.
func MakeCgroup(mark Mark, maxProcesses int) error {
	if mark.Cgroup == "" {
		return fmt.Errorf("make a control group for job %s: %w", mark.Job, ErrUnavailable)
	}
	if err := os.Mkdir(mark.Cgroup, 0o700); err != nil {
		return fmt.Errorf("make a control group for job %s: %w", mark.Job, err)
	}
	folder, err := prepareCgroup(mark.Cgroup, maxProcesses)
	if err != nil {
		_ = os.Remove(mark.Cgroup) // the group is empty
		return fmt.Errorf("make a control group for job %s: %w", mark.Job, err)
	}
	cgroups.mu.Lock()
	defer cgroups.mu.Unlock()
	cgroups.open[mark.run()] = folder
	return nil
}

// prepareCgroup sets the bound of a new control group and opens it. It fails with
// [ErrUnavailable] if the group cannot hold processes.
func prepareCgroup(path string, maxProcesses int) (*os.File, error) {
	kind, err := os.ReadFile(filepath.Join(path, "cgroup.type"))
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(string(kind)) != "domain" {
		return nil, fmt.Errorf("the group is %q: %w", strings.TrimSpace(string(kind)), ErrUnavailable)
	}
	if maxProcesses > 0 {
		if err := boundProcesses(path, maxProcesses); err != nil {
			return nil, err
		}
	}
	return os.Open(path)
}

// boundProcesses writes pids.max. A control group without the pids controller has
// no such file and no bound.
func boundProcesses(path string, most int) error {
	file, err := os.OpenFile(filepath.Join(path, "pids.max"), os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = file.WriteString(strconv.Itoa(most))
	return errors.Join(err, file.Close())
}

// run returns the mark without the fields that can differ for the same run.
func (m Mark) run() Mark { return Mark{Job: m.Job, Token: m.Token} }

// HasCgroup reports whether a process is in the control group of the mark's run.
func HasCgroup(mark Mark, pid int) bool { return isInCgroup(pid, mark) }

// isInCgroup reports whether a process is in the control group of a run, or in one below it.
func isInCgroup(pid int, mark Mark) bool {
	if !mark.isWhole() {
		return false
	}
	path, err := cgroupOf(pid)
	return err == nil && slices.Contains(strings.Split(path, "/"), mark.cgroupName())
}

// startMarked starts cmd with the marks of the run that its environment names: in
// the run's control group, and with the run's resource limit. Usually both are set
// before the program starts. A kernel before 5.7 puts no new process into a group.
// If tracing is forbidden (Yama), the limit follows a moment later. It starts a cmd
// without a mark unchanged. cmd must have no pipes (StdinPipe) and no context that
// ends: neither survives a failed start.
func startMarked(cmd *exec.Cmd) error {
	mark := markIn(cmd.Env)
	if !mark.isWhole() {
		return cmd.Start()
	}
	cgroups.mu.Lock()
	group := cgroups.open[mark]
	cgroups.mu.Unlock()
	runtime.LockOSThread() // only the thread that starts a process can trace it
	defer runtime.UnlockOSThread()
	plain := attributesOf(cmd)
	tries := []syscall.SysProcAttr{traced(plain), plain}
	if group != nil {
		tries = append([]syscall.SysProcAttr{traced(inside(plain, group)), inside(plain, group)}, tries...)
	}
	var err error
	for _, attributes := range tries {
		retry := remade(cmd) // a command that failed to start cannot be started again
		cmd.SysProcAttr = &attributes
		if err = cmd.Start(); err == nil {
			letGo(cmd.Process.Pid, attributes.Ptrace, mark)
			return nil
		}
		*cmd = *retry
	}
	return err
}

func attributesOf(cmd *exec.Cmd) syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		return syscall.SysProcAttr{}
	}
	return *cmd.SysProcAttr
}

func traced(attributes syscall.SysProcAttr) syscall.SysProcAttr {
	attributes.Ptrace = true
	return attributes
}

func inside(attributes syscall.SysProcAttr, group *os.File) syscall.SysProcAttr {
	attributes.UseCgroupFD, attributes.CgroupFD = true, int(group.Fd())
	return attributes
}

// remade returns an unstarted command that does the same as cmd.
func remade(cmd *exec.Cmd) *exec.Cmd {
	return &exec.Cmd{
		Path: cmd.Path, Args: cmd.Args, Env: cmd.Env, Dir: cmd.Dir, Stdin: cmd.Stdin, Stdout: cmd.Stdout, Stderr: cmd.Stderr,
		ExtraFiles: cmd.ExtraFiles, SysProcAttr: cmd.SysProcAttr, WaitDelay: cmd.WaitDelay, Err: cmd.Err,
	}
}

// letGo sets the limit of a run's process. A traced process has stopped before the
// first instruction of its program, and then continues.
func letGo(pid int, isTraced bool, mark Mark) {
	for stopped := !isTraced; !stopped; { // if it was killed before, its waiter handles the exit status
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		stopped = !errors.Is(err, unix.EINTR)
	}
	setLimit(pid, mark)
	if isTraced {
		_ = unix.PtraceDetach(pid) // it may have been killed meanwhile
	}
}

// markIn returns the mark in an environment; the last value of a variable counts.
func markIn(environ []string) (mark Mark) {
	for _, pair := range environ {
		switch name, value, _ := strings.Cut(pair, "="); name {
		case JobVariable:
			mark.Job = value
		case TokenVariable:
			mark.Token = value
		}
	}
	return mark
}

const (
	procsFile = "cgroup.procs"
	killFile  = "cgroup.kill" // since kernel 5.14
)

// cgroupPath returns the path of the existing control group of a run, or "". It tries
// the path that the runner recorded, and one next to this process's own group.
func cgroupPath(mark Mark) string {
	if !mark.isWhole() {
		return ""
	}
	for _, path := range []string{mark.Cgroup, PlanCgroup(mark)} {
		if isCgroup(path) && filepath.Base(path) == mark.cgroupName() {
			return path
		}
	}
	return ""
}

func isCgroup(path string) bool {
	var stat unix.Statfs_t
	return path != "" && unix.Statfs(path, &stat) == nil && stat.Type == unix.CGROUP2_SUPER_MAGIC
}

// inCgroup returns the processes in the control group of a run and in the groups below it.
func inCgroup(mark Mark) ([]int, error) {
	top := cgroupPath(mark)
	if top == "" {
		return nil, nil
	}
	var pids []int
	err := eachCgroup(top, func(path string) error {
		data, err := os.ReadFile(filepath.Join(path, procsFile))
		for field := range strings.FieldsSeq(string(data)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 0 { // 0 is a process that this one cannot name
				pids = append(pids, pid)
			}
		}
		return err
	})
	return pids, err
}

// eachCgroup calls do with a control group and all below it, those below first. It
// skips a group that is removed meanwhile.
func eachCgroup(top string, do func(path string) error) error {
	entries, err := os.ReadDir(top)
	for _, entry := range entries {
		if entry.IsDir() {
			err = errors.Join(err, eachCgroup(filepath.Join(top, entry.Name()), do))
		}
	}
	err = errors.Join(err, do(top))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

// killCgroup kills every process in the control group of a run at once, if the
// kernel supports it (5.14). It does nothing if this process is in the group, or if
// there is no group: End then ends the processes one by one.
func killCgroup(mark Mark) error {
	top := cgroupPath(mark)
	if top == "" || isInCgroup(os.Getpid(), mark) {
		return nil
	}
	file, err := os.OpenFile(filepath.Join(top, killFile), os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("end the control group of job %s: %w", mark.Job, err)
	}
	_, err = file.WriteString("1")
	return errors.Join(err, file.Close())
}

// removeLooks is how often the removal of a control group is tried: a killed
// process leaves it a moment later.
const removeLooks = 50

// RemoveCgroup removes the control group of a run, if it exists. It fails if
// processes are in it.
func RemoveCgroup(mark Mark) error {
	cgroups.mu.Lock()
	if folder := cgroups.open[mark.run()]; folder != nil {
		_ = folder.Close() // it was only read
		delete(cgroups.open, mark.run())
	}
	cgroups.mu.Unlock()
	for look := 1; ; look++ {
		top := cgroupPath(mark)
		if top == "" {
			return nil
		}
		err := eachCgroup(top, os.Remove)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EBUSY) || look == removeLooks:
			return fmt.Errorf("remove the control group of job %s: %w", mark.Job, err)
		}
		<-time.After(pause)
	}
}

// ownCgroup returns the path of this process's control group (v2). It fails if
// there is none, or if the path does not contain this process.
func ownCgroup() (string, error) {
	name, err := cgroupOf(os.Getpid())
	if err != nil {
		return "", err
	}
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	defer mounts.Close()
	path, err := findCgroup(bufio.NewScanner(mounts), name)
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile(filepath.Join(path, procsFile))
	if err == nil && !slices.Contains(strings.Fields(string(data)), strconv.Itoa(os.Getpid())) {
		err = fmt.Errorf("%s is not this process's control group: %w", path, ErrUnavailable)
	}
	return path, err
}

// The fields of /proc/PID/mountinfo (proc(5)). Optional fields follow, and after a
// dash the file system's type.
const (
	mountRoot   = 3
	mountPoint  = 4
	mountFields = 6
)

// findCgroup returns the folder of the control group name, from the first cgroup v2
// mount that shows it. A hybrid system also has v1 mounts.
func findCgroup(mounts *bufio.Scanner, name string) (string, error) {
	for mounts.Scan() {
		fields := strings.Fields(mounts.Text())
		dash := slices.Index(fields, "-")
		if dash < mountFields || len(fields) <= dash+1 || fields[dash+1] != "cgroup2" {
			continue
		}
		root := unescapeMount(fields[mountRoot])
		below, err := filepath.Rel(root, name)
		if err == nil && filepath.IsLocal(below) && !leadsOut(root) && !leadsOut(name) {
			return filepath.Join(unescapeMount(fields[mountPoint]), below), nil
		}
	}
	return "", fmt.Errorf("no mount shows the control group %s: %w", name, cmp.Or(mounts.Err(), ErrUnavailable))
}

// leadsOut reports whether a path is outside of this process's cgroup namespace
// (cgroup_namespaces(7)): no local folder matches it.
func leadsOut(path string) bool { return slices.Contains(strings.Split(path, "/"), "..") }

// unescapeMount decodes a path of /proc/PID/mountinfo.
func unescapeMount(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

// cgroupOf returns the name of a process's control group (v2).
func cgroupOf(pid int) (string, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(data)) {
		if name, ok := strings.CutPrefix(line, "0::"); ok {
			return strings.TrimSuffix(name, "\n"), nil
		}
	}
	return "", fmt.Errorf("process %d is in no control group of v2: %w", pid, ErrUnavailable)
}
