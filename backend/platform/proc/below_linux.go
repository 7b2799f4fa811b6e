package proc

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"bridge/backend/core/bridge"
)

// EndAllBelow reaps the processes below this one until none is left; this process
// must be the parent of orphans (PR_SET_CHILD_SUBREAPER). After grace it kills the
// remaining ones. It returns a header line and one line for each killed process
// with id and command line, or "" if it killed none.
func EndAllBelow(grace time.Duration) string {
	if ended := endAllBelow(grace); len(ended) > 0 {
		return fmt.Sprintf("left behind: %s\n\t%s\n", bridge.Counted(len(ended), "process"), strings.Join(ended, "\n\t"))
	}
	return ""
}

func endAllBelow(grace time.Duration) (ended []string) {
	for late := time.After(grace); ; {
		switch pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); {
		case errors.Is(err, unix.ECHILD): // without children, no process is below this one
			return ended
		case pid > 0:
			continue
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-late:
			found, err := Below(os.Getpid())
			if err != nil {
				return append(ended, err.Error())
			}
			for _, process := range found {
				ended = append(ended, fmt.Sprintf("%d: %s", process.PID, commandLine(process.PID)))
				_ = unix.Kill(process.PID, unix.SIGKILL) // it may have ended already
			}
			late = time.After(time.Second) // for processes that they start meanwhile
		}
	}
}

// commandLine returns the command line with which a process was started.
func commandLine(pid int) string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // the process may have ended
	return strings.ReplaceAll(strings.TrimRight(string(line), "\x00"), "\x00", " ")
}
