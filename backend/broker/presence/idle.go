package presence

import (
	"context"
	"math"
	"time"

	"bridge/backend/agent/clidata"
	"bridge/backend/agent/kinds"
	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
)

// Idleness checks with claude whether a session is at work. All fields are required.
type Idleness struct {
	*Presence
	Doubt time.Duration // between two looks at a session that may be at work
	// Soon runs a task after a pause, unless the broker ends before.
	Soon func(pause time.Duration, task func(context.Context))
	// Again is called before a second look at a session that claude called idle.
	Again func()
}

// SetBusyLocked records whether a session is at work. For a live session it also records
// the time. A session that has left would never get an end time.
func (p Idleness) SetBusyLocked(s *session.Session, busy bool) {
	s.Activity = session.Activity{Busy: busy}
	if p.Boxes[s.ID] != nil {
		p.Turns.Note(s.ID, busy, p.opts.Now().UnixMilli())
	}
}

// Check checks claude's own registry for a session's state (RWM-21, seen with claude
// 2.1.329 and 2.1.332). A turn that a person interrupts ends without a hook. A turn from
// a prompt typed in the turn before begins without one. Check trusts the registry if
// it is newer than the session's last sign. If the registry reports idle, Check checks
// it once more after a pause.
func (p Idleness) Check(s *session.Session) {
	p.Lock()
	busy, unknown, doubtful := s.Busy, s.UnknownSince > 0, p.Boxes[s.ID] != nil && bridge.TraitsOf(s.Kind).Registry && s.CLIDataDir != "" && s.SessionID != ""
	store, folder, pid, host := kinds.StoreOf(s.Kind), s.CLIDataDir, s.AgentPID, s.SessionID
	p.Unlock()
	if !doubtful {
		return
	}
	if !busy {
		if !p.Believe(s, host, true, store.BusySince(folder, pid, host)) && unknown {
			p.Believe(s, host, false, store.IdleSince(folder, pid, host))
		}
		return
	}
	since := store.IdleSince(folder, pid, host)
	if p.Believe(s, host, false, since) {
		// A slow claude records the end of a turn after the next turn's hook has run. It
		// then records that it is busy, and no hook comes until the model answers.
		p.Soon(p.Doubt, func(context.Context) {
			p.Again()
			if store.BusySince(folder, pid, host) >= since {
				p.Believe(s, host, true, since)
			}
		})
	}
}

// Believe applies the state that claude reports, unless the session has shown a later sign.
func (p Idleness) Believe(s *session.Session, host string, busy bool, since int64) bool {
	p.Lock()
	defer p.Unlock()
	box := p.Boxes[s.ID]
	if box == nil || s.Busy == busy && s.UnknownSince == 0 || s.SessionID != host || since <= box.LastActive() {
		return false
	}
	p.SetBusyLocked(s, busy)
	box.Signal()
	p.opts.Changed()
	return true
}

// ReportedIdle handles a report of claude's mod that a turn has ended. A stop hook has
// reported it before, unless a person interrupted the turn. A slow claude reports it when
// the next turn runs. The registry shows which case it is, at once or a little later.
func (p Idleness) ReportedIdle(s *session.Session) {
	p.Lock()
	busy, folder, pid, host := s.Busy, s.CLIDataDir, s.AgentPID, s.SessionID
	p.Unlock()
	if !busy {
		return
	}
	if _, known := clidata.ClaudeWaits(folder, pid, host); !known {
		p.Believe(s, host, false, math.MaxInt64)
		return
	}
	p.Check(s)
	p.Soon(p.Doubt, func(context.Context) { p.Check(s) })
}

// HasNextTurn reports whether a prompt was typed during the turn that just ended, so that
// another turn follows. It returns true only if claude's registry can show that there is none.
func (p Idleness) HasNextTurn(s *session.Session) bool {
	p.Lock()
	box, folder, pid, host := p.Boxes[s.ID], s.CLIDataDir, s.AgentPID, s.SessionID
	has := box != nil && box.Hooks.HasNext()
	p.Unlock()
	if !has {
		return false
	}
	_, known := clidata.ClaudeWaits(folder, pid, host)
	if known { // a person may have withdrawn the prompt
		p.Soon(p.Doubt, func(context.Context) { p.Check(s) })
	}
	return known
}

// CheckPeer calls Check for the session of a peer id, if that session is live.
func (p Idleness) CheckPeer(peerID string) {
	p.Lock()
	s, live := p.Roster.Get(peerID)
	p.Unlock()
	if live {
		p.Check(s)
	}
}

// CheckAll calls Check for all live sessions.
func (p Idleness) CheckAll() {
	p.Lock()
	sessions := p.Roster.Live()
	p.Unlock()
	for _, s := range sessions {
		p.Check(s)
	}
}
