package mail

import (
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
)

// Via is how a delivery reached a stage. Every rule about a delivery's state depends on
// it; the evidence is only for people.
type Via string

// The ways; "" if unknown.
const (
	ViaHook         Via = "hook"          // a hook printed it into the current turn
	ViaWakeHook     Via = "wake-hook"     // a background hook of an idle session gave it to the host
	ViaChannel      Via = "channel"       // it was sent to the session's channel
	ViaMod          Via = "mod"           // claude's mod submitted it as a prompt
	ViaPlugin       Via = "plugin"        // the host's plugin stored it in the session
	ViaTool         Via = "tool"          // the answer of a tool call carried it
	ViaQueue        Via = "queue"         // the CLI's own queue accepted it
	ViaQueueUnclear Via = "queue-unclear" // it may be in the CLI's own queue
	ViaActivity     Via = "activity"      // the session continued after the hand-over
	ViaPrompt       Via = "prompt"        // the host showed it as a prompt
	ViaTranscript   Via = "transcript"    // the host's own store has it
	ViaReply        Via = "reply"         // the recipient replied to it
)

// IsWake reports whether the message itself should begin a turn. The host does that
// some seconds later, shows it in a person's turn meanwhile, or drops it.
func (v Via) IsWake() bool { return v == ViaWakeHook || v == ViaChannel }

// InQueue reports whether the message went to the agent CLI's own queue.
func (v Via) InQueue() bool { return v == ViaQueue || v == ViaQueueUnclear }

// ShownLater reports whether the session's next activity is no evidence for this kind
// of delivery. Its turn may come much later or never: only the display counts.
func (v Via) ShownLater() bool { return v.IsWake() || v.InQueue() || v == ViaMod }

// Evidence returns how a message was handed over, as text: detail is the host's event,
// the tool, or the state of a queue. Older programs of the same home parse these texts,
// so they must not change.
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

// ViaOf derives the way from the evidence of a stage that an earlier version or an
// older program stored without one.
func ViaOf(stage bridge.Stage, evidence string) Via {
	begins := func(prefix string) bool { return strings.HasPrefix(evidence, prefix) }
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

// ViaOfQueue returns the way of an owner's message that a queue did not refuse, and the
// details.
func ViaOfQueue(result chat.QueueResult, reason string) (via Via, detail string) {
	if result == chat.QueueUnclear {
		return ViaQueueUnclear, "unconfirmed, " + reason
	}
	return ViaQueue, ""
}
