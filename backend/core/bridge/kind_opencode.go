package bridge

// OpenCode is opencode, kind C.
const OpenCode AgentKind = "opencode"

var openCode = Traits{
	Kind:         OpenCode,
	Title:        "opencode",
	Program:      "opencode",
	Package:      "opencode-ai",
	Serves:       []string{"serve", "web", "acp"},
	Tried:        [2]string{"1.18.33", "1.18.33"},
	MajorOnly:    true, // another one does not load the same plugin
	Data:         DataFolder{Variable: "XDG_DATA_HOME", Default: []string{".local", "share"}, Within: "opencode"},
	MCP:          MCPTraits{Restart: "end opencode and continue the session"},
	SharedServer: true,
	Terminal:     TerminalOfPlugin,
	Waker:        PluginWaker,
	// It has no hook commands: its plugin reports events as lines to `bridge plugin opencode`.
	Hooks: HookTraits{
		Events: []HookFormat{
			{Name: "session.created", Event: EventStart},
			{Name: "session.child", Event: EventChildStart},
			{Name: "session.child.idle", Event: EventChildStop},
			{Name: "chat.message", Event: EventPrompt, Answer: AnswersText},
			{Name: "tool.execute.before", Event: EventPreTool},
			{Name: "tool.execute.after", Event: EventTool, Answer: AnswersText},
			{Name: "session.idle", Event: EventIdle, Answer: AnswersText},
			{Name: "session.deleted", Event: EventEnd},
			{Name: "permission.asked", Event: EventAsk},
		},
		Input: HookInput{
			Session: "sessionId", Child: "childId", ChildTitle: "childTitle", Folder: "cwd", Prompt: "prompt", ToolUse: "toolUseId", Tool: "tool",
		},
		OwnTools: "bridge_",
	},
	Prompts: PromptTraits{Place: "on the page", Free: true, RefusesAll: true, Pattern: true},
	Jobs: JobTraits{
		Offer: "read, ask, edit; words reach a running turn",
		// OPENCODE_SERVER_* holds its server's password.
		Marks:    []string{"OPENCODE", "OPENCODE_CLIENT", "OPENCODE_PID", "OPENCODE_SERVER_*", "OPENCODE_CONFIG_CONTENT"},
		Withheld: []string{"OPENCODE_PERMISSION"}, // it would set what a job may do
	},
}
