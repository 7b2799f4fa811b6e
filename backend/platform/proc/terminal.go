package proc

import "time"

// InTerminal is a process with a terminal as its input.
type InTerminal struct {
	Process
	Named   Named
	Cwd     string
	Environ []string  // NAME=value, as at its start
	Read    time.Time // its last read from the terminal, within ReadStep; zero if unknown
}

// ReadStep is the maximum delay of a terminal's last read time: the kernel updates
// it at this interval.
const ReadStep = 8 * time.Second
