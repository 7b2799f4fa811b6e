package mail

import (
	"strings"

	"bridge/backend/bridge"
	"bridge/backend/session"
)

// Quiet reports whether a message never wakes a session nor keeps its turn
// going, whatever the policy: progress notes, acknowledgements and decisions
// are shown on the next turn (seed 4.4).
func Quiet(conversationID string) bool {
	return strings.HasSuffix(conversationID, ":note") ||
		strings.HasSuffix(conversationID, ":ack") ||
		strings.HasPrefix(conversationID, bridge.DecisionConversation)
}

// MayWake is the wake policy (MSG-07, CHT-18, seed 4.4): whether a message may
// start a turn of an idle session or keep a Stop hook running. direct says that
// the sender named exactly this session. The owner's word always may.
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

// Direct reports whether m was addressed to exactly target, by name or id, and
// not to everyone or to whoever is of its kind.
func Direct(m bridge.Message, target *session.Session) bool {
	return m.To == target.Name || m.To == target.ID || (target.SessionID != "" && m.To == target.SessionID)
}
