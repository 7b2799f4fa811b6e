package proc

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Named is a process with a permanent name. The system may reuse its id.
type Named struct {
	Name  string // "" if the system does not report it
	PID   int    // 0 if another program named it
	Since int64  // start time, Unix epoch milliseconds; 0 if unknown
}

// Name returns the process with that id and its name.
func Name(pid int) Named {
	identity, err := Identity(pid)
	if err != nil || pid <= 0 {
		return Named{PID: pid, Since: Began(pid)}
	}
	return Named{Name: nameOf(pid, identity), PID: pid, Since: Began(pid)}
}

// Known returns the process that another program named, or the process with the id if name is empty.
func Known(name string, pid int) Named {
	if name == "" {
		return Name(pid)
	}
	return Named{Name: name, Since: Began(pid)}
}

func nameOf(pid int, identity string) string { return fmt.Sprintf("%d:%s", pid, identity) }

// Ended reports whether the process has ended; false for a process that another program named.
func (p Named) Ended() bool {
	if p.PID <= 0 {
		return false
	}
	identity, err := Identity(p.PID)
	return errors.Is(err, ErrGone) || err == nil && p.Name != "" && p.Name != nameOf(p.PID, identity)
}

// Lives reports whether the process of that name still runs; false for a process of another system.
func Lives(name string) bool {
	id, _, _ := strings.Cut(name, ":")
	pid, err := strconv.Atoi(id)
	return err == nil && pid > 0 && Name(pid).Name == name
}

// startSlack is the precision of a system's process start times.
const startSlack = 2 * time.Second

// Began returns the earliest possible start of a process in Unix epoch
// milliseconds, or 0 if the system does not report it.
func Began(pid int) int64 {
	if pid <= 1 {
		return 0
	}
	at, err := Started(pid)
	if err != nil {
		return 0
	}
	return at.Add(-startSlack).UnixMilli()
}
