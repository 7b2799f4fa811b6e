package delivery

import (
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/proof"
)

// A route that is proven broken in exactly the version of a session is not chosen (CAN-03).
// The next honest way is, and the sentences say so.

// mailRoutes are the routes by which mail reaches a session in a turn. While one of them
// works, its hooks or its plugin bring mail.
var mailRoutes = []proof.Route{proof.MailAtPrompt, proof.MailAtTool, proof.MailAtStop}

// steps are the steps of a turn at which mail comes, in the order of mailSteps.
var steps = []struct {
	route        proof.Route
	step, broken string
}{
	{proof.MailAtTool, "tool call", " Mail at a tool call is broken since {since}."},
	{proof.MailAtPrompt, "prompt", " Mail at a prompt is broken since {since}."},
	{proof.MailAtStop, "end of a turn", " Mail at the end of a turn is broken since {since}."},
}

// withoutSteps returns the way of mail without the steps at which mail is broken, and says
// that they are. A way by the tools alone names no step.
func (f Facts) withoutSteps(l line) line {
	if l.way == ByTools {
		return l
	}
	var work, broken []string
	for _, s := range steps {
		if f.Broken.Has(s.route) {
			broken = append(broken, f.since(s.route, s.broken))
		} else {
			work = append(work, s.step)
		}
	}
	if len(broken) > 0 {
		l.detail = strings.ReplaceAll(l.detail, mailSteps, strings.Join(work, " or ")) + strings.Join(broken, "")
	}
	return l
}

// hasBrokenWake reports whether the kind's waker is broken. A channel is
// another way, which no proof tries.
func (f Facts) hasBrokenWake() bool {
	return WakerOf(f.Kind) != bridge.NoWaker && !f.Channel && f.Broken.Has(proof.Wake)
}

// since fills in the version since which a route is broken.
func (f Facts) since(route proof.Route, text string) string {
	return f.fill(strings.ReplaceAll(text, "{since}", f.Broken[route]))
}

// withoutBroken returns the way of mail to a session whose usual way is broken, and whether
// it is.
func (f Facts) withoutBroken() (line, bool) {
	switch {
	case f.Channel || !f.Hooks && !f.Plugin:
		return line{}, false
	case f.Broken.Has(mailRoutes...):
		return f.onlyInbox(), true
	case f.hasBrokenWake():
		return f.unwoken(), true
	default:
		return line{}, false
	}
}

// onlyInbox returns the way to a session whose hooks or plugin bring no mail.
func (f Facts) onlyInbox() line {
	l := line{
		way: ByTools, wake: WakeNone,
		detail: f.since(proof.MailAtPrompt, "Mail in a turn is broken since {since}: it waits until the session calls inbox."),
		words:  always(f.since(proof.MailAtPrompt, "It waits in the inbox until {name} looks there: mail in a turn is broken since {since}.")),
	}
	if CanWake(f) {
		l.wake = WakeOpen
		l.detail = f.since(proof.MailAtPrompt, "Mail in a turn is broken since {since}: it waits for a wake, or until the session calls inbox.")
	}
	return l
}

// unwoken returns the way to a session whose wake is broken.
func (f Facts) unwoken() line {
	at := "at its next prompt."
	if f.Broken.Has(proof.MailAtPrompt) {
		at = "in its next turn."
	}
	asleep := f.since(proof.Wake, "; its wake is broken since {since}: it reads mail "+at)
	l := line{
		way: ByHooks, wake: WakeNone,
		detail: byHooks + asleep,
		words:  sentence{busy: busyHooks, idle: f.since(proof.Wake, "Its wake is broken since {since}: {name} reads it "+at)},
	}
	switch {
	case f.Plugin:
		l.way = ByPlugin
		l.detail = "Its plugin hands mail over at the next step" + asleep
		l.words.busy = "The plugin of {name} stores it for the next step; the running turn is not interrupted."
	case f.Mod:
		l.way = ByMod
		l.detail = modWords + asleep
	}
	return l
}

// childRow returns how words reach the native children of the session.
func (f Facts) childRow() childRow {
	child := rowOf(f.Kind).child
	if child.transport == "" || !f.Broken.Has(proof.ToChild) {
		return child
	}
	child = parentOnly
	child.words = f.since(proof.ToChild, "The way to sub-agents is broken since {since}: send a note to their parent {name}.")
	child.limit = f.since(proof.ToChild, "The way to sub-agents is broken since {since}. A note to {name} names the sub-agent and carries your words.")
	return child
}
