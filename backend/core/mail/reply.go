package mail

import (
	"strings"

	"bridge/backend/core/bridge"
)

// Reply is whether the sender of a message asks for an answer (QUI-01). The id of the
// message's conversation carries it, because the stored formats have no member for it:
// older programs know that a conversation which ends with ackMark wakes no session.
type Reply string

// The values of Reply. The zero value is ReplyOptional.
const (
	ReplyOptional Reply = "optional"
	ReplyWanted   Reply = "wanted"
	ReplyNone     Reply = "none" // it wakes no session and asks for nothing
)

const (
	ackMark    = ":ack"
	wantedMark = ":wanted"
)

// Check fails with Invalid for an unknown value.
func (r Reply) Check() error {
	switch r {
	case "", ReplyOptional, ReplyWanted, ReplyNone:
		return nil
	}
	return bridge.Errorf(bridge.Invalid, "reply must be %s, %s or %s, not %q", ReplyWanted, ReplyOptional, ReplyNone, bridge.OneLine(string(r)))
}

// Mark returns the id that a conversation has for a message with r.
func (r Reply) Mark(conversation string) string {
	switch r {
	case ReplyWanted:
		return Thread(conversation) + wantedMark
	case ReplyNone:
		return Thread(conversation) + ackMark
	default:
		return conversation
	}
}

// ReplyOf returns whether the sender of a message in that conversation asks for an answer.
func ReplyOf(conversation string) Reply {
	switch {
	case strings.HasSuffix(conversation, ackMark):
		return ReplyNone
	case strings.HasSuffix(conversation, wantedMark):
		return ReplyWanted
	default:
		return ReplyOptional
	}
}

// Thread returns the id of a conversation without the mark of one message.
func Thread(conversation string) string {
	for _, mark := range []string{ackMark, wantedMark} {
		if rest, ok := strings.CutSuffix(conversation, mark); ok && rest != "" {
			return rest
		}
	}
	return conversation
}
