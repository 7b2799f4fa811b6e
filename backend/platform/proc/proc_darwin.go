package proc

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

const zombie = 5 // SZOMB of sys/proc.h

// keepsParent reports whether a process keeps the id of an ended parent.
const keepsParent = false

func find(pid int) (Process, error) {
	line, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if errors.Is(err, unix.EIO) || errors.Is(err, unix.ESRCH) {
		return Process{}, ErrGone // a missing pid gives an empty answer, which x/sys reports as EIO
	}
	if err != nil {
		return Process{}, err
	}
	if line.Proc.P_stat == zombie {
		return Process{}, ErrGone
	}
	return fromKinfo(line), nil
}

func list() ([]Process, error) {
	lines, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	var all []Process
	for i := range lines {
		if lines[i].Proc.P_stat != zombie {
			all = append(all, fromKinfo(&lines[i]))
		}
	}
	return all, nil
}

// fromKinfo converts a line of the list. The start is in microseconds since 1970;
// the list has no session ids.
func fromKinfo(line *unix.KinfoProc) Process {
	started := line.Proc.P_starttime
	return Process{
		PID:    int(line.Proc.P_pid),
		Parent: int(line.Eproc.Ppid),
		Name:   unix.ByteSliceToString(line.Proc.P_comm[:]),
		start:  uint64(started.Sec)*1e6 + uint64(started.Usec),
		group:  int(line.Eproc.Pgid),
	}
}

func bootID() (string, error) { return unix.Sysctl("kern.bootsessionuuid") }

func calendar(start uint64) (time.Time, error) { return time.UnixMicro(int64(start)), nil }
