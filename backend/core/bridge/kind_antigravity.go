package bridge

// Antigravity is Google's Antigravity CLI, kind D. It has no public package to test.
const Antigravity AgentKind = "antigravity"

var antigravity = Traits{
	Kind:    Antigravity,
	Program: "agy",
	MCP:     MCPTraits{Restart: "end antigravity and continue the session"},
	// Since that version it accepts input as JSON lines.
	Jobs: JobTraits{Since: "1.1.15"},
}
