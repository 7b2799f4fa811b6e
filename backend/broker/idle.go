package broker

import (
	"bridge/backend/agent"
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
	since := agent.ClaudeIdleSince(folder, pid, host)
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.Busy && s.SessionID == host && since > box.lastActive {
		s.Busy = false
		b.changedLocked()
	}
}

// lookIdleEverywhere is lookIdle for the live sessions of the given peer ids, or
// for all without any.
func (b *Broker) lookIdleEverywhere(peerIDs ...string) {
	b.mu.Lock()
	sessions := b.roster.Live()
	if len(peerIDs) > 0 {
		sessions = sessions[:0]
		for _, id := range peerIDs {
			if s, live := b.roster.Get(id); live {
				sessions = append(sessions, s)
			}
		}
	}
	b.mu.Unlock()
	for _, s := range sessions {
		b.lookIdle(s)
	}
}
