package proc

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// InTerminals returns this user's processes that have a terminal and that match accepts. It
// omits processes that end meanwhile. It fails if the process list is unreadable.
func InTerminals(match func(Process) bool) ([]InTerminal, error) {
	all, err := list()
	if err != nil {
		return nil, err
	}
	var found []InTerminal
	for _, process := range all {
		if !match(process) {
			continue
		}
		look, err := Inspect(process.PID)
		if err != nil || !look.Terminal {
			continue
		}
		folder := filepath.Join("/proc", strconv.Itoa(process.PID))
		cwd, err := os.Readlink(filepath.Join(folder, "cwd"))
		if err != nil {
			continue
		}
		found = append(found, InTerminal{Process: process, Named: Name(process.PID), Cwd: cwd, Environ: look.Environ, Read: readAt(filepath.Join(folder, "fd", "0"))})
	}
	return found, nil
}

// readAt returns the last read time of a terminal, within [ReadStep], or the zero
// time for another file.
func readAt(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return time.Time{}
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Time{}
	}
	return time.Unix(stat.Atim.Unix())
}
