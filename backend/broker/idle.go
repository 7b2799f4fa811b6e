package broker

import (
	"context"
	"math"

	"bridge/backend/agent/clidata"
	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
)

// idleness is the part that asks claude whether a session is at work.
type idleness struct{ *core }

const doubting point = "a session that claude called idle is looked at again"

// lookIdle asks claude's own registry about a session. A turn that a person breaks off
// ends without any hook, and one that begins with a prompt that was typed in the turn
// before begins without one, seen with claude 2.1.329 and 2.1.332 (RWM-21). The registry
// is believed where it is newer than the session's last sign; where it says that the
// session is idle, it is asked once more a little later.
func (p *idleness) lookIdle(s *session.Session) {
	p.Lock()
	busy, doubtful := s.Busy, p.Boxes[s.ID] != nil && s.Kind == bridge.Claude && s.CLIDataDir != "" && s.SessionID != ""
	folder, pid, host := s.CLIDataDir, s.AgentPID, s.SessionID
	p.Unlock()
	if !doubtful {
		return
	}
	if !busy {
		p.believe(s, host, true, clidata.ClaudeBusySince(folder, pid, host))
		return
	}
	since := clidata.ClaudeIdleSince(folder, pid, host)
	if p.believe(s, host, false, since) {
		// A slow claude writes down the end of a turn when the hook of the next one has run,
		// and then that it is busy, with no hook to come until the model answers.
		p.soon(p.opts.Pace.Doubt, func(context.Context) {
			p.at(doubting)
			if clidata.ClaudeBusySince(folder, pid, host) >= since {
				p.believe(s, host, true, since)
			}
		})
	}
}

// believe notes what claude says of the session, unless it has shown a sign after that.
func (p *idleness) believe(s *session.Session, host string, busy bool, since int64) bool {
	p.Lock()
	defer p.Unlock()
	box := p.Boxes[s.ID]
	if box == nil || s.Busy == busy || s.SessionID != host || since <= box.LastActive() {
		return false
	}
	p.setBusyLocked(s, busy)
	box.Signal()
	p.changed()
	return true
}

// turnEnded takes a word of claude's mod that a turn has ended. A stop hook has told so
// before, unless a person broke the turn off; and a slow claude says it when the next
// turn is under way. The registry knows which it is, at once or a little later.
func (p *idleness) turnEnded(s *session.Session) {
	p.Lock()
	busy, folder, pid, host := s.Busy, s.CLIDataDir, s.AgentPID, s.SessionID
	p.Unlock()
	if !busy {
		return
	}
	if _, known := clidata.ClaudeWaits(folder, pid, host); !known {
		p.believe(s, host, false, math.MaxInt64)
		return
	}
	p.lookIdle(s)
	p.soon(p.opts.Pace.Doubt, func(context.Context) { p.lookIdle(s) })
}

// hasNextTurn reports whether another turn follows the one that has just ended: a prompt
// was typed meanwhile. It is true only where claude's registry can say that there is none.
func (p *idleness) hasNextTurn(s *session.Session) bool {
	p.Lock()
	box, folder, pid, host := p.Boxes[s.ID], s.CLIDataDir, s.AgentPID, s.SessionID
	has := box != nil && box.Hooks.HasNext()
	p.Unlock()
	if !has {
		return false
	}
	_, known := clidata.ClaudeWaits(folder, pid, host)
	if known { // the prompt may have been taken back
		p.soon(p.opts.Pace.Doubt, func(context.Context) { p.lookIdle(s) })
	}
	return known
}

// lookIdleAt is lookIdle for the session of a peer id, if it is live.
func (p *idleness) lookIdleAt(peerID string) {
	p.Lock()
	s, live := p.Roster.Get(peerID)
	p.Unlock()
	if live {
		p.lookIdle(s)
	}
}

// lookIdleEverywhere is lookIdle for all live sessions.
func (p *idleness) lookIdleEverywhere() {
	p.Lock()
	sessions := p.Roster.Live()
	p.Unlock()
	for _, s := range sessions {
		p.lookIdle(s)
	}
}
