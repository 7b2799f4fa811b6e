package proc

import "time"

// InTerminal is a process whose input is a terminal.
type InTerminal struct {
	Process
	Named   Named
	Cwd     string
	Environ []string  // NAME=value, as it was started
	Read    time.Time // when it last read from the terminal, to ReadStep; zero for unknown
}

// ReadStep is how late the time of a terminal's last reading may be: the kernel writes it
// down once in that time.
const ReadStep = 8 * time.Second
