package proc

// Details holds details of a process that its line in the process list lacks.
type Details struct {
	Terminal bool     // whether it has a controlling terminal
	Cgroup   string   // its control groups, as the system names them
	Environ  []string // NAME=value, as at its start
}

// StartedAfter reports whether the process is known to have started later than other.
func (p Process) StartedAfter(other Process) bool {
	return p.start != 0 && other.start != 0 && p.start > other.start
}

// Find returns a process's line in the process list. It fails with [ErrGone] if no
// such process runs.
func Find(pid int) (Process, error) { return find(pid) }
