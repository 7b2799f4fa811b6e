package wake

import (
	"maps"
	"slices"

	"bridge/backend/core/session"
)

// ModLink is the connection of one mod.
type ModLink struct {
	Number int  // in the order of connecting
	Moved  bool // its conversation has changed
}

// ModState is the state of claude's mod in a session.
type ModState int

// The states of a mod.
const (
	ModAbsent   ModState = iota // no mod is connected
	ModEntering                 // it was given a message and has not reported on it
	ModInTurn                   // a main turn is running: nothing is entered
	ModFree                     // it may be given a message
)

// Mod is the state of claude's mod in a session. The mod enters the owner's messages as
// prompts of the user, one at a time and between turns (CHT-20).
type Mod struct {
	link          *ModLink // nil while no mod is connected
	session       string   // the conversation that it registered for
	turn          bool     // a main turn is running, as the mod and the hooks report
	began         int64    // when the last turn's prompt was reported, Unix epoch milliseconds
	out           string   // the message that it was given and has not reported on
	outTo         *ModLink // the connection whose report on it is awaited
	open          bool     // a mod may hold messages
	watched       bool     // a goroutine watches their outcome
	conversations []string // the conversations that they were given for
	tries         tries
}

// NewMod returns the state of a session to whose mod an earlier broker may have given mail.
func NewMod() Mod { return Mod{open: true} }

// State returns the present state.
func (m *Mod) State() ModState {
	switch {
	case m.out != "":
		return ModEntering
	case m.link == nil:
		return ModAbsent
	case m.turn:
		return ModInTurn
	default:
		return ModFree
	}
}

// IsIn reports whether a mod registered for that conversation.
func (m *Mod) IsIn(sessionID string) bool { return m.link != nil && m.session == sessionID }

// Is reports whether the connection is that of the mod.
func (m *Mod) Is(link *ModLink) bool { return m.link == link }

// Hello makes the connection the session's mod, the newest of several. ok is false for an
// older one. changed is set if it was not the mod before.
func (m *Mod) Hello(link *ModLink, sessionID string, busy bool) (changed, ok bool) {
	if m.link == link && m.session == sessionID {
		return false, true
	}
	if m.link != nil && m.link.Number > link.Number {
		return false, false
	}
	m.link, m.session, m.turn = link, sessionID, busy
	m.conversations = append(m.conversations, sessionID)
	return true, true
}

// Lost records that a connection has ended, and reports whether it was the mod's.
func (m *Mod) Lost(link *ModLink) bool {
	if m.link != link {
		return false
	}
	m.link = nil
	return true
}

// Give records that the mod is given a message.
func (m *Mod) Give(message string) {
	m.out, m.outTo, m.open = message, m.link, true
	m.tries.add(message)
}

// UndoGive reverts Give: the message was not sent.
func (m *Mod) UndoGive() { m.out = "" }

// Resolved ends the wait for the outcome of a message.
func (m *Mod) Resolved(message string) {
	if m.out == message {
		m.out = ""
	}
}

// Busy records the mod's report that a turn is running.
func (m *Mod) Busy() { m.turn = true }

// Moved records that the mod's conversation has changed: the mod gets no more messages.
func (m *Mod) Moved(sessionID string) {
	if m.IsIn(sessionID) {
		m.link.Moved = true
		m.link = nil
	}
}

// Sign records from a hook call whether the main turn is running. Only the mod's own
// report ends the turn.
func (m *Mod) Sign(call session.HookCall, now int64) {
	switch call.Event {
	case session.EventPrompt:
		m.turn, m.began = true, now
	case session.EventTool, session.EventPreTool:
		m.turn = true
	case session.EventStart, session.EventEnd:
		m.turn = m.turn && call.Source == "compact"
	default: // a stop hook may keep the turn going
	}
}

// TurnEnded records the mod's report that the main turn ended at that time, unless the
// next one has begun since.
func (m *Mod) TurnEnded(at int64) bool {
	if m.began > at {
		return false
	}
	m.turn = false
	return true
}

// Rest records that no turn is running: a turn that a person interrupts ends without a
// report.
func (m *Mod) Rest() { m.turn = false }

// InTurn reports whether a main turn is running.
func (m *Mod) InTurn() bool { return m.turn }

// Watch reports whether the caller must watch the outcome of given messages, because no
// goroutine does yet.
func (m *Mod) Watch() bool {
	first := !m.watched
	m.watched = true
	return first
}

// Unwatch ends the watch, and reports whether some outcome is unknown.
func (m *Mod) Unwatch() (open bool) {
	m.watched = false
	return m.open
}

// Open reports whether a mod may hold messages.
func (m *Mod) Open() bool { return m.open }

// Awaited returns the message on which the mod may still report, "" for none.
func (m *Mod) Awaited() string {
	if m.link == nil || m.link != m.outTo {
		return ""
	}
	return m.out
}

// Conversations returns those into which the messages may have been entered.
func (m *Mod) Conversations(current string) []string {
	return append(slices.Clone(m.conversations), current)
}

// Tries returns how often each message was given to a mod, by its id.
func (m *Mod) Tries() map[string]int { return maps.Clone(m.tries) }

// Judged records that the given messages were judged. open is set if some outcome is
// unknown.
func (m *Mod) Judged(open bool) { m.open = open || m.out != "" }
