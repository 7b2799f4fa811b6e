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
	Prompts:      PromptTraits{Place: "on the page", Free: true, RefusesAll: true, Pattern: true},
	Jobs: JobTraits{
		Offer: "read, ask, edit; words reach a running turn",
		// OPENCODE_SERVER_* holds its server's password.
		Marks:    []string{"OPENCODE", "OPENCODE_CLIENT", "OPENCODE_PID", "OPENCODE_SERVER_*", "OPENCODE_CONFIG_CONTENT"},
		Withheld: []string{"OPENCODE_PERMISSION"}, // it would set what a job may do
	},
}
