package proc

// Look is what the system tells of a process besides its line in the process list.
type Look struct {
	Terminal bool     // it has a controlling terminal
	Cgroup   string   // the control groups that it is in, as the system names them
	Environ  []string // NAME=value, as it was started
}

// StartedAfter reports whether a process is known to have begun later than another one.
func (p Process) StartedAfter(other Process) bool {
	return p.start != 0 && other.start != 0 && p.start > other.start
}

// Find returns a process's line in the process list. It fails with [ErrGone] when no such
// process runs.
func Find(pid int) (Process, error) { return find(pid) }
