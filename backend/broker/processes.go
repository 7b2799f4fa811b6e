package broker

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"bridge/backend/agent/clidata"
	"bridge/backend/bridge"
	"bridge/backend/ipc/api"
	"bridge/backend/mail"
	"bridge/backend/proc"
	"bridge/backend/session"
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

func (b *Broker) processesLocked(id string) processes {
	here := processes{names: map[string]bool{}}
	for _, l := range b.conns {
		if !l.sessions[id] || l.host.ended() {
			continue
		}
		if len(here.names) == 0 || l.host.since < here.since {
			here.since = l.host.since
		}
		here.names[l.host.name] = true
	}
	return here
}

// earlier reports whether mail was handed to a process that came before these.
// Of a hand-over by an older program only the time is known.
func (p processes) earlier(handed mail.Fact) bool {
	if handed.Process == "" || p.names[""] {
		return p.since != 0 && handed.At < p.since
	}
	return !p.names[handed.Process]
}

// startsUnknown reports whether a hook tells of the start of a process that is
// not part of the session yet: its MCP server has not registered.
func (b *Broker) startsUnknown(s *session.Session, call session.HookCall) bool {
	if call.Event != session.EventStart || call.GoesOn() || len(call.Ancestors) == 0 {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.conns {
		if l.sessions[s.ID] && l.identity != nil && slices.Contains(call.Ancestors, l.identity.AgentPID) {
			return false
		}
	}
	return true
}

// handedScan bounds the handed mail that is looked through at once.
const handedScan = 500

// offerAgain makes the mail that was handed to an earlier process unread again,
// but for what the host's own store holds: the process that resumed the session
// has that in front of it. What a queue of the host's own has stays there, and what a
// mod was given has its own judgement (judgeMod).
func (b *Broker) offerAgain(ctx context.Context, s *session.Session, all bool) error {
	b.mu.Lock()
	id, box := s.ID, b.boxes[s.ID]
	wakes := box != nil && box.Hooks.Open() && s.Kind == bridge.Claude // nobody judges those of others
	if box == nil || !all && !box.Open() && !wakes {
		b.mu.Unlock()
		return nil
	}
	here := b.processesLocked(id)
	kind, folder, host, cwd := s.Kind, s.Store, s.SessionID, s.Cwd
	b.mu.Unlock()
	handed, err := b.opts.DB.Handed(ctx, id, handedScan)
	lost := slices.DeleteFunc(handed, func(d mail.Delivery) bool {
		return d.Handed.Via.InQueue() || d.Handed.Via == mail.ViaMod || !d.Handed.Happened() || !all && !here.earlier(d.Handed)
	})
	if err != nil || len(lost) == 0 {
		return err
	}
	held := clidata.Holds(ctx, kind, folder, host, cwd, lost)
	var seen []mail.Mark
	for _, d := range lost {
		if held[d.ID] {
			seen = append(seen, mail.Mark{MessageID: d.ID, Recipient: id, At: b.nowMillis(), Via: mail.ViaTranscript, Evidence: "the resumed session holds it"})
		}
	}
	lost = slices.DeleteFunc(lost, func(d mail.Delivery) bool { return held[d.ID] })
	if err := b.opts.DB.Record(ctx, bridge.StageConsumed, seen); err != nil {
		return err
	}
	if err := b.opts.DB.UnhandThese(ctx, lost); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range lost {
		box.Forget(d.ID)
	}
	box.Renew() // mail that was read before this is out of date
	for _, d := range lost {
		if b.boxes[s.ID] == box {
			b.announceLocked(s, d.Message)
		}
	}
	b.changedLocked()
	return nil
}

// learnHostLocked takes in what a connection that becomes part of s knows of its
// host. Whatever was handed to another process is looked at again.
func (b *Broker) learnHostLocked(l *link, s *session.Session) {
	if s.Process != l.host.name {
		b.boxes[s.ID].Doubt()
	}
	if l.host.name != "" {
		s.Process = l.host.name
	}
	if l.identity != nil && filepath.IsAbs(l.identity.Store) {
		s.Store = l.identity.Store
	}
}
