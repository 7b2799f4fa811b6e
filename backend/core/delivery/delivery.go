// Package delivery is the one table of how words come to a session: by the kind of
// its agent, for the session itself or for a native child, while it is busy or
// idle. Facts go in; the transport, what mail can do while the session is idle,
// and the sentences about both come out (seed 1; rows CHT-03, CHT-04, CHT-07,
// CHT-08, CHT-10, CHT-18, CHT-20). The broker acts by it and the page prints it.
// Each kind has a file and a row. The package does no I/O.
package delivery

import (
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
)

// Facts are what is known of a session.
type Facts struct {
	Kind      bridge.AgentKind
	Name      string
	SessionID string // host session id, "" until known
	Busy      bool
	Away      bool // known, but not connected
	Channel   bool // it shows channel notifications
	Plugin    bool // a plugin of the host is connected
	Hooks     bool // hooks reported from it
	Threads   bool // the host serves it from a background server
	Mod       bool // a mod is there for this very conversation
	Waiting   bool // a wake hook waits in the background
	Failed    bool // the last push into the host's queue did not reach it
	Problem   bool // something is wrong that the diagnostics tell in words

	AutoWake, WakeOnDirect bool // the session's wake policy
}

// Way is how mail reaches a session, in a word.
type Way string

// The ways.
const (
	ByChannel Way = "channel"
	ByPlugin  Way = "plugin"
	ByMod     Way = "mod" // the owner's words; other mail comes by hooks
	ByHooks   Way = "hooks"
	ByTools   Way = "tools only" // it waits until the session looks for it
)

// Wake is what mail can do for an idle session, as far as its way goes; the wake
// policy decides besides.
type Wake string

// The wakes.
const (
	WakeOpen   Wake = "open"   // it starts a turn
	WakeSlow   Wake = "slow"   // it does, but only some seconds later; the detail says why
	WakeFailed Wake = "failed" // the last one did not reach it; the detail says why
	WakeNone   Wake = "none"   // it waits for the session's own next turn
)

// Waker is what starts a turn of an idle session of a kind.
type Waker int

// The wakers.
const (
	NoWaker     Waker = iota // nothing: it reads at its next turn
	HookWaker                // a hook that waits in the background, or the session's channel
	QueueWaker               // the CLI's own queue
	PluginWaker              // the host's plugin
)

// row is what one kind offers. Texts name the session {name} and the kind {kind}.
type row struct {
	owner  []line // only for the owner's words, before those of mail, best first
	taken  []line // what is said once the CLI's queue took the owner's words
	mail   []line // best first; the last is always open
	child  childRow
	waker  Waker
	asleep string // why an idle one cannot be woken, "" where the waker can
	server string // how a session starts its MCP server again, once that has ended
}

// line is one way to a session of a kind.
type line struct {
	open func(Facts) bool

	// Of mail: the way in a word, its wake, and both in a sentence.
	way    Way
	wake   Wake
	detail string

	// Of the owner's words: the sentence, and where they have a way of their own
	// its transport. refuses says which words do not go that way, and why.
	words   sentence
	by      chat.Transport // chat.Native or chat.Bridge
	refuses func(body string) string
}

// sentence is what is said of words to a busy and to an idle session.
type sentence struct{ busy, idle string }

func always(what string) sentence { return sentence{busy: what, idle: what} }

func (s sentence) of(f Facts) string {
	if f.Busy {
		return f.fill(s.busy)
	}
	return f.fill(s.idle)
}

func (f Facts) fill(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "{kind}", string(f.Kind)), "{name}", f.Name)
}

// childRow is what a kind offers for native children.
type childRow struct {
	by    chat.Transport // "" where only a note to the parent reaches them
	words string
	taken string // after the CLI's queue took them
	brief string // in a few words
	limit string // what the owner cannot do with one
	hint  string // stands before what is said of a note
}

var table = map[bridge.AgentKind]row{
	bridge.Claude:      claude,
	bridge.Codex:       codex,
	bridge.OpenCode:    opencode,
	bridge.Antigravity: antigravity,
}

// Route is the way of the owner's words: the transport, and what people should
// know of it. A Route without a transport is not supported, and Detail says why.
type Route struct {
	Transport chat.Transport
	Thread    string // chat.Native: the id the CLI's queue is addressed by
	Detail    string
	Taken     string // chat.Native: what to say once the queue took them,
	Refused   string // and once it certainly did not
}

