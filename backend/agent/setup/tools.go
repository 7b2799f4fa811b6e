package setup

import (
	"slices"

	"bridge/backend/core/job"
)

// FreeTools returns the names of the tools that a session may call without a question of its
// agent, see [job.Tool].
func FreeTools() (free []string) {
	for _, tool := range job.AllTools() {
		if tool.Free {
			free = append(free, tool.Name)
		}
	}
	return free
}

// AskedTools returns the names of the tools that start or control another agent, sorted: the
// agent asks its user before each.
func AskedTools() (asked []string) {
	for _, tool := range job.AllTools() {
		if !tool.Free && tool.In != job.OnlyJobs {
			asked = append(asked, tool.Name)
		}
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

// askedText is the part of an install's text that says so.
func (in Input) askedText() string {
	const steering = "those that start or steer the work of another agent (spawn_*, ask_*, message_subagent, cancel_subagent, handoff_subagents, max_subagents)"
	if in.allowsJobs {
		return "without asking, also " + steering + ". " + JobsConsent
	}
	return "without asking, but for " + steering
}

// JobsConsent is what a person allows with the tools of AskedTools.
const JobsConsent = "Sessions may start agents on this PC without asking you"
