// Package sandbox runs an agent CLI in a sandbox of the operating system, and ends
// whole process trees, even of processes that left them.
//
// The sandbox uses Landlock on Linux without root, and the comments call it the
// floor. The program may read everything and write only what the Rules name. The
// sandbox also holds for all child processes and cannot be removed. It always
// blocks io_uring: files registered there are in no descriptor table. It does not
// restrict reading, so no secret of the user is safe from the program. Without the
// matching Rules it does not restrict the network, other programs' sockets or file
// attributes. A socket's listener acts with its own rights, so Bridge's socket must
// run nothing for a job. The Rules can also open the CLI's own state. It does not
// wrap a program with its own namespace sandbox, such as codex: they do not nest.
// On other systems there is none: Available and Exec fail.
package sandbox

import (
	"errors"
	"slices"
)

// ErrUnavailable reports that this system has no floor.
var ErrUnavailable = errors.New("this system has no sandbox for jobs")

// Rules holds the permissions of a program.
type Rules struct {
	Writable []string // existing absolute folders, with everything below
	// Unlinked are such folders whose paths must contain no link when the sandbox
	// starts. A later link in such a path gives no write access.
	Unlinked []string
	// Files are existing absolute files. They may be written, but not replaced,
	// removed or renamed.
	Files []string
	// Readable, if not empty, limits reading to these absolute folders and files
	// and to the writable ones. Missing paths are ignored.
	Readable []string
	// NoNetwork blocks every new socket, of any protocol, except unix sockets of
	// this machine.
	NoNetwork bool
	// NoSockets blocks every new socket, including unix sockets: a service that
	// listens on one (systemd, docker, tmux) would execute requests outside of the
	// sandbox.
	NoSockets bool
	// KeepAttributes blocks every change of a file's mode, owner, times and attributes.
	KeepAttributes bool
	// Supervised passes the program's connect calls to the supervisor at [SupervisorFD], with OwnDevices
	// also those that open terminals and shared memory. It blocks unix sockets that send unconnected.
	Supervised bool
	// OwnDevices allows the program to create terminals and use shared memory in
	// /dev/shm. Both need a supervisor, which keeps the shared memory in a separate
	// folder. Without it a terminal has no second end.
	OwnDevices bool
	// EndAll ends all processes that the program started when the program ends. A
	// parent in the same sandbox then waits for it.
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

// CommandLine returns the command that runs argv by the rules. runner is the
// command that calls Main, such as `bridge sandbox-exec`.
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

// list is a rule with paths.
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