// To is the way of the owner's words to a session, or to the native child of that
// id. None interrupts a turn (CHT-03 to CHT-10).
func To(f Facts, child, body string) Route {
	r := table[f.Kind]
	switch {
	case child != "" && r.child.by == chat.Native:
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
	for _, l := range r.owner {
		switch {
		case !l.open(f):
			continue
		case l.refuses != nil && l.refuses(body) != "":
			refusal = l.refuses(body) + ". So it goes to " + f.Name + " as mail: "
		case l.by == chat.Native:
			return Route{
				Transport: chat.Native, Thread: f.SessionID, Detail: l.words.of(f),
				Taken: first(r.taken, f).words.of(f), Refused: f.afterRefusal(),
			}
		default:
			return Route{Transport: chat.Bridge, Detail: l.words.of(f)}
		}
	}
	return Route{Transport: chat.Bridge, Detail: refusal + Note(f)}
}

// Note says how mail of the owner reaches a session: what is for it alone, and
// notes about its native children (CHT-11).
func Note(f Facts) string { return f.mail().words.of(f) }

// Mail is how mail reaches a session, what it can do while the session is idle,
// and both in a sentence that also says why a better way is not open.
func Mail(f Facts) (way Way, wake Wake, detail string) {
	l := f.mail()
	if f.Failed {
		return l.way, WakeFailed, f.fill(l.detail)
	}
	return l.way, l.wake, f.fill(l.detail)
}

// afterRefusal says how words come to a session that its queue has just refused.
func (f Facts) afterRefusal() string {
	f.Failed = true
	return Note(f)
}

func (f Facts) mail() line { return first(table[f.Kind].mail, f) }

// first is the best way that is open.
func first(lines []line, f Facts) line {
	for _, l := range lines {
		if l.open(f) {
			return l
		}
	}
	return line{}
}

// WakerOf is what starts a turn of an idle session of that kind.
func WakerOf(kind bridge.AgentKind) Waker { return table[kind].waker }

// ServerEnded says what a session lacks whose MCP server has ended, and how to start the
// server again (RWM-25).
func ServerEnded(kind bridge.AgentKind) string {
	return "Its MCP server has ended, so it has no tools of Bridge, and only its hooks bring mail. To start the server again, " + table[kind].server + "."
}

// NeverWakes says why no idle session of that kind can be woken, "" where one can.
func NeverWakes(kind bridge.AgentKind) string { return table[kind].asleep }

// CanWake reports whether the kind's waker is there for this session. A failed
// wake may be tried again.
func CanWake(f Facts) bool {
	switch WakerOf(f.Kind) {
	case HookWaker:
		return f.Channel || f.Waiting
	case QueueWaker:
		return f.SessionID != "" && f.Hooks
	case PluginWaker:
		return f.Plugin
	default:
		return false
	}
}

// Words are what the page says of a live session.
type Words struct {
	Owner    string     `json:"owner"`    // how the owner's words reach it
	WokenBy  string     `json:"wokenBy"`  // which mail may start a turn while it is idle
	Obstacle string     `json:"obstacle"` // what keeps mail from its best way, "" where nothing does
	Child    ChildWords `json:"child"`
}

// ChildWords are what the page says of the native children of a session.
type ChildWords struct {
	Direct bool   `json:"direct"` // words may go to the child itself
	Brief  string `json:"brief"`  // what the owner cannot do with one, in a few words
	Limit  string `json:"limit"`  // the same in a sentence
	Hint   string `json:"hint"`   // how words about or to one travel
}

// WordsOf is what the page says of a live session.
func WordsOf(f Facts) Words {
	child := table[f.Kind].child
	return Words{
		Owner:    To(f, "", "any words").Detail,
		WokenBy:  wokenBy(f),
		Obstacle: obstacle(f),
		Child: ChildWords{
			Direct: child.by == chat.Native,
			Brief:  child.brief,
			Limit:  f.fill(child.limit),
			Hint:   f.fill(child.hint+"The note is mail for {name}. ") + Note(f),
		},
	}
}

// wokenBy puts the wake policy into words (CHT-18). The owner's word always may
// wake.
func wokenBy(f Facts) string {
	switch {
	case WakerOf(f.Kind) == NoWaker:
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
	case f.Failed:
		return "It could not be woken."
	case f.Problem:
		return "Something may not work."
	default:
		return ""
	}
}
