package bridge

// Claude is Claude Code, kind A.
const Claude AgentKind = "claude"

var claude = Traits{
	Kind:    Claude,
	Title:   "Claude Code",
	Program: "claude",
	Package: "claude-code",
	Tried:   [2]string{"2.1.329", "2.1.329"},
	Data:    DataFolder{Variable: "CLAUDE_CONFIG_DIR", Default: []string{".claude"}},
	MCP: MCPTraits{
		SessionVariable: "CLAUDE_CODE_SESSION_ID",
		FolderVariable:  "CLAUDE_PROJECT_DIR",
		Caller:          CallerTraits{ToolUse: [][]string{{"claudecode/toolUseId"}}}, // the hook with the same id names the agent
		Restart:         "enter /mcp in the session, choose bridge, then Reconnect",
	},
	Channel:  true,
	Mod:      true,
	Registry: true,
	Waker:    HookWaker,
	Prompts:  PromptTraits{Place: "on the page, except those of background agents", HooksShowOutcome: true, ChildHidden: true},
	Jobs: JobTraits{
		Offer:           "read, ask, edit; words reach a running turn",
		OwnRulesForEdit: true,
		// They lead back to the claude that started the process.
		Marks: []string{
			"CLAUDECODE", "CLAUDE_PID", "CLAUDE_PROJECT_DIR", "CLAUDE_ENV_FILE", "CLAUDE_PLUGIN_ROOT", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID",
			"CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_MESSAGING_*", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_TMPDIR",
		},
		Withheld: []string{"CLAUDE_CODE_PLUGIN_DIRS"}, // the owner's modules would be in a job
	},
}
