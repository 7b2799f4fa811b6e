package mail

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"bridge/backend/core/bridge"
)

// noticesNote precedes the list of decisions in a text for a model (CTX-02).
const noticesNote = "Decisions pinned in Bridge, newest first. Those by your user are your user's word. The tool `decisions` lists what is in force."

// IsNotice reports whether the broker made the message as the notice of a decision. A
// session may reuse a decision's conversation, by name or by a reply. But the broker
// alone sets the hop, and a notice is no reply.
func IsNotice(conversationID, replyTo string, hop int) bool {
	return hop == bridge.DecisionHop && replyTo == "" && strings.HasPrefix(conversationID, bridge.DecisionConversation)
}

// noticeEntry returns the notice of a decision as one entry of a list, with its whole
// text. It returns false if m is no notice, or has a form of another version. Lines
// after the first are indented, so that a text cannot imitate another entry.
func noticeEntry(m bridge.Message) (entry string, ok bool) {
	if !IsNotice(m.ConversationID, m.ReplyTo, m.Hop) {
		return "", false
	}
	head, rest, ok := strings.Cut(m.Body, ":\n\n")
	head, isDecision := strings.CutPrefix(head, "Decision on ")
	topic, err := strconv.QuotedPrefix(head)
	end := strings.LastIndex(rest, "\n\nThe tool `decisions` ")
	if !ok || !isDecision || err != nil || end < 0 || strings.Contains(head, "\n") {
		return "", false
	}
	text, trailer := rest[:end], rest[end+2:]
	if _, others, more := strings.Cut(trailer, "\n\n"); more {
		text += "\n" + others // the number of decisions of other PCs
	}
	return fmt.Sprintf("\n- %s %s%s: %s", noticeMark(m), neutral(bridge.VisibleLine(topic)), neutral(bridge.VisibleLine(noticeDetails(head[len(topic):], m))),
		indent.Replace(neutral(text))), true
}

// indent moves each line after the first by two spaces, whatever ends a line.
var indent = strings.NewReplacer("\r\n", "\n  ", "\n", "\n  ", "\r", "\r  ", "\v", "\v  ", "\f", "\f  ", "\u0085", "\u0085  ", "\u2028", "\u2028  ", "\u2029", "\u2029  ")

// noticeDetails returns the scope and the author of a notice in few words. It gets the
// first line of the notice after the topic.
func noticeDetails(details string, m bridge.Message) string {
	author := m.From.Name
	if m.From.Agent == bridge.Owner {
		author = "your user"
	}
	for _, verb := range []string{", pinned for ", ", for "} {
		if at := strings.LastIndex(details, verb); at >= 0 {
			details = details[:at]
			break
		}
	}
	return details + ", for " + noticeScope(m.To) + ", by " + author
}

// noticeScope returns the words for the scope of a notice. The session that gets it is
// in the scope.
func noticeScope(recipients string) string {
	switch {
	case recipients == "*":
		return "all"
	case strings.ContainsAny(recipients, `/\`):
		return "this project"
	default:
		return recipients
	}
}

// markChars is how many characters of a decision's id stand in a list. Together with
// the text they distinguish two revisions.
const markChars = 6

// noticeMark returns the mark of a notice in a list, by which a host's store is searched.
func noticeMark(m bridge.Message) string {
	id := plain(strings.TrimPrefix(m.ConversationID, bridge.DecisionConversation))
	return "#" + id[max(0, len(id)-markChars):]
}

// MayHold reports whether a record of a host's store may have the message. It costs
// less than [HeldIn], and never returns false where HeldIn returns true.
func MayHold(record []byte, m bridge.Message) bool {
	return bytes.Contains(record, []byte(m.ID)) || IsNotice(m.ConversationID, m.ReplyTo, m.Hop) && bytes.Contains(record, []byte(noticeMark(m)))
}
