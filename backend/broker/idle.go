package broker

import (
	"context"
	"math"

	"bridge/backend/agent/clidata"
	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
)

// idleness is the part of the broker that checks with claude whether a session is at work.
type idleness struct{ *core }

const doubting point = "a session that claude called idle is looked at again"

// lookIdle checks claude's own registry for a session's state (RWM-21, seen with claude
// 2.1.329 and 2.1.332). A turn that a person interrupts ends without a hook. A turn from
// a prompt typed in the turn before begins without one. lookIdle trusts the registry if
// it is newer than the session's last sign. If the registry reports idle, lookIdle checks
// it once more after a pause.
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
		// A slow claude records the end of a turn after the next turn's hook has run. It
		// then records that it is busy, and no hook comes until the model answers.
		p.soon(p.opts.Pace.Doubt, func(context.Context) {
			p.at(doubting)
			if clidata.ClaudeBusySince(folder, pid, host) >= since {
				p.believe(s, host, true, since)
			}
		})
	}
}

// believe applies the state that claude reports, unless the session has shown a later sign.
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

// turnEnded handles a report of claude's mod that a turn has ended. A stop hook has
// reported it before, unless a person interrupted the turn. A slow claude reports it when
// the next turn runs. The registry shows which case it is, at once or a little later.
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

// hasNextTurn reports whether a prompt was typed during the turn that just ended, so that
// another turn follows. It returns true only if claude's registry can show that there is none.
func (p *idleness) hasNextTurn(s *session.Session) bool {
	p.Lock()
	box, folder, pid, host := p.Boxes[s.ID], s.CLIDataDir, s.AgentPID, s.SessionID
	has := box != nil && box.Hooks.HasNext()
	p.Unlock()
	if !has {
		return false
	}
	_, known := clidata.ClaudeWaits(folder, pid, host)
	if known { // a person may have withdrawn the prompt
		p.soon(p.opts.Pace.Doubt, func(context.Context) { p.lookIdle(s) })
	}
	return known
}

// lookIdleAt calls lookIdle for the session of a peer id, if that session is live.
func (p *idleness) lookIdleAt(peerID string) {
	p.Lock()
	s, live := p.Roster.Get(peerID)
	p.Unlock()
	if live {
		p.lookIdle(s)
	}
}

// lookIdleEverywhere calls lookIdle for all live sessions.
func (p *idleness) lookIdleEverywhere() {
	p.Lock()
	sessions := p.Roster.Live()
	p.Unlock()
	for _, s := range sessions {
		p.lookIdle(s)
	}
}
