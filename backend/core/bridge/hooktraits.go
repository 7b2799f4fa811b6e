package bridge

// HookTraits are the format of a kind's hook commands, or of the events of its plugin. The
// package hooks reads and writes hook calls by it.
type HookTraits struct {
	Events []HookFormat
	Input  HookInput
	// OwnTools is the prefix of the names of Bridge's own tools.
	OwnTools string
	// ProcessVariable names the variable in which a hook gets the process id of its CLI.
	ProcessVariable string
	// HeadlessVariable names the variable whose value begins with HeadlessPrefix if the CLI
	// runs without a person.
	HeadlessVariable, HeadlessPrefix string
}

// HookFormat is one event of a kind: its meaning, and the form of the answer.
type HookFormat struct {
	Name string // the CLI's own
	// Event is "" for a name that is no event of the CLI: a hook command that waits.
	Event  HookEvent
	Task   HookTask
	Answer HookAnswer
}

// HookInput names the members of a hook's input. An empty name means that the CLI does not
// tell it.
type HookInput struct {
	Session             string
	Child, ChildTitle   string // in a call from a native child
	Folder, FirstFolder string // the working folder: a text, or the first text of a list
	Source              string // how the session started
	Prompt, PromptID    string
	ToolUse             string // the id of a tool call
	Tool, ToolInput     string // the tool's name, and its input
	Calls               string // the calls of a batch
}

// HookEvent is a report of a host through a hook or plugin, with the same names for all
// kinds.
type HookEvent string

// The events. Each is a sign of activity of its session.
const (
	EventStart      HookEvent = "session-start"
	EventPrompt     HookEvent = "prompt"      // the user's or the host's next prompt
	EventPreTool    HookEvent = "pre-tool"    // before a tool call
	EventTool       HookEvent = "tool"        // after a tool call: a safe step
	EventStop       HookEvent = "stop"        // the turn is about to end
	EventIdle       HookEvent = "idle"        // the turn has ended (plugin only)
	EventEnd        HookEvent = "session-end" // the session closes
	EventChildStart HookEvent = "child-start" // a native child started
	EventChildStop  HookEvent = "child-stop"
	EventAsk        HookEvent = "ask"       // a call waits for permission
	EventInterrupt  HookEvent = "interrupt" // the user interrupted the turn

	// These events report only calls that asked for permission, and may be late: they
	// are no evidence of the session's activity.
	EventToolFailed HookEvent = "tool-failed" // a call ran, and failed
	EventToolBatch  HookEvent = "tool-batch"  // all calls of one answer of the model are over
)

// EndsTurn reports whether mail in the event's answer starts or continues a turn.
func (e HookEvent) EndsTurn() bool { return e == EventStop || e == EventIdle }

// BusyAfter reports whether a session is busy after the event.
func (e HookEvent) BusyAfter(busy bool) bool {
	switch e {
	case EventPrompt, EventTool, EventPreTool, EventAsk:
		return true
	case EventStop, EventIdle, EventStart, EventEnd, EventInterrupt:
		return false
	default: // the start or end of a child is no evidence about its parent
		return busy
	}
}

// HookTask is what the hook program does for one event of a host.
type HookTask int

// The tasks.
const (
	TaskReport         HookTask = iota // tell the broker, and answer with its text
	TaskReportOutcome                  // the same, but only while a permission prompt is open
	TaskReportPrompt                   // tell the broker of a permission prompt that the terminal decides
	TaskHoldPrompt                     // wait for the owner's answer to a permission prompt
	TaskWaitForMail                    // wait until mail may wake the idle session
	TaskStandByForMail                 // the same, for a host whose first wait failed
)

// HookAnswer is the form in which an answer gives text to the model.
type HookAnswer int

// The forms of answers.
const (
	NoAnswer      HookAnswer = iota // the event takes no text
	AddsContext                     // additional context for the model
	BlocksStop                      // the reason of a decision to block the end of the turn
	ContinuesTurn                   // the reason of a decision to continue the turn
	InjectsStep                     // a step before the next request to the model
	AnswersText                     // the text alone, for a plugin
)
