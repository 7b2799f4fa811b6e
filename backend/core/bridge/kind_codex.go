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
	Prompts:          PromptTraits{Place: "on the page, except with `--no-daemon`"},
	Jobs: JobTraits{
		Offer: "read, ask, edit; words reach a running turn",
		Marks: []string{"CODEX_CI", "CODEX_SANDBOX*", "CODEX_SESSION_ID", "CODEX_THREAD_ID", "CODEX_TOOL_CALL_ID", "CODEX_VERSION"},
	},
}
