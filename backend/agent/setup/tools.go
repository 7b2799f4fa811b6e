package setup

import (
	"slices"

	"bridge/backend/core/job"
)

// FreeTools are the tools of Bridge that a session may use without a question: they
// read, or write to other sessions as what they are. A new tool is asked about until
// it stands here.
func FreeTools() []string {
	return []string{
		"peers", "send", "send_status", "inbox", "wait_for_message", "decide", "decisions", "search_history", "auto_wake", "dashboard", "ask_owner", "withdraw_question",
		"bridge_help", "list_models", "usage_limits",
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

// unasked are the tools that a session may use without a question.
func (in Input) unasked() []string {
	if in.allowsJobs {
		return append(FreeTools(), AskedTools()...)
	}
	return FreeTools()
}

// whatIsAsked is the part of an install's text that says so.
func (in Input) whatIsAsked() string {
	const steering = "those that start or steer the work of another agent (spawn_*, ask_*, message_subagent, cancel_subagent, handoff_subagents, max_subagents)"
	if in.allowsJobs {
		return "without asking, also " + steering + ". " + JobsConsent
	}
	return "without asking, but for " + steering
}

// JobsConsent is what a person allows with the tools of AskedTools.
const JobsConsent = "Sessions may start agents on this PC without asking you"
