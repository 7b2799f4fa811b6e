package broker

import (
	"errors"
	"fmt"

	"bridge/backend/ipc/api"
	"bridge/backend/mail"
	"bridge/backend/proc"
)

// A session outlives the processes of its host: one is killed, another resumes
// it. What a hook printed for a process that died before its next step was seen
// by nobody, so that the start, the registration or the first call of the process
// after it is no evidence for it (MSG-06). Each hand-over therefore names the
// process that it went to, in the store, so that it holds over a broker's restart
// too. A compaction, a cleared context, a reloaded MCP server and another thread
// of the same host are no new process.

// ProcessOf names process pid for good; "" where the system does not tell.
func ProcessOf(pid int) string {
	identity, err := proc.Identity(pid)
	if err != nil || pid <= 0 {
		return ""
	}
	return processName(pid, identity)
}

func processName(pid int, identity string) string { return fmt.Sprintf("%d:%s", pid, identity) }

// hostProcess is the process that a connection belongs to.
type hostProcess struct {
	name  string // for good, "" where the system does not tell
	pid   int    // 0 where its client named it
	since int64  // when it began, Unix epoch milliseconds; 0 for not known
}

// hostOf is the process of a registering connection: its host where that was
// recognised, else itself.
func hostOf(l *link, args api.Register) hostProcess {
	pid := l.conn.Hello().PID
	if args.HostKnown {
		pid = args.AgentPID
	}
	if args.Process != "" {
		return hostProcess{name: args.Process, since: began(pid)}
	}
	return hostProcess{name: ProcessOf(pid), pid: pid, since: began(pid)}
}

// ended reports whether the process is gone. Its MCP server may be connected for a
// moment longer, and come to the next broker too.
func (p hostProcess) ended() bool {
	if p.pid <= 0 {
		return false
	}
	identity, err := proc.Identity(p.pid)
	return errors.Is(err, proc.ErrGone) || err == nil && p.name != "" && p.name != processName(p.pid, identity)
}

// processes are the host processes that are part of a session now.
type processes struct {
	names map[string]bool
	since int64 // when the first of them began, Unix epoch milliseconds; 0 for not known
}

// earlier reports whether mail was handed to a process that came before these.
// Of a hand-over by an older program only the time is known.
func (p processes) earlier(handed mail.Fact) bool {
	if handed.Process == "" || p.names[""] {
		return p.since != 0 && handed.At < p.since
	}
	return !p.names[handed.Process]
}
