package bridge

// Antigravity is Google's Antigravity CLI, kind D. It has no public package to test.
const Antigravity AgentKind = "antigravity"

var antigravity = Traits{
	Kind:    Antigravity,
	Title:   "Antigravity",
	Program: "agy",
	MCP:     MCPTraits{Restart: "end antigravity and continue the session"},
	Hooks: HookTraits{
		// PreInvocation precedes every request to the model, so each is a safe step.
		Events: []HookFormat{
			{Name: "PreInvocation", Event: EventTool, Answer: InjectsStep},
			{Name: "PreToolUse", Event: EventPreTool},
			{Name: "Stop", Event: EventStop, Answer: ContinuesTurn},
		},
		// A native child has its own conversation id and no reference to its parent: the
		// broker identifies it by the process.
		Input: HookInput{Session: "conversationId", FirstFolder: "workspacePaths"},
	},
	Prompts: PromptTraits{Place: "in the terminal only"},
	Jobs: JobTraits{
		Offer: "read, edit; words wait for the next turn",
		Since: "1.1.15", // since that version it accepts input as JSON lines
	},
}
