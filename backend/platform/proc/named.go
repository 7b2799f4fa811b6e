package proc

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Named is a process with a name for good: the system may give its id to another.
type Named struct {
	Name  string // "" where the system does not tell
	PID   int    // 0 where another program named it
	Since int64  // when it began, Unix epoch milliseconds; 0 for not known
}

// Name is the process with that id.
func Name(pid int) Named {
	identity, err := Identity(pid)
	if err != nil || pid <= 0 {
		return Named{PID: pid, Since: Began(pid)}
	}
	return Named{Name: nameOf(pid, identity), PID: pid, Since: Began(pid)}
}

// Known is the process that another program named, or else that with the id.
func Known(name string, pid int) Named {
	if name == "" {
		return Name(pid)
	}
	return Named{Name: name, Since: Began(pid)}
}

func nameOf(pid int, identity string) string { return fmt.Sprintf("%d:%s", pid, identity) }

// Ended reports whether the process is gone. One that another program named is not.
func (p Named) Ended() bool {
	if p.PID <= 0 {
		return false
	}
	identity, err := Identity(p.PID)
	return errors.Is(err, ErrGone) || err == nil && p.Name != "" && p.Name != nameOf(p.PID, identity)
}

// Lives reports whether the process of that name goes on; one of another system does not.
func Lives(name string) bool {
	id, _, _ := strings.Cut(name, ":")
	pid, err := strconv.Atoi(id)
	return err == nil && pid > 0 && Name(pid).Name == name
}

// startSlack is how exactly a system tells when a process began.
const startSlack = 2 * time.Second

// Began is the earliest time at which a process may have begun, Unix epoch
// milliseconds; 0 when the system does not tell.
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
