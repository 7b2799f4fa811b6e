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
	Hooks: HookTraits{
		Events: []HookFormat{
			{Name: "SessionStart", Event: EventStart, Answer: AddsContext},
			{Name: "UserPromptSubmit", Event: EventPrompt, Answer: AddsContext},
			{Name: "PreToolUse", Event: EventPreTool},
			{Name: "PostToolUse", Event: EventTool, Answer: AddsContext},
			{Name: "PermissionRequest", Event: EventAsk, Task: TaskHoldPrompt},
			{Name: "PostToolUseFailure", Event: EventToolFailed, Task: TaskReportOutcome},
			{Name: "PostToolBatch", Event: EventToolBatch, Task: TaskReportOutcome},
			{Name: "Interrupt", Event: EventInterrupt},
			// Context continues the turn, too. The reason of a "block" reaches the model twice and
			// is shown as a problem.
			{Name: "Stop", Event: EventStop, Answer: AddsContext},
			{Name: "SubagentStart", Event: EventChildStart},
			{Name: "SubagentStop", Event: EventChildStop},
			{Name: "SessionEnd", Event: EventEnd},
			// They start at a stop, wait in the background of the idle session and start a turn
			// when mail may wake it. The standby works if the first one's wake failed.
			{Name: "Wake", Task: TaskWaitForMail},
			{Name: "WakeStandby", Task: TaskStandByForMail},
		},
		Input: HookInput{
			Session: "session_id", Child: "agent_id", ChildTitle: "agent_type", Folder: "cwd", Source: "source", Prompt: "prompt", PromptID: "prompt_id",
			ToolUse: "tool_use_id", Tool: "tool_name", ToolInput: "tool_input", Calls: "tool_calls",
		},
		OwnTools:         "mcp__bridge__",
		ProcessVariable:  "CLAUDE_PID",
		HeadlessVariable: "CLAUDE_CODE_ENTRYPOINT",
		HeadlessPrefix:   "sdk",
	},
	Prompts: PromptTraits{Place: "on the page, except those of background agents", HooksShowOutcome: true, ChildHidden: true},
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
