package proc

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

const zombie = 5 // SZOMB of sys/proc.h

// keepsParent says that a process keeps the number of a parent that has ended.
const keepsParent = false

func find(pid int) (Process, error) {
	line, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if errors.Is(err, unix.EIO) || errors.Is(err, unix.ESRCH) {
		return Process{}, ErrGone // the answer of a missing pid is empty, which x/sys calls EIO
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

// fromKinfo gives the start in microseconds since 1970; the session's number is
// not in this list.
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
