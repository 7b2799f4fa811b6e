package mail

import (
	"fmt"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
)

// maxLineNames limits the senders in a status line.
const maxLineNames = 3

// StatusLine returns one line with the number and senders of waiting messages. It also
// has the number of new decisions and the end of the MCP server. It returns "" if there
// is nothing. It contains no text of a message (CHT-21).
func StatusLine(waiting []Delivery, serverEnded bool) string {
	var names []string
	messages, decisions := 0, 0
	for _, d := range waiting {
		if strings.HasPrefix(d.ConversationID, bridge.DecisionConversation) {
			decisions++
			continue
		}
		messages++
		if name := senderName(d.From); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	var parts []string
	if messages > 0 {
		parts = append(parts, bridge.Counted(messages, "message")+" from "+listed(names))
	}
	if decisions > 0 {
		parts = append(parts, "new: "+bridge.Counted(decisions, "decision"))
	}
	if serverEnded {
		parts = append(parts, "its tools are gone: enter /mcp, choose bridge, then Reconnect")
	}
	if len(parts) == 0 {
		return ""
	}
	return "Bridge: " + strings.Join(parts, " · ")
}

func senderName(from bridge.Address) string {
	switch {
	case from.Agent == bridge.Owner:
		return "you"
	case bridge.CheckName(from.Name) != nil:
		return "another session"
	default:
		return from.Name
	}
}

func listed(names []string) string {
	if more := len(names) - maxLineNames; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxLineNames], ", "), more)
	}
	return strings.Join(names, ", ")
}
