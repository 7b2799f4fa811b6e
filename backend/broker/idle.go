package broker

import (
	"bridge/backend/agent/clidata"
	"bridge/backend/bridge"
	"bridge/backend/session"
)

// idleness is the part that asks about sessions that their hooks left at work.
type idleness struct{ *core }

// lookIdle asks claude's own registry about a session that its hooks left at
// work: a turn that a person breaks off ends without any hook, seen with claude
// 2.1.329, and would count as running until the person writes again. The registry
// is believed where it is newer than the session's last sign.
func (p *idleness) lookIdle(s *session.Session) {
	p.mu.Lock()
	box := p.boxes[s.ID]
	doubtful := box != nil && s.Busy && s.Kind == bridge.Claude && s.CLIDataDir != "" && s.SessionID != ""
	folder, pid, host := s.CLIDataDir, s.AgentPID, s.SessionID
	p.mu.Unlock()
	if !doubtful {
		return
	}
	since := clidata.ClaudeIdleSince(folder, pid, host)
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Busy && s.SessionID == host && since > box.LastActive() {
		s.Busy = false
		p.changed()
	}
}

// lookIdleAt is lookIdle for the session of a peer id, if it is live.
func (p *idleness) lookIdleAt(peerID string) {
	p.mu.Lock()
	s, live := p.roster.Get(peerID)
	p.mu.Unlock()
	if live {
		p.lookIdle(s)
	}
}

// lookIdleEverywhere is lookIdle for all live sessions.
func (p *idleness) lookIdleEverywhere() {
	p.mu.Lock()
	sessions := p.roster.Live()
	p.mu.Unlock()
	for _, s := range sessions {
		p.lookIdle(s)
	}
}
