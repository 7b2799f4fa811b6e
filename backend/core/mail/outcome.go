package mail

import (
	"strings"

	"bridge/backend/core/session"
)

// Outcome is the outcome of mail that should begin a turn automatically.
type Outcome int

// The outcomes.
const (
	OutcomeOpen    Outcome = iota // the next signs decide
	OutcomeShown                  // the host showed it to the model
	OutcomeDropped                // the host did not show it: it is unread again
)

// Signs are the last signs of a session before the current one, in Unix epoch
// milliseconds, 0 for none: of any kind, the end of a step, the end of a turn. Settle
// is how long a host may take to read its input, in milliseconds. Turn is the known
// start of the current sign's turn. It is 0 if this sign is the first, or the host
// names no turn.
type Signs struct{ Active, Step, Stop, Settle, Turn int64 }

// OutcomeOf evaluates a sign of the session at now for a message that its host received
// at deliveredAt. A host that shows the message reports a prompt with it. That may be late: a
// turn of a person may come first, and the mail appears during or after it. So the mail
// counts as dropped only after the host had its chances (MSG-06).
func (s Signs) OutcomeOf(call session.HookCall, message string, deliveredAt, now int64) Outcome {
	quietSince := s.Active <= deliveredAt // no sign before this one
	settled := deliveredAt + s.Settle     // by then the host has read it, or never will
	switch call.Event {
	case session.EventPrompt:
		switch {
		case strings.Contains(call.Prompt, message):
			return OutcomeShown
		case quietSince && s.Active != 0 && now >= settled, s.Step >= settled, s.Stop >= settled:
			return OutcomeDropped // an idle host would have begun with it; a busy one checks after each step and turn
		default:
			return OutcomeOpen
		}
	case session.EventStart, session.EventEnd:
		if call.Source == "compact" {
			return OutcomeOpen
		}
		return OutcomeDropped // the waiting mail was lost with the process
	default:
		switch {
		case quietSince && !s.isOlder(deliveredAt):
			return OutcomeShown // this turn began with it, and its prompt was not reported
		case call.Event == session.EventStop && s.Step >= settled:
			return OutcomeDropped
		default:
			return OutcomeOpen
		}
	}
}

// isOlder reports whether the current sign's turn began before the mail was given. Then
// its signs are no evidence about that mail (RWM-21).
func (s Signs) isOlder(deliveredAt int64) bool { return s.Turn != 0 && s.Turn <= deliveredAt }

// Overtaken returns the messages that were given during a turn that ends with this
// sign: the host may show them now, or has lost them.
func (s Signs) Overtaken(call session.HookCall, deliveries map[string]int64) (messages []string) {
	for message, at := range deliveries {
		if call.Event == session.EventStop && s.isOlder(at) {
			messages = append(messages, message)
		}
	}
	return messages
}

// Judge sorts the messages that a host received, with their times, by outcome. It
// leaves the open ones in deliveries.
func (s Signs) Judge(call session.HookCall, deliveries map[string]int64, now int64) (presented, dropped []string) {
	for message, at := range deliveries {
		switch s.OutcomeOf(call, message, at, now) {
		case OutcomeShown:
			presented = append(presented, message)
		case OutcomeDropped:
			dropped = append(dropped, message)
		case OutcomeOpen:
			continue
		}
		delete(deliveries, message)
	}
	return presented, dropped
}

// maxModTries limits how often a message is given to a mod that does not report on it
// and leaves no trace.
const maxModTries = 2

// ModTrace is the data about a message without a report from its mod: the mod was
// reloaded, or claude or the broker ended.
type ModTrace struct {
	Shown   bool // the current sign is a prompt with exactly this text
	Entered bool // the host's transcript has it as a prompt
	Known   bool // the transcript was read
	Quiet   bool // the session is idle, and has been for long enough
	Tries   int  // how often a mod received it
}

// ModOutcome is the outcome of a message that a mod received.
type ModOutcome int

// The outcomes.
const (
	ModOpen         ModOutcome = iota // the next signs decide
	ModShown                          // the host showed it as a prompt
	ModInTranscript                   // the host's transcript has it
	ModAgain                          // it was never entered: a mod may retry
	ModGivenUp                        // it was never entered: it is ordinary mail
)

// Outcome evaluates the prompt's own trace. If there is no trace although the session
// is idle, the prompt was never entered (CHT-20).
func (t ModTrace) Outcome() ModOutcome {
	switch {
	case t.Shown:
		return ModShown
	case t.Entered:
		return ModInTranscript
	case !t.Known || !t.Quiet:
		return ModOpen
	case t.Tries < maxModTries:
		return ModAgain
	default:
		return ModGivenUp
	}
}
