// Package prompt has the rules of permission prompts of interactive sessions (row
// NED-02): when one becomes a card, which answers are valid, and the outcome of an
// answer. Bridge only adds the owner's answer: the terminal's own prompt continues, the
// first answer wins, and silence decides nothing. It does no I/O.
package prompt

import (
	"time"
	"unicode/utf8"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// Mode is the owner's setting answerPrompts: when prompts of the owner's sessions
// become cards to answer.
type Mode string

// The modes.
const (
	Off    Mode = "off"    // never
	Away   Mode = "away"   // while away mode is on
	Always Mode = "always" // also while a page is open
)

// Modes returns all modes.
func Modes() []Mode { return []Mode{Off, Away, Always} }

// ParseMode returns the mode of that name, Off for "". The error lists the choices.
func ParseMode(raw string) (Mode, error) {
	switch mode := Mode(raw); mode {
	case "":
		return Off, nil
	case Off, Away, Always:
		return mode, nil
	}
	return "", bridge.Errorf(bridge.Invalid, "answerPrompts is %q: use off, away or always", raw)
}

// Watch is the state that decides whether a card would be seen.
type Watch struct {
	Away bool // away mode is on
	Page bool // a page is open
	// Free reports that a wait for the owner does not block the session: no process of
	// its agent waits for the answer.
	Free bool
}

// Shows reports whether a new prompt becomes a card. It returns false if the owner
// would not see the card.
func (m Mode) Shows(w Watch) bool {
	switch m {
	case Away:
		return w.Away
	case Always:
		return w.Away || w.Page || w.Free
	case Off:
	}
	return false
}

// MaxChars limits the display of one prompt: a partial one may not be asked.
const MaxChars = 16_000

// TooLong is why a longer prompt cannot be answered here.
const TooLong = "it has more than 16,000 characters, too many to be shown here"

// Prompt is one permission prompt of an interactive session. Its Job is "", and its
// Session the session's name. It never expires: if its waiting process ends, only the
// terminal decides.
type Prompt struct {
	job.Approval
	HostID string // the agent's own id of the session
	Child  string // the native child that asks, "" for the session
	Call   string // the key of the tool call (session.CallKey), "" if no event reports it
}

// Ask returns an open prompt.
func Ask(p Prompt, at time.Time) Prompt {
	p.State, p.AskedAt = job.ApprovalAsked, job.Millis(at.UnixMilli())
	p.ExpiresAt, p.AnsweredAt, p.AnsweredBy, p.Decision, p.Reason, p.Elsewhere, p.Answers = 0, 0, "", "", "", "", nil
	p.Chars = utf8.RuneCountInString(p.Detail)
	if p.Chars+utf8.RuneCountInString(p.What) > MaxChars {
		p.Detail, p.Choices, p.OnlyTold = "", nil, TooLong
	}
	return p
}

// Answer decides an open prompt; the first answer wins. It fails with Conflict if the
// prompt is not open or cannot be answered here. Then the prompt is unchanged.
func (p *Prompt) Answer(answerer string, decision job.Decision, reason string, at time.Time) error {
	switch {
	case p.State == job.ApprovalAsked && p.OnlyTold != "":
		return bridge.Errorf(bridge.Conflict, "this can only be answered in the terminal: %s", p.OnlyTold)
	case p.State == job.ApprovalWithdrawn:
		return bridge.Errorf(bridge.Conflict, "%s: this answer did nothing", Words(p.Elsewhere))
	case p.State == job.ApprovalAsked && decision == job.Allow && len(p.Choices) > 0:
		return bridge.Errorf(bridge.Invalid, "its model asks something itself: choose an answer on Bridge's page, in its terminal, or by `%s`: %s",
			job.ApproveText(p.ID, p.Choices), job.Offers(p.Choices))
	}
	return p.Approval.Answer(answerer, decision, reason, at)
}

// Pick is Choose with the owner's picks from a command (job.Picked).
func (p *Prompt) Pick(answerer string, picks []job.Pick, at time.Time) error {
	var answers [][]string
	if p.State == job.ApprovalAsked && p.OnlyTold == "" {
		var err error
		if answers, err = job.Picked(p.Choices, picks); err != nil {
			return err
		}
	}
	return p.Choose(answerer, answers, at)
}

// Choose answers the model's own questions: for each, in order, the chosen options or
// free text. It is an answer like any other.
func (p *Prompt) Choose(answerer string, answers [][]string, at time.Time) error {
	if p.State == job.ApprovalAsked && p.OnlyTold == "" {
		if err := job.CheckAnswers(p.Choices, answers); err != nil {
			return err
		}
	}
	after := *p
	after.Choices = nil
	if err := after.Answer(answerer, job.Allow, "", at); err != nil {
		return err
	}
	after.Choices, after.Answers = p.Choices, answers
	*p = after
	return nil
}

// Sign is an observation about a prompt at its session.
type Sign int

// The signs.
const (
	Allowed Sign = iota // its call ran, or its agent reports that it was allowed
	Refused             // its agent reports that it was refused
	WentOn              // the turn ended, and the call never ran
	Closed              // its dialog is gone; the answer is unknown
	Stopped             // its agent ended the waiting process: rejected there, or the agent is ending
	Gone                // the session ended or continued with other work
	Unheld              // the process that waits for the answer has ended
)

// Signs returns all signs.
func Signs() []Sign { return []Sign{Allowed, Refused, WentOn, Closed, Stopped, Gone, Unheld} }

// elsewhere maps a sign to the end of a prompt that was not answered here.
var elsewhere = map[Sign]Elsewhere{
	Allowed: WasAllowed, Refused: WasRefused, WentOn: WasAnswered, Closed: WasAnswered, Stopped: WasStopped, Gone: WasGone, Unheld: WasUnheld,
}

// Elsewhere is how a prompt ended without the owner's answer from here.
type Elsewhere = job.Elsewhere

// The ends.
const (
	WasAllowed  Elsewhere = "allowed"  // allowed at the terminal
	WasRefused  Elsewhere = "refused"  // refused at the terminal
	WasAnswered Elsewhere = "answered" // answered at the terminal; the answer is unknown
	WasStopped  Elsewhere = "stopped"  // rejected at the terminal, or the agent has ended
	WasGone     Elsewhere = "gone"     // the session has ended or continued with other work
	WasUnheld   Elsewhere = "unheld"   // no process waits for our answer any more: the terminal decides
	// WasUnclear is an answer of the owner with an unknown effect.
	WasUnclear Elsewhere = "unclear"
)

// See applies a sign and reports whether the prompt changed. Only a sign that agrees
// with a delivered answer proves that it was applied.
func (p *Prompt) See(sign Sign) bool {
	switch p.State {
	case job.ApprovalAsked:
		return p.end(elsewhere[sign])
	case job.ApprovalAnswered: // it is in transit, or already there
		return p.end(p.lateEnd(sign))
	case job.ApprovalDelivered:
		return p.seeDelivered(sign)
	case job.ApprovalWithdrawn:
		known := p.Elsewhere == WasAllowed || p.Elsewhere == WasRefused
		if p.Decision == "" && !known && (sign == Allowed || sign == Refused) {
			p.Elsewhere = elsewhere[sign] // the end of a turn may arrive before its cause
			return true
		}
	case job.ApprovalApplied, job.ApprovalExpired:
	}
	return false
}

// lateEnd returns the end of a prompt whose answer may not have arrived.
func (p *Prompt) lateEnd(sign Sign) Elsewhere {
	switch {
	case sign == Allowed && p.Decision == job.Deny:
		return WasAllowed
	case sign == Refused && p.Decision == job.Allow:
		return WasRefused
	default:
		return WasUnclear
	}
}

func (p *Prompt) seeDelivered(sign Sign) bool {
	allowed := p.Decision == job.Allow
	switch sign {
	case Allowed, Refused, WentOn:
		if allowed == (sign == Allowed) {
			return p.Apply() == nil
		}
		return p.end(p.lateEnd(sign))
	case Gone:
		return p.end(WasUnclear)
	case Closed, Stopped, Unheld: // these also follow a normal answer
	}
	return false
}

func (p *Prompt) end(how Elsewhere) bool {
	if p.Withdraw() != nil {
		return false
	}
	p.Elsewhere = how
	return true
}

// Words returns how a prompt ended, as a sentence without its full stop.
func Words(how Elsewhere) string {
	switch how {
	case WasAllowed:
		return "it was allowed at the terminal"
	case WasRefused:
		return "it was refused at the terminal"
	case WasAnswered:
		return "it was answered at the terminal"
	case WasStopped:
		return "it was turned down at the terminal, or its agent has ended"
	case WasGone:
		return "its session has ended or went on to something else"
	case WasUnheld:
		return "nobody waits for an answer from here any more: the terminal decides"
	case WasUnclear:
		return "whether your answer did anything is not known"
	}
	return "it is over"
}
