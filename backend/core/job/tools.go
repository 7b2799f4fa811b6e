package job

import "slices"

// Tool is a tool of Bridge's MCP server, with its users.
type Tool struct {
	Name string
	// Free is set if a session may call the tool without a question of its agent: the tool
	// reads, or writes to other sessions as the session itself. All other tools start or
	// control another agent, which may do what the session may not.
	Free bool
	// In says which delegated jobs have the tool.
	In ToolUse
}

// ToolUse says which delegated jobs have a tool.
type ToolUse int

// The uses.
const (
	NoJobs         ToolUse = iota // only sessions of the owner have it
	AllJobs                       // jobs have it, too
	DelegatingJobs                // jobs that may start jobs have it, too
	OnlyJobs                      // only jobs have it
)

// tools is the table of all tools but those of [Kinds]. An agent asks about a tool that is
// missing here.
var tools = []Tool{
	{"peers", true, AllJobs},
	{"send", true, AllJobs},
	{"send_status", true, AllJobs},
	{"inbox", true, AllJobs},
	{"wait_for_message", true, AllJobs},
	{"decide", true, NoJobs},
	{"decisions", true, AllJobs},
	{"search_history", true, AllJobs},
	{"report_progress", false, OnlyJobs},
	{"auto_wake", true, NoJobs},
	{"dashboard", true, NoJobs},
	{"ask_owner", true, NoJobs},
	{"withdraw_question", true, NoJobs},
	{"bridge_help", true, NoJobs},
	{"list_models", true, NoJobs},
	{"usage_limits", true, NoJobs},
	{"message_subagent", false, DelegatingJobs},
	{"cancel_subagent", false, DelegatingJobs},
	{"handoff_subagents", false, NoJobs},
	{"max_subagents", false, NoJobs},
}

// AllTools returns the table, with the tools that start agents of each kind.
func AllTools() []Tool {
	all := slices.Clone(tools)
	for _, kind := range Kinds() {
		all = append(all, Tool{"spawn_" + string(kind), false, DelegatingJobs}, Tool{"ask_" + string(kind), false, DelegatingJobs})
	}
	return all
}

// IsToolOfJobs reports whether some delegated jobs have the tool of that name.
func IsToolOfJobs(name string) bool {
	return slices.ContainsFunc(AllTools(), func(t Tool) bool { return t.Name == name && t.In != NoJobs })
}

// Tools returns the names of the tools within a job. delegates is set if the job may start
// jobs, acp if the owner has agents beside the known kinds.
func Tools(delegates, acp bool) []string {
	var names []string
	for _, t := range tools {
		if t.In == AllJobs || t.In == OnlyJobs {
			names = append(names, t.Name)
		}
	}
	if !delegates {
		return names
	}
	for _, kind := range Kinds() {
		if kind != ACP || acp {
			names = append(names, "spawn_"+string(kind), "ask_"+string(kind))
		}
	}
	for _, t := range tools {
		if t.In == DelegatingJobs {
			names = append(names, t.Name)
		}
	}
	return names
}
