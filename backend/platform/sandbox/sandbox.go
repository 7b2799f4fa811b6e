// Package sandbox puts a floor of the operating system under an agent CLI, and
// ends whole trees of processes, whatever left them.
//
// The floor (Linux, Landlock, no root needed): everything may be read, nothing
// written but what the Rules name; it holds for the program and all that it ever
// starts, and cannot be taken off. io_uring is refused below every floor: files
// registered there stand in no table of descriptors. It does not close: reading, so no secret of
// the user's is safe from what runs here; the network, unless the Rules close it;
// the sockets of other programs, unless the Rules close these, too: whoever listens there writes with his own rights
// (so Bridge's own socket must run nothing for a job); changing the mode, owner and times of
// files; and what the Rules name, the CLI's own state. It does not go around a
// program that makes a sandbox of namespaces itself, such as codex: they do not
// nest. On other systems there is no floor: Available says so, Exec refuses.
package sandbox

import (
	"errors"
	"slices"
)

// ErrUnavailable reports that this system has no floor.
var ErrUnavailable = errors.New("this system has no sandbox for jobs")

// Rules say what a program may do.
type Rules struct {
	Writable []string // absolute folders that exist, with all below them
	// Unlinked are the same, of whose names no part may be a link when the floor is
	// taken; what takes such a folder's name later is not written.
	Unlinked []string
	// Files are absolute files that exist. They may be written, and not be replaced,
	// removed or renamed.
	Files []string
	// Readable, where it is not empty, is all that may be read besides what may be written:
	// absolute folders with all below them, and files. What is missing is left out.
	Readable []string
	// NoNetwork refuses every new socket that is not one of this machine's own programs
	// (of the family unix), by whatever protocol.
	NoNetwork bool
	// NoSockets refuses every new socket, also those of this machine's own programs: a
	// service that listens on one (systemd, docker, tmux) would do outside of the floor
	// what it is asked.
	NoSockets bool
	// KeepAttributes refuses every change of a file's mode, owner, times and attributes.
	KeepAttributes bool
	// Supervised leaves the program's connect calls to the supervisor at [SupervisorFD],
	// with OwnDevices also those that open terminals and shared memory, and refuses unix sockets that send without being connected.
	Supervised bool
	// OwnDevices lets the program make terminals of its own and use shared memory by the
	// names of /dev/shm. Both need a supervisor, which keeps the shared memory in a folder
	// of its own: without one a terminal has no second end.
	OwnDevices bool
	// EndAll ends everything that the program started when the program ends. A parent
	// waits for it then, below the same floor.
	EndAll bool
}

const (
	writableFlag = "--writable="
	unlinkedFlag = "--writable-unlinked="
	fileFlag     = "--writable-file="
	readableFlag = "--readable="
	networkFlag  = "--no-network"
	socketsFlag  = "--no-sockets"
	keepFlag     = "--keep-attributes"
	connectsFlag = "--supervised"
	devicesFlag  = "--own-devices"
	endAllFlag   = "--end-all"
	endOfFlags   = "--"
)

// CommandLine returns the command that runs argv by the rules: runner is what
// leads to Main, as in `bridge sandbox-exec`.
func CommandLine(runner []string, rules Rules, argv []string) []string {
	line := slices.Clone(runner)
	for _, list := range rules.lists() {
		for _, path := range *list.paths {
			line = append(line, list.name+path)
		}
	}
	for _, flag := range rules.flags() {
		if *flag.rule {
			line = append(line, flag.name)
		}
	}
	return append(append(line, endOfFlags), argv...)
}

// list is a rule that names paths.
type list struct {
	name  string
	paths *[]string
}

func (r *Rules) lists() []list {
	return []list{{writableFlag, &r.Writable}, {unlinkedFlag, &r.Unlinked}, {fileFlag, &r.Files}, {readableFlag, &r.Readable}}
}

// flag is a rule that is on or off.
type flag struct {
	name string
	rule *bool
}

func (r *Rules) flags() []flag {
	return []flag{{networkFlag, &r.NoNetwork}, {socketsFlag, &r.NoSockets}, {keepFlag, &r.KeepAttributes}, {connectsFlag, &r.Supervised}, {devicesFlag, &r.OwnDevices}, {endAllFlag, &r.EndAll}}
}
