// Package chat holds the rules of the owner's words to a live session: which
// transport each agent kind offers, what an outcome may honestly be called, and
// how the words are labelled (seed 1, 2.3, 3.2; rows CHT). It does no I/O.
package chat

import (
	"fmt"
	"strings"
	"unicode"

	"bridge/backend/bridge"
)

// State is how far an owner's message came (CHT-02).
type State string

// The states. None of them says that a message was answered or obeyed.
const (
	Queued       State = "queued"        // stored or accepted, waits for the session
	Delivered    State = "delivered"     // a durable receipt says that it was consumed
	NotSupported State = "not-supported" // cannot be done for this target
	Unconfirmed  State = "unconfirmed"   // nobody knows; never sent again by itself
)

// Transport is the way an owner's message takes (CHT-02).
type Transport string

// The transports.
const (
	Native Transport = "native-prompt" // the agent CLI's own queue
	Bridge Transport = "bridge"        // the session's mail: channel, hooks, plugin or inbox
	Parent Transport = "parent"        // a note to the parent of a native child
)

// Request is what the owner asks for. Child is the id of a native child, ""
// for the session itself; ToParent turns it into a note to the parent.
type Request struct {
	Session  string // peer id
	Body     string
	Child    string
	ToParent bool
	// MessageID names what is stored, so that an unclear outcome can be looked
	// up. "" lets the broker choose.
	MessageID string
}

// Outcome is the honest answer (CHT-02). Message is the stored bridge message
// behind a receipt, "" when there is none; Detail is a sentence for people.
type Outcome struct {
	State     State
	Transport Transport
	Message   string
	Detail    string
}

// Target is what the rules must know of whom the words are for.
type Target struct {
	Kind      bridge.AgentKind
	Name      string
	SessionID string // host session id, "" until known
	Busy      bool
	Away      bool // known, but not connected
	Channel   bool // the session shows channel notifications
	Plugin    bool // a plugin of the host is connected
	Hooks     bool // hooks reported from it
	Threads   bool // the host serves it from a background server
	Mod       bool // claude's mod is there for this very conversation
}

// Route is the way to a target: the transport, and what people should know of
// it. A Route without a transport is not supported, and Detail says why.
type Route struct {
	Transport Transport
	Thread    string // Native: the id the CLI's queue is addressed by
	Detail    string
}

// RouteTo is the one transport table: kind by main or child, busy or idle (seed
// 1). It never chooses a way that would interrupt a turn.
func RouteTo(t Target, child, body string) Route {
	if child != "" {
		return childRoute(t, child)
	}
	switch {
	case t.Away:
		return Route{Transport: Bridge, Detail: "Stored; " + t.Name + " reads it when it is back."}
	case t.Kind == bridge.Codex && t.SessionID != "":
		return Route{Transport: Native, Thread: t.SessionID, Detail: queueWords(t)}
	case t.Kind == bridge.Codex:
		return Route{Transport: Bridge, Detail: t.Name + " has not told its thread yet, so it goes to its inbox."}
	case t.Channel && !t.Busy:
		return Route{Transport: Bridge, Detail: "It goes to " + t.Name + "'s channel."}
	case t.Mod && ModRefusal(body) == "" && t.Busy:
		return Route{Transport: Bridge, Detail: "The mod of " + t.Name + " enters it as a prompt of yours when the turn has ended."}
	case t.Mod && ModRefusal(body) == "":
		return Route{Transport: Bridge, Detail: "The mod of " + t.Name + " enters it as a prompt of yours."}
	case t.Mod:
		return Route{Transport: Bridge, Detail: ModRefusal(body) + ". So it goes to " + t.Name + " as mail: " + hookWords(t)}
	case t.Kind == bridge.Antigravity:
		return Route{Transport: Bridge, Detail: "It waits in the inbox; " + t.Name + " reads it on its next turn."}
	case t.Plugin && t.Busy:
		return Route{Transport: Bridge, Detail: "The plugin of " + t.Name + " stores it at the next step."}
	case t.Plugin:
		return Route{Transport: Bridge, Detail: "The plugin of " + t.Name + " starts a turn with it."}
	case t.Hooks:
		return Route{Transport: Bridge, Detail: hookWords(t)}
	default:
		return Route{Transport: Bridge, Detail: "It waits in the inbox until " + t.Name + " looks there."}
	}
}

