// Package proc starts processes that outlive their starter, and recognizes a
// process even if its id was reused. It finds the processes above and below a
// process, and ends whole process trees.
package proc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// ErrGone reports that no such process runs.
var ErrGone = errors.New("no such process")

// Process is one line of the system's process list.
type Process struct {
	PID    int
	Parent int    // 0 if the system does not report it
	Name   string // the program's short name as the system shows it
	// start orders the processes of one boot by their start; 0 means unknown.
	start   uint64
	group   int // process group; 0 if there is none
	session int // session; 0 if unknown
}

// Command describes a process to be started independently of this one.
type Command struct {
	Path string   // absolute path of the program
	Args []string // without the program's own name
	Env  []string // NAME=value; nil inherits this process's environment
	Dir  string   // working folder; empty means this process's
	// LogFile receives standard output and error, appended; a missing folder is
	// created. Empty discards both.
	LogFile string
	// LowPriority gives the process the lowest CPU priority.
	LowPriority bool
}

// Detached is a process that was started independently of this one.
type Detached struct {
	PID  int
	done chan struct{}
}

// Done is closed when the process has ended, if this process still runs.
func (d *Detached) Done() <-chan struct{} { return d.done }

// StartDetached starts command in its own session, without a terminal or console window and
// without this process's handles. It survives the end of this process, its terminal and its
// process group. It fails if the log cannot be opened or the program cannot start.
func StartDetached(command Command) (*Detached, error) {
	output, err := openLog(command.LogFile)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Path, err)
	}
	defer output.Close()
	cmd, err := start(command, output)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Path, err)
	}
	started := &Detached{PID: cmd.Process.Pid, done: make(chan struct{})}
	go func() {
		// Wait collects the exit status; without it, an ended process would look
		// alive while this process runs. The log shows how it ended.
		_ = cmd.Wait()
		close(started.done)
	}()
	return started, nil
}

// cmd returns command for os/exec. It uses no caller's context, because the process
// must outlive the caller.
func (c Command) cmd(output *os.File) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), c.Path, c.Args...)
	cmd.Env, cmd.Dir = c.Env, c.Dir
	cmd.Stdout, cmd.Stderr = output, output
	return cmd
}

