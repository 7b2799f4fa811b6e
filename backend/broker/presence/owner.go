package presence

import (
	"errors"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/proc"
)

// maxAncestors limits the walk from a process to the top. It is so high that no agent
// escapes its session by nested shells.
const maxAncestors = 4096

// Callers identifies the program at the other end of a connection.
type Callers struct{ *Presence }

// Owner identifies the caller of an owner's command. It returns the live session that the
// caller's process runs in, nil for the owner. It fails with Denied for a process that an
// agent's session started and that has left it (SEC-07). This keeps honest agents from
// acting as the owner; only an agent's own sandbox stops others.
func (p Callers) Owner(conn *ipc.Conn) (*session.Session, error) {
	s := p.AgentAbove(conn.PeerPID())
	if s != nil || conn.PeerPID() <= 0 {
		return s, nil
	}
	return nil, checkLeft(conn.Peer(), p.agents())
}

// AgentAbove returns the live session whose agent process is the nearest above pid, nil
// if there is none.
func (p Callers) AgentAbove(pid int) *session.Session {
	if pid <= 0 {
		return nil
	}
	above := proc.Ancestors(pid, maxAncestors)
	p.Lock()
	defer p.Unlock()
	for _, process := range above { // the nearest agent is the one that started the process
		if s := p.ofAgentLocked(process.PID); s != nil {
			return s
		}
	}
	return nil
}

// ofAgentLocked returns the live session of an agent's process, nil if there is none.
func (p Callers) ofAgentLocked(pid int) *session.Session {
	if s, live := p.Roster.Get(p.Serverless.ofAgent(pid)); live {
		return s
	}
	for _, kind := range bridge.Kinds() {
		for _, l := range p.Conns {
			if l.Identity == nil || l.Identity.Kind != kind || !l.Identity.HostKnown || l.Identity.AgentPID != pid {
				continue
			}
			for id := range l.Sessions {
				if s, ok := p.Roster.Get(id); ok {
					return s
				}
			}
		}
	}
	return nil
}

// agents returns the process ids of the connected agents.
func (p Callers) agents() []int {
	p.Lock()
	defer p.Unlock()
	var pids []int
	for _, l := range p.Conns {
		if l.Identity != nil && l.Identity.HostKnown {
			pids = append(pids, l.Identity.AgentPID)
		}
	}
	for _, known := range p.Serverless {
		pids = append(pids, known.agent.PID)
	}
	return pids
}

// checkLeft fails with Denied for a process that has ended or that an agent has marked.
// It also fails for one that may have left the session of one of these agents.
func checkLeft(peer job.Process, agents []int) error {
	look, err := proc.Inspect(peer.PID)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	_, chainErr := proc.Chain(peer.PID, maxAncestors)
	identity, idErr := proc.Identity(peer.PID) // checked last: until then the number was that program's
	if errors.Join(err, chainErr, idErr) != nil || identity != peer.Identity {
		return bridge.Errorf(bridge.Denied, "the program that asked has ended, so Bridge cannot tell whether an agent started it")
	}
	if mark := markOf(look.Environ); mark != "" {
		return bridge.Errorf(bridge.Denied, "this command was started by an agent: %s is set. Run it in a terminal of your own, or unset %s", mark, mark)
	}
	if look.Terminal {
		return nil
	}
	top, orphaned := topOf(peer.PID)
	if !orphaned {
		return nil
	}
	for _, pid := range agents {
		agent, agentErr := proc.Find(pid)
		details, lookErr := proc.Inspect(pid)
		if errors.Join(agentErr, lookErr) == nil && details.Cgroup == look.Cgroup && !agent.StartedAfter(top) {
			return bridge.Errorf(bridge.Denied, "this command has no terminal, and the program that started it has ended: an agent's session may have left it behind. Run it in a terminal")
		}
	}
	return nil
}

// marks are the environment variables that agents set for the processes they start.
var marks = []string{"CLAUDECODE", "CODEX_THREAD_ID", "CODEX_SANDBOX", "OPENCODE", "OPENCODE_PID", "GEMINI_CLI"}

// markOf returns the first of marks that an environment sets, "" if there is none.
func markOf(environ []string) string {
	for _, pair := range environ {
		if name, value, _ := strings.Cut(pair, "="); value != "" && slices.Contains(marks, name) {
			return name
		}
	}
	return ""
}

// inits are the names of programs that adopt a process whose parent has ended. They are
// the first processes of systems and containers, and a user's service manager.
var inits = []string{"systemd", "init", "tini", "dumb-init", "docker-init", "catatonit", "runit", "s6-svscan", "openrc-init"}

// topOf returns the uppermost process from pid upwards that is not one of inits. orphaned
// is set if its parent is one of inits, as for a process whose own parent has ended.
func topOf(pid int) (top proc.Process, orphaned bool) {
	top, err := proc.Find(pid)
	if err != nil {
		return top, false
	}
	for _, above := range proc.Ancestors(pid, maxAncestors) {
		if slices.Contains(inits, above.Name) {
			return top, true
		}
		top = above
	}
	return top, false
}

// Asker identifies the caller of a request on a connection.
type Asker struct {
	Address bridge.Address
	Cwd     string
	Owner   bool // the owner's command line
	InJob   bool // a job's own session, or a native child
	// Job is the name of the job whose own session asks. It is "" for all others,
	// including the job's native children.
	Job string
	// Same reports whether a peer id is or was the asker's.
	Same func(peerID string) bool
}

// OnlyOwner fails with Denied unless the asker is the owner (JOB-11).
func (a Asker) OnlyOwner(does string) error {
	if a.Owner {
		return nil
	}
	return bridge.Errorf(bridge.Denied, "only the owner %s: this was asked for from within %s", does, a.Address.Name)
}