func hookWords(t Target) string {
	switch {
	case t.Busy:
		return "The hooks of " + t.Name + " hand it over at the next safe step."
	case t.Kind == bridge.Claude:
		return "A wake hook starts a turn of " + t.Name + " with it, or the next turn shows it. " + WakeCaveat
	default:
		return "A wake hook starts a turn of " + t.Name + " with it, or the next turn shows it."
	}
}

// WakeCaveat is what claude itself says of the text of a wake hook (CHT-03).
const WakeCaveat = "By a wake hook claude tells its model that the text is no user input."

// ModRefusal says why claude's mod cannot enter a text as a prompt, "" when it
// can: claude refuses those two.
func ModRefusal(body string) string {
	switch body = strings.TrimLeftFunc(body, unicode.IsSpace); {
	case body == "":
		return "Claude takes no prompt of white space alone"
	case body[0] == '/':
		return "Claude would run a prompt that begins with / as a command of yours"
	default:
		return ""
	}
}

func queueWords(t Target) string {
	switch {
	case t.Busy:
		return "It goes to codex's queue; " + t.Name + " reads it when its turn has ended."
	case t.Threads:
		return "It goes to codex's queue; " + t.Name + " reads it at once."
	default:
		return "It goes to codex's queue; " + t.Name + " reads it within 10 seconds: " + SeldomQueue + "."
	}
}

// SeldomQueue is why an idle codex may take its time: its interval is fixed, and
// nothing that is open to others makes it look earlier.
const SeldomQueue = "codex looks at its queue every 10 seconds when it runs without its background server"

func childRoute(t Target, child string) Route {
	if t.Kind == bridge.Codex {
		return Route{Transport: Native, Thread: child, Detail: childQueueWords}
	}
	return Route{Detail: fmt.Sprintf("A native child of %s takes no direct input: send a note to its parent %s.", t.Kind, t.Name)}
}

const childQueueWords = "It goes to the child's own queue in codex; the child reads it when its turn has ended."

// ToChild is whom the owner's words to a native child are for, as the history
// says it: they are kept among the messages of its session.
func ToChild(sessionName, childID string) string {
	return sessionName + childMark + childID + ")"
}

// ChildOf is the id of the native child that a message is for, "" for none.
func ChildOf(to string) string {
	_, id, _ := strings.Cut(to, childMark)
	return strings.TrimSuffix(id, ")")
}

const childMark = " (native child "

// QueueResult is how a run of the CLI's queue command ended.
type QueueResult string

// The results. Only what certainly did not happen may be tried another way.
const (
	QueueAccepted    QueueResult = "accepted"    // the CLI took it
	QueueRefused     QueueResult = "refused"     // it certainly did not: never started, or it does not know the thread
	QueueUnsupported QueueResult = "unsupported" // this CLI, or its background server, is too old to know the command
	QueueUnclear     QueueResult = "unclear"     // every other end after it was launched
)

// Settle turns the end of a queue run into the owner's answer (CHT-04 to
// CHT-06, CHT-19). fallback says that a refused message now waits in the
// session's mail.
func Settle(t Target, child string, result QueueResult, reason string) (o Outcome, fallback bool) {
	switch {
	case result == QueueAccepted && child != "":
		return Outcome{State: Queued, Transport: Native, Detail: "codex took it. " + childQueueWords}, false
	case result == QueueAccepted:
		return Outcome{State: Queued, Transport: Native, Detail: "codex took it into its queue. " + queueWords(t)}, false
	case result == QueueUnclear:
		return Outcome{State: Unconfirmed, Transport: Native, Detail: "Unconfirmed: " + reason + ". It is not sent again by itself."}, false
	case child != "":
		return Outcome{State: NotSupported, Transport: Parent, Detail: "codex cannot address this child (" + reason + "): send a note to its parent " + t.Name + "."}, false
	default:
		return Outcome{State: Queued, Transport: Bridge, Detail: "codex's queue did not take it (" + reason + "), so it waits as mail and is read at the next step or turn."}, true
	}
}

// OwnerLabel stands before the owner's words where a transport carries no
// envelope of its own (CHT-04). The words follow it unchanged.
const OwnerLabel = "[From your user, the owner, through the Bridge dashboard]\n\n"

// parentNoteHead begins every ParentNote.
const parentNoteHead = "A note about your native child "

// IsParentNote reports whether a body is a ParentNote: not the owner's words alone.
func IsParentNote(body string) bool { return strings.HasPrefix(body, parentNoteHead) }

// ParentNote is the owner's note to the parent of a native child (CHT-11).
func ParentNote(childID, title, body string) string {
	return fmt.Sprintf(parentNoteHead+"%q (%s):\n\n%s", title, childID, body)
}
