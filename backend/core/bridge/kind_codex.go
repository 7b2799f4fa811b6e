package bridge

// Codex is OpenAI's Codex CLI, kind B.
const Codex AgentKind = "codex"

var codex = Traits{
	Kind:    Codex,
	Title:   "Codex",
	Program: "codex",
	Package: "codex",
	Serves:  []string{"app-server"},
	Tried:   [2]string{"0.160.1", "0.169.0"},
	Data:    DataFolder{Variable: "CODEX_HOME", Default: []string{".codex"}},
	MCP: MCPTraits{
		Restart: "end codex and continue the session with `codex resume`",
		Caller: CallerTraits{
			Session: [][]string{{"sessionId"}, {"x-codex-turn-metadata", "session_id"}},
			Thread:  [][]string{{"threadId"}, {"x-codex-turn-metadata", "thread_id"}},
		},
	},
	BackgroundServer: true,
	Terminal:         TerminalOfServers,
	Waker:            QueueWaker,
	// In a native child, session_id is the root thread and agent_id the child's.
	Hooks: HookTraits{
		Events: []HookFormat{
			{Name: "SessionStart", Event: EventStart, Answer: AddsContext},
			{Name: "UserPromptSubmit", Event: EventPrompt, Answer: AddsContext},
			{Name: "PreToolUse", Event: EventPreTool},
			{Name: "PostToolUse", Event: EventTool, Answer: AddsContext},
			{Name: "PermissionRequest", Event: EventAsk, Task: TaskReportPrompt},
			{Name: "PostToolUseFailure", Event: EventToolFailed},
			{Name: "PostToolBatch", Event: EventToolBatch},
			{Name: "Interrupt", Event: EventInterrupt}, // the user interrupted a turn
			{Name: "Stop", Event: EventStop, Answer: BlocksStop},
			{Name: "SubagentStart", Event: EventChildStart},
			{Name: "SubagentStop", Event: EventChildStop},
			{Name: "SessionEnd", Event: EventEnd},
		},
		Input: HookInput{
			Session: "session_id", Child: "agent_id", ChildTitle: "agent_type", Folder: "cwd", Source: "source", Prompt: "prompt", PromptID: "prompt_id",
			ToolUse: "tool_use_id", Tool: "tool_name", ToolInput: "tool_input", Calls: "tool_calls",
		},
		OwnTools: "mcp__bridge__",
	},
	Prompts: PromptTraits{Place: "on the page, except with `--no-daemon`"},
	Jobs: JobTraits{
		Offer: "read, ask, edit; words reach a running turn",
		Marks: []string{"CODEX_CI", "CODEX_SANDBOX*", "CODEX_SESSION_ID", "CODEX_THREAD_ID", "CODEX_TOOL_CALL_ID", "CODEX_VERSION"},
	},
}
