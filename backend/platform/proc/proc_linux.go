package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// keepsParent reports whether a process keeps the id of an ended parent.
const keepsParent = false

// find reads one line of the process list. It fails with [ErrGone] for an ended,
// uncollected process. A process still runs if only its first thread has ended.
func find(pid int) (Process, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return Process{}, ErrGone
	}
	if err != nil {
		return Process{}, err
	}
	process, err := parseStat(string(data))
	if errors.Is(err, ErrGone) && hasThreads(pid) {
		err = nil
	}
	return process, err
}

// hasThreads reports whether a process has threads other than its first one.
func hasThreads(pid int) bool {
	threads, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	return err == nil && len(threads) > 1
}

func list() ([]Process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var all []Process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		process, err := find(pid)
		if errors.Is(err, ErrGone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, process)
	}
	return all, nil
}

// The fields of /proc/PID/stat after the name, counted from the state. In proc(5),
// which counts from 1, the state is field 3.
const (
	statState    = 0
	statParent   = 1
	statGroup    = 2
	statSession  = 3
	statTerminal = 4
	statStart    = 19
)

// parseStat parses `PID (name) state parent group session ...`. The name may
// contain spaces and parentheses; the last closing one ends it. It fails with
// [ErrGone] if the first thread has ended.
func parseStat(line string) (Process, error) {
	open, end := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return Process{}, fmt.Errorf("unexpected process line %q", line)
	}
	fields := strings.Fields(line[end+1:])
	if len(fields) <= statStart {
		return Process{}, fmt.Errorf("unexpected process line %q", line)
	}
	pid, pidErr := strconv.Atoi(strings.TrimSpace(line[:open]))
	parent, parentErr := strconv.Atoi(fields[statParent])
	group, groupErr := strconv.Atoi(fields[statGroup])
	session, sessionErr := strconv.Atoi(fields[statSession])
	start, startErr := strconv.ParseUint(fields[statStart], 10, 64)
	if err := errors.Join(pidErr, parentErr, groupErr, sessionErr, startErr); err != nil {
		return Process{}, fmt.Errorf("unexpected process line %q: %w", line, err)
	}
	process := Process{PID: pid, Parent: parent, Name: line[open+1 : end], start: start, group: group, session: session}
	if state := fields[statState]; state == "Z" || state == "X" {
		return process, ErrGone
	}
	return process, nil
}

func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(id)), nil
}

// ticksPerSecond is the unit of process start times; Linux uses the same one for
// all programs.
const ticksPerSecond = 100

// calendar converts a start, in ticks since the boot, into a time.
func calendar(start uint64) (time.Time, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return time.Time{}, err
	}
	for line := range strings.Lines(string(stat)) {
		if seconds, ok := strings.CutPrefix(strings.TrimSpace(line), "btime "); ok {
			boot, err := strconv.ParseInt(seconds, 10, 64)
			return time.Unix(boot, 0).Add(time.Duration(start) * time.Second / ticksPerSecond), err
		}
	}
	return time.Time{}, errors.ErrUnsupported
}
