package bridge

// Traits are the properties of one agent kind that shared code asks about. Each kind has a
// file with one value. A property that is not set does not apply to the kind.
type Traits struct {
	Kind AgentKind
	// Title is the name of the CLI for people.
	Title string

	// Program is the name of the CLI on PATH and of its process.
	Program string
	// Package is the folder of its npm package, "" if it has none.
	Package string
	// Serves are the subcommands by which the CLI serves other programs.
	Serves []string
	// Tried are the oldest and the newest tested version, both "" without any.
	Tried [2]string
	// MajorOnly reports that another major version has another layout of settings, which
	// Bridge does not know.
	MajorOnly bool

	// Data is where the CLI keeps its sessions.
	Data DataFolder
	MCP  MCPTraits

	Channel bool // shows the notifications of a channel
	Mod     bool // its plugin is a mod that enters the owner's messages
	// Registry reports that the CLI's own registry of processes shows whether a session is
	// at work, and whether it shows a dialog.
	Registry bool
	// BackgroundServer reports that one background process may run the conversations of
	// several terminals.
	BackgroundServer bool
	// SharedServer reports that one MCP server serves all sessions of a process. The
	// plugin in that process tells them apart.
	SharedServer bool
	Terminal     Terminal
	Waker        Waker

	Hooks   HookTraits
	Prompts PromptTraits
	Jobs    JobTraits
}

// DataFolder is the location of a CLI's sessions: the folder in a variable, or Default
// below the user's home; in it, the folder Within. The zero value means that Bridge does
// not read them.
type DataFolder struct {
	Variable string
	Default  []string // elements of a path
	Within   string
}

// Terminal is the way in which a terminal of a kind shows one conversation after another.
type Terminal int

// The ways of terminals.
const (
	// TerminalUnknown means that hooks alone report another conversation.
	TerminalUnknown Terminal = iota
	// TerminalOfServers means that each conversation starts an MCP server. A prompt hook
	// runs only for what a person entered.
	TerminalOfServers
	// TerminalOfPlugin means that one process has all conversations. A prompt hook has a
	// text only if a person entered it.
	TerminalOfPlugin
)

// Waker is the mechanism that starts a turn of an idle session of a kind.
type Waker int

// The wakers.
const (
	NoWaker     Waker = iota // none: the session reads at its next turn
	HookWaker                // a hook that waits in the background, or the session's channel
	QueueWaker               // the CLI's own queue
	PluginWaker              // the host's plugin
)

// MCPTraits are the properties of a kind as the host of Bridge's MCP server.
type MCPTraits struct {
	// SessionVariable and FolderVariable name the variables in which the CLI gives its
	// MCP servers the session's id and its working folder.
	SessionVariable, FolderVariable string
	// Restart is how a person starts the MCP server of a session again. It completes the
	// sentence "To start the server again, ".
	Restart string
	Caller  CallerTraits
}

// CallerTraits name the members of an MCP call's _meta in which the CLI names the caller.
// Each is a list of paths; the first one with a text counts. An empty list means that the
// CLI does not name it.
type CallerTraits struct {
	ToolUse [][]string // the id of the call in the CLI's hooks
	Session [][]string // the main session
	Thread  [][]string // the conversation that calls: a native child, or the main session
}

// PromptTraits are the properties of a kind's permission prompts.
type PromptTraits struct {
	// Place is where the owner can answer a prompt, as a phrase for documentation.
	Place string
	// Free reports that no process of the agent waits for the owner's answer.
	Free bool
	// HooksShowOutcome reports that later hooks of the session show the outcome of a
	// prompt.
	HooksShowOutcome bool
	// ChildHidden reports that the prompt of a sub-agent may not be on the screen.
	ChildHidden bool
	// RefusesAll reports that one refusal refuses all open prompts of a session.
	RefusesAll bool
	// Pattern reports that the detail of a command may be a pattern for commands.
	Pattern bool
}

// JobTraits are the properties of a kind's delegated jobs.
type JobTraits struct {
	// Offer is what jobs of this kind can do, as a phrase for documentation.
	Offer string
	// Since is the first version that can do jobs, "" for all.
	Since string
	// OwnRulesForEdit reports that access edit needs no sandbox: the CLI's own rules
	// suffice.
	OwnRulesForEdit bool
	// Marks are the variables by which the CLI marks the processes that it starts. No job
	// of any kind gets them. A name may end with *.
	Marks []string
	// Withheld are the variables that jobs of this kind do not get.
	Withheld []string
}
