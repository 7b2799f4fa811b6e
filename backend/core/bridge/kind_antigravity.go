package bridge

// Antigravity is Google's Antigravity CLI, kind D. It has no public package to test.
const Antigravity AgentKind = "antigravity"

var antigravity = Traits{
	Kind:    Antigravity,
	Title:   "Antigravity",
	Program: "agy",
	MCP:     MCPTraits{Restart: "end antigravity and continue the session"},
	Prompts: PromptTraits{Place: "in the terminal only"},
	Jobs: JobTraits{
		Offer: "read, edit; words wait for the next turn",
		Since: "1.1.15", // since that version it accepts input as JSON lines
	},
}
