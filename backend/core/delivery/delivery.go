// Package delivery is the table of how messages reach a session or its native child. It
// depends on what wakes an idle session of the agent's kind (the trait Waker), and on
// whether the session is busy or idle. From facts it derives the transport, the wake of an
// idle session, and the sentences about both (seed 1; rows CHT-03, CHT-04, CHT-07, CHT-08,
// CHT-10, CHT-18, CHT-20). The broker acts on it and the page shows it. Each waker has a
// file and a row. The package does no I/O.
package delivery

import (
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/proof"
)

// Facts are the known facts about a session.
type Facts struct {
	Kind      bridge.AgentKind
	Name      string
	SessionID string // host session id, "" if unknown
	Busy      bool
	Away      bool // known, but not connected
	Channel   bool // it shows channel notifications
	Plugin    bool // a plugin of the host is connected
	Hooks     bool // hooks have reported from it
	Threads   bool // the host serves it from a background server
	Mod       bool // a mod runs in exactly this conversation
	Waiting   bool // a wake hook waits in the background
	Failed    bool // the last push into the host's queue failed
	Problem   bool // the diagnostics report a problem

	// Broken are the routes that are proven broken in exactly the session's version.
	Broken proof.Faults

	AutoWake, WakeOnDirect bool // the session's wake policy
}

// Way is how mail reaches a session, as one word.
type Way string

// The ways.
const (
	ByChannel Way = "channel"
	ByPlugin  Way = "plugin"
	ByMod     Way = "mod" // the owner's messages; other mail comes through hooks
	ByHooks   Way = "hooks"
	ByTools   Way = "tools only" // it waits until the session polls
)

// Wake is the effect of mail on an idle session by its way; the wake policy also
// applies.
type Wake string

// The wakes.
const (
	WakeOpen   Wake = "open"   // it starts a turn
	WakeSlow   Wake = "slow"   // it starts a turn some seconds later; the detail says why
	WakeFailed Wake = "failed" // the last one failed; the detail says why
	WakeNone   Wake = "none"   // it waits for the session's own next turn
)

// row is the entry of the kinds with one waker. Texts name the session {name} and the kind {kind}.
type row struct {
	owner  []line // only for the owner's messages, before those of mail, best first
	taken  []line // shown after the CLI's queue accepted the owner's message
	mail   []line // best first; the last is always open
	child  childRow
	asleep string // why an idle one cannot be woken, "" if the waker can
}

// line is one way to a session.
type line struct {
	open func(Facts) bool

	// For mail: the way as a word, its wake, and both in a sentence.
	way    Way
	wake   Wake
	detail string

	// For the owner's messages: the sentence and, if they have a separate way, its
	// transport. refuses returns why a message cannot use that way.
	words     sentence
	transport chat.Transport // chat.Native or chat.Bridge
	refuses   func(body string) string
}

// sentence is the text about messages to a busy and to an idle session.
type sentence struct{ busy, idle string }

func always(what string) sentence { return sentence{busy: what, idle: what} }

func (s sentence) textFor(f Facts) string {
	if f.Busy {
		return f.fill(s.busy)
	}
	return f.fill(s.idle)
}

func (f Facts) fill(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "{kind}", string(f.Kind)), "{name}", f.Name)
}

// childRow is the entry for native children.
type childRow struct {
	transport chat.Transport // "" if only a note to the parent reaches them
	words     string
	taken     string // after the CLI's queue accepted the message
	brief     string // a short form
	limit     string // what the owner cannot do with one
	hint      string // precedes the sentence about a note
}

// rows holds the row of each waker.
var rows = map[bridge.Waker]row{
	bridge.HookWaker:   hookRow,
	bridge.QueueWaker:  queueRow,
	bridge.PluginWaker: pluginRow,
	bridge.NoWaker:     noneRow,
}

// rowOf returns the row of a kind. It returns the zero value for the owner and for an
// unknown kind.
func rowOf(kind bridge.AgentKind) row {
	traits := bridge.TraitsOf(kind)
	if traits.Kind == "" {
		return row{}
	}
	return rows[traits.Waker]
}

// Route is the way of the owner's messages: the transport, and a description for
// people. A Route without a transport is not supported, and Detail has the reason.
type Route struct {
	Transport chat.Transport
	Thread    string // chat.Native: the id that addresses the CLI's queue
	Detail    string
	Taken     string // chat.Native: the text after the queue accepted it,
	Refused   string // and after it certainly did not
}

// To returns the way of the owner's message to a session, or to the native child with
// that id. No way interrupts a turn (CHT-03 to CHT-10).
func To(f Facts, child, body string) Route {
	r := rowOf(f.Kind)
	r.child = f.childRow()
	switch {
	case child != "" && r.child.transport == chat.Native:
		return Route{
			Transport: chat.Native, Thread: child, Detail: f.fill(r.child.words),
			Taken: f.fill(r.child.taken), Refused: f.fill("send a note to its parent {name}."),
		}
	case child != "":
		return Route{Detail: f.fill(r.child.words)}
	case f.Away:
		return Route{Transport: chat.Bridge, Detail: f.fill("Stored; {name} reads it when it is back.")}
	}
	refusal := ""
	if len(r.owner) > 0 && f.Broken.Has(proof.YourWords) {
		r.owner, refusal = nil, f.since(proof.YourWords, "The way of your words is broken since {since}, so they go to {name} as mail: ")
	}
	for _, l := range r.owner {
		switch {
		case !l.open(f):
			continue
		case l.refuses != nil && l.refuses(body) != "":
			refusal = l.refuses(body) + ". So it goes to " + f.Name + " as mail: "
		case l.transport == chat.Native:
			return Route{
				Transport: chat.Native, Thread: f.SessionID, Detail: l.words.textFor(f),
				Taken: first(r.taken, f).words.textFor(f), Refused: f.afterRefusal(),
			}
		default:
			return Route{Transport: chat.Bridge, Detail: l.words.textFor(f)}
		}
	}
	return Route{Transport: chat.Bridge, Detail: refusal + Note(f)}
}

