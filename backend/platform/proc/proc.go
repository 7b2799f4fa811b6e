// Package proc starts processes that outlive their starter, recognises a
// process again although its number was given to another one, finds the
// processes above and below it, and ends whole trees.
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
	Parent int    // 0 when the system does not tell
	Name   string // the program's short name as the system shows it
	// start orders processes of one boot by their start; 0 means unknown.
	start   uint64
	group   int // process group; 0 where there are none
	session int // session; 0 where unknown
}

// Command describes a process that is started apart from this one.
type Command struct {
	Path string   // absolute path of the program
	Args []string // without the program's own name
	Env  []string // NAME=value; nil passes this process's environment on
	Dir  string   // working folder; empty means this process's
	// LogFile receives standard output and error, appended; its folder is made
	// when missing. Empty discards them.
	LogFile string
	// LowPriority leaves the processor to everything else.
	LowPriority bool
}

// Detached is a process that was started apart from this one.
type Detached struct {
	PID  int
	done chan struct{}
}

// Done is closed when the process has ended, as long as this process lives.
func (d *Detached) Done() <-chan struct{} { return d.done }

// StartDetached starts command in a session of its own, without a terminal or
// console window and without any of this process's handles. It goes on when
// this process, its terminal or its process group ends.
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
		// Somebody has to collect the exit status, or a dead process would
		// look alive for as long as we live. How it ended is in its log.
		_ = cmd.Wait()
		close(started.done)
	}()
	return started, nil
}

// cmd returns command for os/exec. It has no context: the process is meant to
// outlive whoever asks for it.
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

// Alive reports whether process pid runs. One that has ended but was not
// collected by its parent yet does not run.
func Alive(pid int) bool {
	_, err := find(pid)
	return err == nil
}

// Identity names process pid for good: "<boot id>:<start time>". Another
// process that gets the same number later has another identity, also after a
// reboot. Where the system has no boot id the start time is the calendar's and
// the part before the colon is "-". ErrGone when pid does not run.
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

// Started tells when process pid began, as far as the system knows it: to the
// second. ErrGone when pid does not run.
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

// Ancestors returns the processes above pid, nearest first, at most limit of
// them. It ends early where the system does not tell further.
func Ancestors(pid, limit int) []Process {
	above, _ := Chain(pid, limit) // the part that is known
	return above
}

// chainReads bounds how often a chain of parents is read that changes meanwhile.
const chainReads = 16

// errChanged reports that a parent ended while a chain was read.
var errChanged = errors.New("its parents end while Bridge looks at them")

// Chain returns the processes above pid, nearest first, at most limit of them. It fails
// with [ErrGone] when pid does not run, and when parents keep ending while it reads: each
// process has another parent then, and the chain would be of nobody's.
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

// readChain is Chain by one reading. It fails with errChanged when a parent has ended, or
// its number was given to another process since.
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

// isUnseen reports whether the system does not show the parent of a process: it stays the
// parent, unlike one that has ended.
func isUnseen(child Process) bool {
	now, err := find(child.PID)
	return err == nil && now.start == child.start && now.Parent == child.Parent
}

// Children returns the processes that pid started, or was given when their own
// parent ended. One that has ended is not among them.
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

// Below returns the processes below pid: those that Children tells, theirs, and so on, as
// one look at the process list has them. It fails with [ErrGone] when pid does not run.
func Below(pid int) ([]Process, error) {
	if _, err := find(pid); err != nil {
		return nil, fmt.Errorf("processes below %d: %w", pid, err)
	}
	below, err := BelowEach([]int{pid})
	return below[pid], err
}

// BelowEach is Below for several processes, by one look at the process list. Of a process
// that does not run it returns nothing.
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

// maxRounds bounds the looks at the process list in KillTree; each look finds at
// least one generation that was started since the look before.
const maxRounds = 20

// maxAncestors is deeper than any real chain of processes.
const maxAncestors = 64

// KillTree ends process pid and everything below it: its descendants and, on
// Unix, whatever is in its process group or session, also after it has ended
// itself. A descendant that left both and whose parent has ended cannot be
// told from a stranger and is left alone. On return all of them have been told
// to end; a pid with nothing left is no error. Compare its Identity
// first when the pid was read from a file.
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
	// What was found is ended even when finding the rest went wrong.
	if err := errors.Join(holdTree(pid, members), killAll(members)); err != nil {
		return fmt.Errorf("end process tree %d: %w", pid, err)
	}
	return nil
}

// checkTarget refuses the numbers that mean other things to the system, this
// process, and those above it, whose trees it is part of.
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

// holdTree adds to members every process of the tree of root, and holds each so
// that it can neither start another nor end and leave its children without a
// parent to be known by.
func holdTree(root int, members map[int]Process) error {
	fresh := slices.Collect(maps.Values(members))
	for range maxRounds {
		for _, process := range fresh {
			if err := hold(process.PID); err != nil && !errors.Is(err, ErrGone) {
				return fmt.Errorf("hold process %d: %w", process.PID, err)
			}
		}
		all, err := list()
		if err != nil {
			return err
		}
		if fresh = grow(root, members, all); len(fresh) == 0 {
			return nil
		}
	}
	return errors.New("it keeps starting processes")
}

// grow adds to members those of all that belong to the tree and returns them.
func grow(root int, members map[int]Process, all []Process) []Process {
	var fresh []Process
	for {
		before := len(fresh)
		for _, process := range all {
			_, known := members[process.PID]
			if known || process.PID == os.Getpid() || !belongs(process, root, members) {
				continue
			}
			members[process.PID] = process
			fresh = append(fresh, process)
		}
		if len(fresh) == before {
			return fresh
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
