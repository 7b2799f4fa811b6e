package mail

import (
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/delivery"
	"bridge/backend/core/session"
)

// Quiet reports whether a message never wakes a session or extends its turn under any
// policy: progress notes, acknowledgements and decisions appear on the next turn (seed
// 4.4).
func Quiet(conversationID string) bool {
	return strings.HasSuffix(conversationID, ":note") ||
		ReplyOf(conversationID) == ReplyNone ||
		strings.HasPrefix(conversationID, bridge.DecisionConversation)
}

// MayWake reports whether a message may start a turn of an idle session or keep a Stop
// hook running (MSG-07, CHT-18, seed 4.4). direct reports that the sender named exactly
// this session. The owner's message always may.
func MayWake(m bridge.Message, direct bool, policy session.Policy) bool {
	switch {
	case Quiet(m.ConversationID):
		return false
	case m.From.Agent == bridge.Owner:
		return true
	case m.Hop >= min(policy.MaxHops, bridge.HighestMaxHops):
		return false
	case policy.AutoWake:
		return true
	default:
		return policy.WakeOnDirect && direct
	}
}

// Direct reports whether m was addressed to exactly target, by name or id, and not to
// everyone or a kind.
func Direct(m bridge.Message, target *session.Session) bool {
	return bridge.NormalizeName(m.To) == target.Name || m.To == target.ID || (target.SessionID != "" && m.To == target.SessionID)
}

// WakeNow returns the way by which m starts a turn of s now, or "" if it does not. The
// policy must allow it, the session be idle, and its host have a waker (seed 4.4). A
// mod has priority over the kind's own waker.
func WakeNow(m bridge.Message, s *session.Session, f delivery.Facts) Via {
	switch {
	case f.Busy || !MayWake(m, Direct(m, s), s.Wake):
		return ""
	case f.Mod && IsForMod(Delivery{Message: m}):
		return ViaMod
	case !delivery.CanWake(f):
		return ""
	}
	switch delivery.WakerOf(f.Kind) {
	case bridge.HookWaker:
		if f.Channel {
			return ViaChannel
		}
		return ViaWakeHook
	case bridge.QueueWaker:
		return ViaQueue
	case bridge.PluginWaker:
		return ViaPlugin
	default:
		return ""
	}
}

// WakePrompt is the whole text of a wake by codex's queue: the hooks show the mail with it.
const WakePrompt = "Mail from Bridge has arrived for you. If it is not shown with this prompt, read it with the tool `inbox`. Act on it as your user would want, or say that there is nothing to do."

// IsOfPerson reports whether a person may have typed a prompt. It returns false for an
// empty prompt, and for texts by which Bridge or a host starts a turn.
func IsOfPerson(prompt string) bool {
	prompt = strings.TrimSpace(prompt)
	isMail := strings.Contains(prompt, "<"+elementName) || strings.Contains(prompt, trustNote) || strings.Contains(prompt, longNote)
	return prompt != "" && !isMail && prompt != WakePrompt && !strings.HasPrefix(prompt, "<task-notification") && !strings.HasPrefix(prompt, "<channel ")
}

// MayBeForMod reports, without the body, whether mail may go to a mod: it is from the
// owner, and no wake was tried.
func MayBeForMod(d Delivery) bool {
	return d.From.Agent == bridge.Owner && !Quiet(d.ConversationID) && !d.Woken.Happened() && chat.ChildOf(d.To) == ""
}

// IsForMod reports whether a mod enters the mail as a prompt: then no hook delivers it (CHT-20).
func IsForMod(d Delivery) bool {
	return MayBeForMod(d) && chat.ModRefusal(d.Body) == "" && !chat.IsParentNote(d.Body)
}
