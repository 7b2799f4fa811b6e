package proc

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// EndAllBelow waits until no process is left below this one, which has to be the parent of
// orphans (PR_SET_CHILD_SUBREAPER), and takes leave of each as it ends. After grace it ends
// those that are left. What it returns names them by id and command line, a line each
// behind the first; it is "" where there were none.
func EndAllBelow(grace time.Duration) string {
	if ended := endAllBelow(grace); len(ended) > 0 {
		return fmt.Sprintf("left behind: %d processes\n\t%s\n", len(ended), strings.Join(ended, "\n\t"))
	}
	return ""
}

func endAllBelow(grace time.Duration) (ended []string) {
	for late := time.After(grace); ; {
		switch pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); {
		case errors.Is(err, unix.ECHILD): // and who has no children has nobody below
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
			for _, one := range found {
				ended = append(ended, fmt.Sprintf("%d: %s", one.PID, commandLine(one.PID)))
				_ = unix.Kill(one.PID, unix.SIGKILL) // it may have ended by itself
			}
			late = time.After(time.Second) // for those that they start meanwhile
		}
	}
}

// commandLine is what a process was started with.
func commandLine(pid int) string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it may have ended
	return strings.ReplaceAll(strings.TrimRight(string(line), "\x00"), "\x00", " ")
}