func openLog(path string) (*os.File, error) {
	if path == "" {
		return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}

// Alive reports whether process pid runs. An ended process that its parent has not
// collected does not run.
func Alive(pid int) bool {
	_, err := find(pid)
	return err == nil
}

// Identity returns a permanent name of process pid: "<boot id>:<start time>". A
// later process with the same id has another identity, also after a reboot. On a
// system without a boot id, the first part is "-" and the start is a calendar time.
// It fails with ErrGone if pid does not run.
func Identity(pid int) (string, error) {
	process, err := find(pid)
	if err != nil {
		return "", fmt.Errorf("identity of process %d: %w", pid, err)
	}
	if process.start == 0 {
		return "", fmt.Errorf("identity of process %d: this system does not tell its start: %w", pid, errors.ErrUnsupported)
	}
	boot, err := bootID()
	if err != nil {
		return "", fmt.Errorf("identity of process %d: %w", pid, err)
	}
	return fmt.Sprintf("%s:%d", boot, process.start), nil
}

// Started returns the start time of process pid, to the second. It fails with [ErrGone]
// if pid does not run, and with errors.ErrUnsupported if the system does not report it.
func Started(pid int) (time.Time, error) {
	process, err := find(pid)
	if err == nil && process.start == 0 {
		err = errors.ErrUnsupported
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("start of process %d: %w", pid, err)
	}
	return calendar(process.start)
}

// Ancestors returns at most limit processes above pid, nearest first. It stops
// early if the system does not report a parent.
func Ancestors(pid, limit int) []Process {
	above, _ := Chain(pid, limit) // the part that is known
	return above
}

// chainReads bounds how often a changing chain of parents is read again.
const chainReads = 16

// errChanged reports that a parent ended while a chain was read.
var errChanged = errors.New("its parents end while Bridge looks at them")

// Chain returns at most limit processes above pid, nearest first. It fails with
// [ErrGone] if pid does not run, or if parents keep ending while it reads. Their
// children then get other parents, and the chain would be wrong.
func Chain(pid, limit int) (above []Process, err error) {
	for range chainReads {
		if above, err = readChain(pid, limit); !errors.Is(err, errChanged) {
			break
		}
	}
	if err != nil {
		return above, fmt.Errorf("processes above %d: %w", pid, errors.Join(ErrGone, err))
	}
	return above, nil
}

// readChain reads the chain once. It fails with errChanged if a parent has ended,
// or if its id was reused.
func readChain(pid, limit int) (above []Process, err error) {
	child, err := find(pid)
	for err == nil && len(above) < limit && child.Parent > 0 {
		parent, parentErr := find(child.Parent)
		if parentErr == nil && parent.start <= child.start {
			above, child = append(above, parent), parent
			continue
		}
		if keepsParent || parentErr != nil && isUnseen(child) {
			return above, nil
		}
		return above, errChanged
	}
	return above, err
}

// isUnseen reports whether the system hides the parent of a process. A hidden
// parent stays the parent; an ended one does not.
func isUnseen(child Process) bool {
	now, err := find(child.PID)
	return err == nil && now.start == child.start && now.Parent == child.Parent
}

// Children returns the running processes whose parent is pid, including adopted
// orphans. It fails with [ErrGone] if pid does not run.
func Children(pid int) ([]Process, error) {
	parent, err := find(pid)
	if err != nil {
		return nil, fmt.Errorf("children of process %d: %w", pid, err)
	}
	all, err := list()
	if err != nil {
		return nil, fmt.Errorf("children of process %d: %w", pid, err)
	}
	return slices.DeleteFunc(all, func(p Process) bool { return p.Parent != pid || p.start < parent.start }), nil
}

// Below returns all descendants of pid from one read of the process list. It fails
// with [ErrGone] if pid does not run.
func Below(pid int) ([]Process, error) {
	if _, err := find(pid); err != nil {
		return nil, fmt.Errorf("processes below %d: %w", pid, err)
	}
	below, err := BelowEach([]int{pid})
	return below[pid], err
}

// BelowEach returns the descendants of several processes from one read of the process
// list. A process that does not run has no entry. It fails if the list is unreadable.
func BelowEach(pids []int) (map[int][]Process, error) {
	all, err := list()
	if err != nil {
		return nil, fmt.Errorf("processes below %v: %w", pids, err)
	}
	children := map[int][]Process{}
	for _, process := range all {
		children[process.Parent] = append(children[process.Parent], process)
	}
	below := map[int][]Process{}
	for _, process := range all {
		if slices.Contains(pids, process.PID) {
			below[process.PID] = belowRoot(process, children)
		}
	}
	return below, nil
}

func belowRoot(root Process, children map[int][]Process) []Process {
	below := []Process{root}
	for i := 0; i < len(below); i++ {
		for _, child := range children[below[i].PID] {
			if child.start >= below[i].start && child.PID != root.PID {
				below = append(below, child)
			}
		}
	}
	return below[1:]
}

// maxRounds bounds the reads of the process list in KillTree. Each read finds at
// least one generation started since the previous read.
const maxRounds = 20

// maxAncestors is larger than any real chain of processes.
const maxAncestors = 64

// KillTree ends process pid and its descendants. On Unix it also ends pid's process
// group and session, even after pid has ended. A descendant that left both and
// whose parent has ended looks like a foreign process and keeps running. All ends
// are requested on return; a pid without processes is not an error. If pid comes
// from a file, compare its Identity first. It fails for this process and its
// ancestors.
func KillTree(pid int) error {
	if err := checkTarget(pid); err != nil {
		return fmt.Errorf("end process tree %d: %w", pid, err)
	}
	members := map[int]Process{}
	root, err := find(pid)
	switch {
	case err == nil:
		members[pid] = root
	case !errors.Is(err, ErrGone):
		return fmt.Errorf("end process tree %d: %w", pid, err)
	}
	// The found processes are ended even if the search for the others failed.
	if err := errors.Join(holdTree(pid, members), killAll(members)); err != nil {
		return fmt.Errorf("end process tree %d: %w", pid, err)
	}
	return nil
}

// checkTarget fails for ids with a special meaning to the system, for this process,
// and for its ancestors.
func checkTarget(pid int) error {
	if pid <= 1 || pid == os.Getpid() {
		return errors.New("it is not ours to end")
	}
	for _, above := range Ancestors(os.Getpid(), maxAncestors) {
		if above.PID == pid {
			return errors.New("this process is part of it")
		}
	}
	return nil
}

// holdTree adds every process of the tree of root to members, and holds each. A
// held process cannot start another. It also cannot end, which would leave children
// without their known parent.
func holdTree(root int, members map[int]Process) error {
	added := slices.Collect(maps.Values(members))
	for range maxRounds {
		for _, process := range added {
			if err := hold(process.PID); err != nil && !errors.Is(err, ErrGone) {
				return fmt.Errorf("hold process %d: %w", process.PID, err)
			}
		}
		all, err := list()
		if err != nil {
			return err
		}
		if added = grow(root, members, all); len(added) == 0 {
			return nil
		}
	}
	return errors.New("it keeps starting processes")
}

// grow adds the processes of all that belong to the tree to members, and returns them.
func grow(root int, members map[int]Process, all []Process) []Process {
	var added []Process
	for {
		before := len(added)
		for _, process := range all {
			_, known := members[process.PID]
			if known || process.PID == os.Getpid() || !belongs(process, root, members) {
				continue
			}
			members[process.PID] = process
			added = append(added, process)
		}
		if len(added) == before {
			return added
		}
	}
}

func belongs(process Process, root int, members map[int]Process) bool {
	if process.group == root || process.session == root {
		return true
	}
	parent, isChild := members[process.Parent]
	return isChild && process.start >= parent.start
}

func killAll(members map[int]Process) error {
	var failed error
	for pid := range members {
		if err := kill(pid); err != nil && !errors.Is(err, ErrGone) {
			failed = errors.Join(failed, fmt.Errorf("end process %d: %w", pid, err))
		}
	}
	return failed
}
