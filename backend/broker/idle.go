package broker

import (
	"bridge/backend/agent/clidata"
	"bridge/backend/bridge"
	"bridge/backend/session"
)

// lookIdle asks claude's own registry about a session that its hooks left at
// work: a turn that a person breaks off ends without any hook, seen with claude
// 2.1.329, and would count as running until the person writes again. The registry
// is believed where it is newer than the session's last sign.
func (b *Broker) lookIdle(s *session.Session) {
	b.mu.Lock()
	box := b.boxes[s.ID]
	doubtful := box != nil && s.Busy && s.Kind == bridge.Claude && s.Store != "" && s.SessionID != ""
	folder, pid, host := s.Store, s.AgentPID, s.SessionID
	b.mu.Unlock()
	if !doubtful {
		return
	}
	since := clidata.ClaudeIdleSince(folder, pid, host)
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.Busy && s.SessionID == host && since > box.LastActive() {
		s.Busy = false
		b.changedLocked()
	}
}

// lookIdleAt is lookIdle for the session of a peer id, if it is live.
func (b *Broker) lookIdleAt(peerID string) {
	b.mu.Lock()
	s, live := b.roster.Get(peerID)
	b.mu.Unlock()
	if live {
		b.lookIdle(s)
	}
}

// lookIdleEverywhere is lookIdle for all live sessions.
func (b *Broker) lookIdleEverywhere() {
	b.mu.Lock()
	sessions := b.roster.Live()
	b.mu.Unlock()
	for _, s := range sessions {
		b.lookIdle(s)
	}
}
