// Package chat holds the rules of the owner's words to a live session: what an
// outcome may honestly be called, and how the words are labelled (seed 2.3, 3.2;
// rows CHT). Which way they take stands in package reach. It does no I/O.
package chat

import (
	"fmt"
	"strings"
	"unicode"
)

// State is how far an owner's message came (CHT-02).
type State string

// The states. None of them says that a message was answered or obeyed.
const (
	Queued       State = "queued"        // stored or accepted, waits for the session
	Delivered    State = "delivered"     // a durable receipt says that it was consumed
	NotSupported State = "not-supported" // cannot be done for this target
	Unconfirmed  State = "unconfirmed"   // the outcome is unknown; never sent again automatically
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
	// ReplyTo names the message that it answers, "" for none.
	ReplyTo string
}

// Outcome is the honest answer (CHT-02). Message is the stored bridge message
// behind a receipt, "" when there is none; Detail is a sentence for people.
type Outcome struct {
	State     State
	Transport Transport
	Message   string
	Detail    string
}

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

// ToChild is whom the owner's words to a native child are for, as the history
// says it: they are kept among the messages of its session.
func ToChild(sessionName, childID string) string {
	return sessionName + childMark + childID + ")"
}

// ChildOf is the id of the native child that a message is for, "" for none.
func ChildOf(addressee string) string {
	_, id, _ := strings.Cut(addressee, childMark)
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

// OutcomeOf turns the end of a queue run into the owner's answer (CHT-04 to
// CHT-06, CHT-19). child is the id of the native child, "" for the session itself;
// accepted and refused are what to say of the words once the queue took them, or did
// not. fallback says that a refused message now waits in the session's mail.
func OutcomeOf(child, accepted, refused string, result QueueResult, reason string) (o Outcome, fallback bool) {
	switch {
	case result == QueueAccepted:
		return Outcome{State: Queued, Transport: Native, Detail: "codex took it. " + accepted}, false
	case result == QueueUnclear:
		return Outcome{State: Unconfirmed, Transport: Native, Detail: "Unconfirmed: " + reason + ". It is not sent again by itself."}, false
	case child != "":
		return Outcome{State: NotSupported, Transport: Parent, Detail: "codex cannot address this child (" + reason + "): " + refused}, false
	default:
		return Outcome{State: Queued, Transport: Bridge, Detail: "codex's queue did not take it (" + reason + "), so it is mail. " + refused}, true
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
