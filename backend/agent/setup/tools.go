package setup

import (
	"slices"

	"bridge/backend/job"
)

// FreeTools are the tools of Bridge that a session may use without a question: they
// read, or write to other sessions as what they are. A new tool is asked about until
// it stands here.
func FreeTools() []string {
	return []string{
		"peers", "send", "send_status", "inbox", "wait_for_message", "decide", "decisions", "search_history", "auto_wake", "dashboard", "ask_owner", "withdraw_question",
		"list_models", "usage_limits",
	}
}

// AskedTools are those that start or steer the work of another agent, which may do what
// the session itself may not: they stay subject to the CLI's own question.
func AskedTools() []string {
	asked := []string{"message_subagent", "cancel_subagent", "handoff_subagents", "max_subagents"}
	for _, kind := range job.Kinds() {
		asked = append(asked, "spawn_"+string(kind), "ask_"+string(kind))
	}
	slices.Sort(asked)
	return asked
}

// whatIsAsked is the part of an install's text that says so.
const whatIsAsked = "without asking, but for those that start or steer the work of another agent (spawn_*, ask_*, message_subagent, cancel_subagent, handoff_subagents, max_subagents)"