// Note returns how mail of the owner reaches a session: mail to the session, and notes
// about its native children (CHT-11).
func Note(f Facts) string { return f.mail().words.textFor(f) }

// Mail returns how mail reaches a session, its effect on an idle session, and a
// sentence about both. The sentence also says why a better way is unavailable.
func Mail(f Facts) (way Way, wake Wake, detail string) {
	l := f.mail()
	if f.Failed && !f.hasBrokenWake() {
		return l.way, WakeFailed, f.fill(l.detail)
	}
	return l.way, l.wake, f.fill(l.detail)
}

// afterRefusal returns how a message reaches a session after its queue refused it.
func (f Facts) afterRefusal() string {
	f.Failed = true
	return Note(f)
}

func (f Facts) mail() line {
	if l, is := f.withoutBroken(); is {
		return f.withoutSteps(l)
	}
	return f.withoutSteps(first(rowOf(f.Kind).mail, f))
}

// first returns the best available way.
func first(lines []line, f Facts) line {
	for _, l := range lines {
		if l.open(f) {
			return l
		}
	}
	return line{}
}

// WakerOf returns what wakes an idle session of that kind.
func WakerOf(kind bridge.AgentKind) bridge.Waker { return bridge.TraitsOf(kind).Waker }

// ServerEnded returns the effects of an ended MCP server on a session, and how to
// restart the server (RWM-25).
func ServerEnded(kind bridge.AgentKind) string {
	return "Its MCP server has ended, so it has no tools of Bridge, and only its hooks bring mail. To start the server again, " + bridge.TraitsOf(kind).MCP.Restart + "."
}

// NeverWakes returns why no idle session of that kind can be woken, or "".
func NeverWakes(kind bridge.AgentKind) string { return Facts{Kind: kind}.fill(rowOf(kind).asleep) }

// CanWake reports whether the kind's waker is available for this session. A failed wake
// may be retried.
func CanWake(f Facts) bool {
	if f.hasBrokenWake() {
		return false
	}
	switch WakerOf(f.Kind) {
	case bridge.HookWaker:
		return f.Channel || f.Waiting
	case bridge.QueueWaker:
		return f.SessionID != "" && f.Hooks
	case bridge.PluginWaker:
		return f.Plugin
	default:
		return false
	}
}

// Words are the texts of the page about a live session.
type Words struct {
	Owner    string     `json:"owner"`    // how the owner's messages reach it
	WokenBy  string     `json:"wokenBy"`  // which mail may start a turn while it is idle
	Obstacle string     `json:"obstacle"` // why mail cannot use its best way, or ""
	Child    ChildWords `json:"child"`
}

// ChildWords are the texts of the page about the native children of a session.
type ChildWords struct {
	Direct bool   `json:"direct"` // messages may go to the child directly
	Brief  string `json:"brief"`  // the limits for the owner, in short
	Limit  string `json:"limit"`  // the same as a sentence
	Hint   string `json:"hint"`   // how messages about or to a child are delivered
}

// WordsOf returns the texts of the page about a live session.
func WordsOf(f Facts) Words {
	child := f.childRow()
	return Words{
		Owner:    To(f, "", "any words").Detail,
		WokenBy:  wokenBy(f),
		Obstacle: obstacle(f),
		Child: ChildWords{
			Direct: child.transport == chat.Native,
			Brief:  f.fill(child.brief),
			Limit:  f.fill(child.limit),
			Hint:   f.fill(child.hint+"The note is mail for {name}. ") + Note(f),
		},
	}
}

// wokenBy describes the wake policy (CHT-18). The owner's message may always wake.
func wokenBy(f Facts) string {
	switch {
	case f.hasBrokenWake():
		return f.since(proof.Wake, "none: its wake is broken since {since}")
	case WakerOf(f.Kind) == bridge.NoWaker:
		return f.fill("none: an idle {kind} reads at its next turn")
	case f.AutoWake:
		return "any mail that may wake; auto-wake is on"
	case f.WakeOnDirect:
		return "only mail to exactly its name or id; auto-wake is off"
	default:
		return "only your own words; auto-wake is off"
	}
}

func obstacle(f Facts) string {
	switch {
	case f.mail().way == ByTools:
		return "Only its inbox is open."
	case f.hasBrokenWake():
		return f.since(proof.Wake, "Its wake is broken since {since}.")
	case f.Failed:
		return "It could not be woken."
	case f.Problem:
		return "Something may not work."
	default:
		return ""
	}
}
