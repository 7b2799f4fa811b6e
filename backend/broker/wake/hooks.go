package wake

import (
	"maps"

	"bridge/backend/core/mail"
	"bridge/backend/core/session"
)

// maxHookTries is how often one message may be given to wake hooks.
const maxHookTries = 2

// Slot is where a wake hook waits. It is closed when a newer hook takes the place.
type Slot chan struct{}

// HookState is the state of one message that a wake hook or the channel was given.
type HookState int

// The states. For mail that was given whole, the store holds the time.
const (
	HookNone      HookState = iota // nothing was tried, or the outcome is known
	HookAnnounced                  // a wake hook only announced it, because it is long
	HookPushed                     // it was given to the channel
)

// Hooks is the state of one claude session's wakes by waiting hooks and by the channel
// (CHT-03). The zero value means that no mail was given, as far as this broker knows.
type Hooks struct {
	// places holds the hooks that wait in the background, by role: false is the first,
	// true the standby.
	places map[bool]Slot
	tries  tries
	// open is set if the host may hold mail whose outcome no sign of the session has
	// shown yet.
	open      bool
	announced map[string]int64 // when announced, by message id: HookAnnounced
	pushed    map[string]bool  // by message id: HookPushed
	// The last ends of a step and of a turn, and when mail was last given to the host,
	// Unix epoch milliseconds.
	lastStep, lastStop, lastHandover int64

	turn    string // the host's id of the prompt that began its turn, "" if unknown
	turnAt  int64  // when that id was first received, Unix epoch milliseconds
	hasNext bool   // a prompt was typed in that turn: the next turn begins with it
}

// NewHooks returns the state of a session to which an earlier broker may have given mail.
func NewHooks() Hooks { return Hooks{open: true} }

// State returns the state of a message.
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

// Wait gives the caller the place of its role and supersedes an older hook there.
func (h *Hooks) Wait(standby bool) Slot {
	if h.places == nil {
		h.places = map[bool]Slot{}
	}
	if h.WaitsAs(standby) {
		close(h.places[standby])
	}
	h.places[standby] = make(Slot)
	return h.places[standby]
}

// Leave gives up a place. It returns false if a newer hook has it.
func (h *Hooks) Leave(standby bool, place Slot) bool {
	if h.places[standby] != place {
		return false
	}
	delete(h.places, standby)
	return true
}

// For returns the filter for mail that the wake hook of that role may take now. The first
// takes mail never tried, the standby mail tried once.
func (h *Hooks) For(standby bool) mail.Priority {
	tries := maps.Clone(h.tries)
	return func(d mail.Delivery) bool {
		n := tries[d.ID]
		return n < maxHookTries && standby == (n > 0)
	}
}

// Give records that a wake hook got mail for the host, some of it only announced.
func (h *Hooks) Give(text mail.Presentation, now int64) {
	h.tries.add(mail.IDs(text.Shown)...)
	h.open, h.lastHandover = true, now
	if h.announced == nil {
		h.announced = map[string]int64{}
	}
	for _, id := range mail.IDs(text.Announced) {
		h.tries.add(id)
		h.announced[id] = now
	}
}

// Push records that the channel was given mail.
func (h *Hooks) Push(messages []string, now int64) {
	h.tries.add(messages...)
	h.lastHandover = now
	if h.pushed == nil {
		h.pushed = map[string]bool{}
	}
	for _, id := range messages {
		h.pushed[id] = true
	}
}

// Handed records that the host was handed mail via some transport.
func (h *Hooks) Handed(via mail.Via) { h.open = h.open || via.IsWake() }

// Open reports whether the outcome of some wake is unknown.
func (h *Hooks) Open() bool { return h.open }

// TurnMayStart reports whether mail was given to the host after the session's last sign, less
// than within milliseconds ago. Its turn may be about to begin.
func (h *Hooks) TurnMayStart(lastActive, now, within int64) bool {
	return h.lastHandover > lastActive && now-h.lastHandover < within
}

// Announced returns when each message was announced by a wake hook, by id.
func (h *Hooks) Announced() map[string]int64 { return maps.Clone(h.announced) }

// Sign records a sign of the session and returns the signs before it.
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
	case h.hasNext: // a sign without a turn belongs to that turn
		before.Turn = h.lastStop
	}
	switch call.Event {
	case session.EventStart, session.EventEnd, session.EventInterrupt:
		h.hasNext = h.hasNext && call.Source == "compact"
	case session.EventTool:
		h.lastStep = now
	case session.EventStop:
		h.lastStop = now
	default: // the host does not check for waiting mail here
	}
	return before
}

// HasNext reports whether another turn follows the present one at once, because a prompt
// was typed while the host worked. No hook reports the start of that turn.
func (h *Hooks) HasNext() bool { return h.hasNext }

// Shown ends the wake of a message that the host showed.
func (h *Hooks) Shown(message string) {
	delete(h.announced, message)
	delete(h.pushed, message)
}

// Dropped ends the wake of a message that was not seen, and returns its earlier state.
func (h *Hooks) Dropped(message string) HookState {
	before := h.State(message)
	h.Shown(message)
	return before
}

// Judged records that all known signs were judged. open is set if some outcome may be unknown.
func (h *Hooks) Judged(open bool) { h.open = open || len(h.announced) > 0 }

// Forget drops what an earlier process of the session was given of a message.
func (h *Hooks) Forget(message string) {
	h.Shown(message)
	delete(h.tries, message)
}
