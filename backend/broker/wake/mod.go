package wake

import (
	"maps"
	"slices"

	"bridge/backend/core/session"
)

// ModLink is the connection of one mod.
type ModLink struct {
	Number int  // in the order of connecting
	Moved  bool // its conversation is another one by now
}

// ModState is how claude's mod in a session stands.
type ModState int

// The states.
const (
	ModAbsent   ModState = iota // no mod is there
	ModEntering                 // one was given a message and has not reported on it
	ModInTurn                   // a main turn is under way: nothing is entered
	ModFree                     // it may be given a message
)

// Mod is how claude's mod in a session stands: it enters the owner's words as
// prompts of the user, one at a time and between turns (CHT-20).
type Mod struct {
	link    *ModLink // nil while no mod is there
	session string   // the conversation that it said hello for
	turn    bool     // a main turn is under way, as far as the mod and the hooks tell
	began   int64    // when the last turn's prompt was heard of, Unix epoch milliseconds
	out     string   // the message that it was given and has not reported on
	outTo   *ModLink // whose report on it is waited for
	open    bool     // messages may be with a mod
	watched bool     // what becomes of them is looked after
	asked   []string // the conversations that they were meant for
	tries   tries
}

// NewMod is of a session to whose mod an earlier broker may have given some.
func NewMod() Mod { return Mod{open: true} }

// State is the state now.
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

// IsIn reports whether a mod said hello for that conversation.
func (m *Mod) IsIn(sessionID string) bool { return m.link != nil && m.session == sessionID }

// Is reports whether the connection is that of the mod.
func (m *Mod) Is(link *ModLink) bool { return m.link == link }

// Hello makes the connection the session's mod: of several the newest. ok is false
// for an older one, changed says that it was not the mod yet.
func (m *Mod) Hello(link *ModLink, sessionID string, busy bool) (changed, ok bool) {
	if m.link == link && m.session == sessionID {
		return false, true
	}
	if m.link != nil && m.link.Number > link.Number {
		return false, false
	}
	m.link, m.session, m.turn = link, sessionID, busy
	m.asked = append(m.asked, sessionID)
	return true, true
}

// Lost notes that a connection has ended, and reports whether it was the mod's.
func (m *Mod) Lost(link *ModLink) bool {
	if m.link != link {
		return false
	}
	m.link = nil
	return true
}

// Give notes that the mod is given a message.
func (m *Mod) Give(message string) {
	m.out, m.outTo, m.open = message, m.link, true
	m.tries.add(message)
}

// NotGiven takes Give back: the message did not leave.
func (m *Mod) NotGiven() { m.out = "" }

// Resolved ends the wait for what became of a message.
func (m *Mod) Resolved(message string) {
	if m.out == message {
		m.out = ""
	}
}

// Busy notes the mod's word that a turn is under way.
func (m *Mod) Busy() { m.turn = true }

// Moved notes that the conversation of the mod is another one by now: it is not
// asked again.
func (m *Mod) Moved(sessionID string) {
	if m.IsIn(sessionID) {
		m.link.Moved = true
		m.link = nil
	}
}

// Sign keeps whether the main turn is under way, as a hook call tells. It ends with
// the mod's own word.
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

// TurnEnded notes the mod's word that the main turn ended at a time, unless the next
// one has begun since.
func (m *Mod) TurnEnded(at int64) bool {
	if m.began > at {
		return false
	}
	m.turn = false
	return true
}

// Rest notes that no turn is under way: one that a person broke off ends without a
// word.
func (m *Mod) Rest() { m.turn = false }

// InTurn reports whether a main turn is under way.
func (m *Mod) InTurn() bool { return m.turn }

// Watch reports whether the caller is to look after what the mod was given: nobody
// does yet.
func (m *Mod) Watch() bool {
	first := !m.watched
	m.watched = true
	return first
}

// Unwatch ends the watch, and reports whether some outcome is not known.
func (m *Mod) Unwatch() (open bool) {
	m.watched = false
	return m.open
}

// Open reports whether messages may be with a mod.
func (m *Mod) Open() bool { return m.open }

// Awaited is the message on which the mod may still report, "" for none.
func (m *Mod) Awaited() string {
	if m.link == nil || m.link != m.outTo {
		return ""
	}
	return m.out
}

// Conversations are those that the messages may have been entered into.
func (m *Mod) Conversations(current string) []string { return append(slices.Clone(m.asked), current) }

// Tries are how often each message was given to a mod, by its id.
func (m *Mod) Tries() map[string]int { return maps.Clone(m.tries) }

// Judged notes that what the mod was given was judged; open says that some outcome
// is not known yet.
func (m *Mod) Judged(open bool) { m.open = open || m.out != "" }
