package mail

import (
	"strings"

	"bridge/backend/core/session"
)

// Outcome is what is known of mail that was to begin a turn by itself.
type Outcome int

// The outcomes.
const (
	OutcomeOpen    Outcome = iota // the next signs tell
	OutcomeShown                  // the host showed it to the model
	OutcomeDropped                // nobody saw it: it is unread again
)

// Signs are the last signs of a session before the present one, Unix epoch
// milliseconds, 0 for none yet: of any kind, the end of a step, the end of a turn.
// Settle is how long a host may take to read what it was given, in milliseconds. Turn is
// when the turn of the present sign is known to have begun, 0 where this sign is the first
// of it, or the host does not say which turn it is.
type Signs struct{ Active, Step, Stop, Settle, Turn int64 }

// OutcomeOf judges, from a sign of the session at now, a message that its host was
// given at a time. A host that shows it says so by a prompt that holds it. It may be
// late with that: a turn that a person began meanwhile comes first, and the mail is
// shown in its midst, or after it. So it counts as dropped only when the host had
// its chances (MSG-06).
func (s Signs) OutcomeOf(call session.HookCall, message string, given, now int64) Outcome {
	quietSince := s.Active <= given // no sign before this one
	settled := given + s.Settle     // by then the host has read it, if it ever does
	switch call.Event {
	case session.EventPrompt:
		switch {
		case strings.Contains(call.Prompt, message):
			return OutcomeShown
		case quietSince && s.Active != 0 && now >= settled, s.Step >= settled, s.Stop >= settled:
			return OutcomeDropped // an idle host would have begun with it; a busy one looks after each step and turn
		default:
			return OutcomeOpen
		}
	case session.EventStart, session.EventEnd:
		if call.Source == "compact" {
			return OutcomeOpen
		}
		return OutcomeDropped // what waited went with the process
	default:
		switch {
		case quietSince && !s.isOlder(given):
			return OutcomeShown // this turn began with it, and its prompt was not heard of
		case call.Event == session.EventStop && s.Step >= settled:
			return OutcomeDropped
		default:
			return OutcomeOpen
		}
	}
}

// isOlder reports whether the turn of the present sign began before mail that was given at
// that time: then its signs say nothing of that mail (RWM-21).
func (s Signs) isOlder(given int64) bool { return s.Turn != 0 && s.Turn <= given }

// Overtaken returns the messages that were given in the midst of a turn that ends with
// this sign: the host may show them now, or has lost them.
func (s Signs) Overtaken(call session.HookCall, given map[string]int64) (messages []string) {
	for message, at := range given {
		if call.Event == session.EventStop && s.isOlder(at) {
			messages = append(messages, message)
		}
	}
	return messages
}

// Judge sorts what a host was given, with when, by its outcome. What is left in given
// is open.
func (s Signs) Judge(call session.HookCall, given map[string]int64, now int64) (shown, dropped []string) {
	for message, at := range given {
		switch s.OutcomeOf(call, message, at, now) {
		case OutcomeShown:
			shown = append(shown, message)
		case OutcomeDropped:
			dropped = append(dropped, message)
		case OutcomeOpen:
			continue
		}
		delete(given, message)
	}
	return shown, dropped
}

// maxModTries is how often a message may be given to a mod that says nothing of
// it and leaves no trace.
const maxModTries = 2

// ModTrace is what is known of a message that a mod was to enter as a prompt and
// has not spoken of: the mod was loaded anew, claude or the broker ended.
type ModTrace struct {
	Shown   bool // the present sign is a prompt of exactly these words
	Entered bool // the host's transcript holds them as a prompt
	Known   bool // the transcript was read
	Quiet   bool // the session is at rest, and long enough
	Tries   int  // how often it was given to a mod
}

// ModOutcome is what became of a message that a mod was given.
type ModOutcome int

// The outcomes.
const (
	ModOpen         ModOutcome = iota // the next signs tell
	ModShown                          // the host showed it as a prompt
	ModInTranscript                   // the host's transcript holds it
	ModAgain                          // it never was entered: a mod may try once more
	ModGivenUp                        // it never was entered: it is ordinary mail
)

// Outcome judges by the prompt's own trace. Where there is none although the session
// is at rest, it never was entered (CHT-20).
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
