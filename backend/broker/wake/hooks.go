package wake

import (
	"maps"

	"bridge/backend/core/mail"
	"bridge/backend/core/session"
)

// maxHookTries is how often one message may be given to wake hooks.
const maxHookTries = 2

// Place is where a wake hook waits. It is closed when a newer hook takes it.
type Place chan struct{}

// HookState is how one message stands that a wake hook or the channel was given.
type HookState int

// The states. Of mail that was given whole the store holds when.
const (
	HookNone      HookState = iota // nothing was tried, or its outcome is known
	HookAnnounced                  // a wake hook told of it only, for it is long
	HookPushed                     // the channel was given it
)

// Hooks is how the wakes of one claude session by its waiting hooks and by its
// channel stand (CHT-03). The zero value is that of a session to which nothing was
// given, as far as this broker knows.
type Hooks struct {
	// places are the hooks that wait in the background, by role: false is the
	// first, true the standby.
	places map[bool]Place
	tries  tries
	// open says that mail may be with the host of which no sign of the session has
	// spoken yet.
	open      bool
	announced map[string]int64 // when, by message id: HookAnnounced
	pushed    map[string]bool  // by message id: HookPushed
	// The last ends of a step and of a turn, and when mail was last given to the
	// host, Unix epoch milliseconds.
	lastStep, lastStop, begun int64

	turn    string // the host's id of the prompt that its turn began with, "" for not known
	turnAt  int64  // when that id was first heard, Unix epoch milliseconds
	hasNext bool   // a prompt was typed in that turn: the next turn begins with it
}

// NewHooks is of a session to which an earlier broker may have given some.
func NewHooks() Hooks { return Hooks{open: true} }

// State is how a message stands.
func (h *Hooks) State(message string) HookState {
	switch {
	case h.pushed[message]:
		return HookPushed
	case h.announced[message] != 0:
		return HookAnnounced
	default:
		return HookNone
	}
}

// Waits reports whether a hook waits, in any role.
func (h *Hooks) Waits() bool { return len(h.places) > 0 }

// WaitsAs reports whether a hook of that role waits.
func (h *Hooks) WaitsAs(standby bool) bool { return h.places[standby] != nil }

// Wait gives the caller the place of its role; an older hook there is superseded.
func (h *Hooks) Wait(standby bool) Place {
	if h.places == nil {
		h.places = map[bool]Place{}
	}
	if h.WaitsAs(standby) {
		close(h.places[standby])
	}
	h.places[standby] = make(Place)
	return h.places[standby]
}

// Leave gives a place up. It reports false where a newer hook has it.
func (h *Hooks) Leave(standby bool, place Place) bool {
	if h.places[standby] != place {
		return false
	}
	delete(h.places, standby)
	return true
}

// For tells which mail is for the wake hook of that role, as things stand: the first
// takes what was never tried, the standby what was tried once.
func (h *Hooks) For(standby bool) mail.Priority {
	tries := maps.Clone(h.tries)
	return func(d mail.Delivery) bool {
		n := tries[d.ID]
		return n < maxHookTries && standby == (n > 0)
	}
}

// Give notes that a wake hook has mail for the host, some of it only announced.
func (h *Hooks) Give(text mail.Presentation, now int64) {
	h.tries.add(mail.IDs(text.Shown)...)
	h.open, h.begun = true, now
	if h.announced == nil {
		h.announced = map[string]int64{}
	}
	for _, id := range mail.IDs(text.Announced) {
		h.tries.add(id)
		h.announced[id] = now
	}
}

// Push notes that the channel was given mail.
func (h *Hooks) Push(messages []string, now int64) {
	h.tries.add(messages...)
	h.begun = now
	if h.pushed == nil {
		h.pushed = map[string]bool{}
	}
	for _, id := range messages {
		h.pushed[id] = true
	}
}

// Handed notes that the host was handed mail by some way.
func (h *Hooks) Handed(via mail.Via) { h.open = h.open || via.IsWake() }

// Open reports whether the outcome of some wake is not known.
func (h *Hooks) Open() bool { return h.open }

// HasBegun reports whether mail was given to the host after the session's last sign,
// less than within milliseconds ago: its turn may be about to begin.
func (h *Hooks) HasBegun(lastActive, now, within int64) bool {
	return h.begun > lastActive && now-h.begun < within
}

// Announced are the messages that a wake hook told of, with when.
func (h *Hooks) Announced() map[string]int64 { return maps.Clone(h.announced) }

// Sign takes in a sign of the session, and returns the ones before it.
func (h *Hooks) Sign(call session.HookCall, lastActive, settle, now int64) mail.Signs {
	before := mail.Signs{Active: lastActive, Step: h.lastStep, Stop: h.lastStop, Settle: settle}
	switch {
	case call.PromptID != "" && call.PromptID == h.turn:
		before.Turn = h.turnAt
		h.hasNext = h.hasNext || call.Event == session.EventPrompt
	case call.PromptID != "" && h.hasNext: // it began when the turn before ended
		before.Turn = h.lastStop
		h.turn, h.turnAt, h.hasNext = call.PromptID, h.lastStop, false
	case call.PromptID != "":
		h.turn, h.turnAt = call.PromptID, now
	case h.hasNext: // a sign without a turn is of that one
		before.Turn = h.lastStop
	}
	switch call.Event {
	case session.EventStart, session.EventEnd, session.EventInterrupt:
		h.hasNext = h.hasNext && call.Source == "compact"
	case session.EventTool:
		h.lastStep = now
	case session.EventStop:
		h.lastStop = now
	default: // no point at which the host looks for what waits
	}
	return before
}

// HasNext reports whether the end of the present turn is followed by another turn at
// once: a prompt was typed while the host worked. No hook tells of that turn's start.
func (h *Hooks) HasNext() bool { return h.hasNext }

// Shown ends the wake by a message that the host showed.
func (h *Hooks) Shown(message string) {
	delete(h.announced, message)
	delete(h.pushed, message)
}

// Dropped ends the wake by a message that nobody saw, and returns how it stood.
func (h *Hooks) Dropped(message string) HookState {
	before := h.State(message)
	h.Shown(message)
	return before
}

// Judged notes that all known signs were judged; open says that some may be open.
func (h *Hooks) Judged(open bool) { h.open = open || len(h.announced) > 0 }

// Forget drops what an earlier process of the session was given of a message.
func (h *Hooks) Forget(message string) {
	h.Shown(message)
	delete(h.tries, message)
}
