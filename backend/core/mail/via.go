package mail

import (
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
)

// Via says which way a delivery reached a stage. Every rule about a delivery's
// truth asks it; the evidence beside it is for people.
type Via string

// The ways. Not known is "".
const (
	ViaHook         Via = "hook"          // a hook printed it into the running turn
	ViaWakeHook     Via = "wake-hook"     // a hook that waited in the background of an idle session gave it to the host
	ViaChannel      Via = "channel"       // it was pushed into the session's channel
	ViaMod          Via = "mod"           // claude's mod submitted it as a prompt
	ViaPlugin       Via = "plugin"        // the host's plugin stored it in the session
	ViaTool         Via = "tool"          // the answer of a tool call carried it
	ViaQueue        Via = "queue"         // the CLI's own queue took it
	ViaQueueUnclear Via = "queue-unclear" // it may be in the CLI's own queue
	ViaActivity     Via = "activity"      // the session went on after it was handed over
	ViaPrompt       Via = "prompt"        // the host showed it as a prompt
	ViaTranscript   Via = "transcript"    // the host's own store holds it
	ViaReply        Via = "reply"         // the recipient replied to it
)

// IsWake reports whether the message itself was to begin a turn: the host does so
// some seconds later, shows it in a turn that a person began meanwhile, or drops
// it.
func (v Via) IsWake() bool { return v == ViaWakeHook || v == ViaChannel }

// InQueue reports whether the message went to the agent CLI's own queue.
func (v Via) InQueue() bool { return v == ViaQueue || v == ViaQueueUnclear }

// ShownLater reports whether the session's next activity says nothing about a
// message that was handed over this way, because its turn may come much later,
// or never: only what shows it does.
func (v Via) ShownLater() bool { return v.IsWake() || v.InQueue() || v == ViaMod }

// Evidence says in words how a message was handed over: detail is the host's event,
// the tool, or what is known of a queue. Older programs of the same home know the
// ways by these words, so they stay.
func (v Via) Evidence(detail string) string {
	switch v {
	case ViaWakeHook:
		return "wake hook"
	case ViaChannel:
		return "channel notification"
	case ViaMod:
		return "its mod submitted it as a prompt"
	case ViaPlugin:
		return strings.TrimSpace("plugin " + detail)
	case ViaQueue:
		return "codex queue took it"
	case ViaQueueUnclear:
		return "codex queue: " + detail
	default:
		return strings.TrimSpace(string(v) + " " + detail)
	}
}

// ViaOf reads the way from the words of a stage that was stored without one, by
// a version before it or by an older program beside this one.
func ViaOf(stage bridge.Stage, evidence string) Via {
	begins := func(words string) bool { return strings.HasPrefix(evidence, words) }
	switch {
	case evidence == "wake hook", stage == bridge.StageWoken && begins("its wake hook"):
		return ViaWakeHook
	case evidence == "channel notification":
		return ViaChannel
	case evidence == "codex queue took it", stage == bridge.StageWoken && begins("codex"):
		return ViaQueue
	case begins("codex queue"):
		return ViaQueueUnclear
	case begins("hook "):
		return ViaHook
	case begins("tool "):
		return ViaTool
	case begins("opencode "), begins("plugin"), begins("its plugin"):
		return ViaPlugin
	case begins("its mod"):
		return ViaMod
	case begins("next activity"):
		return ViaActivity
	case begins("codex showed it"):
		return ViaPrompt
	case begins("reply "):
		return ViaReply
	default:
		return ""
	}
}

// ViaOfQueue is the way of the owner's words that a queue did not refuse, with what
// is known of it.
func ViaOfQueue(result chat.QueueResult, reason string) (via Via, detail string) {
	if result == chat.QueueUnclear {
		return ViaQueueUnclear, "unconfirmed, " + reason
	}
	return ViaQueue, ""
}
