// Package job has the rules of delegated jobs and the interfaces that execute them. It
// does no I/O.
package job

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"bridge/backend/core/bridge"
)

// Driver starts an agent CLI for one job. Each kind has one; all implement the same
// contract, and one test suite checks it.
type Driver interface {
	// Start starts the CLI and returns when its process runs, without the CLI's first
	// response, which may take a minute. It sends the prompt automatically. ctx limits
	// Start, not the run. After an error nothing runs: Invalid if the kind cannot do
	// it, Denied without the floor, Unavailable if the program does not start. Later
	// failures are events.
	Start(ctx context.Context, spec Spec) (Run, error)
}

// Run is one CLI at work for a job. Its methods are safe for concurrent use in any
// state of the run.
type Run interface {
	// Events returns the stream of events, always the same channel. It closes after
	// Exited, the last event. A slow reader loses nothing: unread events stay in
	// memory.
	Events() <-chan Event

	// Message sends a message to the CLI. While the model works, it arrives at its next
	// step if the CLI supports that (Capabilities.LiveMessage), otherwise as the next
	// turn. While the model is idle, it starts a turn. nil means that the CLI has it;
	// Accepted and Inserted report the progress. It waits for a starting CLI, within
	// ctx. A message is sent once per id: a repeat returns the first result.
	// ErrUnconfirmed: it may have arrived. ErrEnded: it did not. Any other error is the
	// CLI's refusal; it did not arrive.
	Message(ctx context.Context, message Message) error

	// Answer answers an open question. nil means that the CLI has the answer; Resolved
	// reports that it acted on it. A repeat of the answer is no error. It fails with
	// Conflict for a different answer, and NotFound if the question is not open; then
	// nothing was done. ErrUnconfirmed: it may have arrived.
	Answer(ctx context.Context, answer Answer) error

	// Interrupt stops the current turn; background work may continue until Close. It
	// returns when the CLI has the request. TurnEnded with EndInterrupted follows, and
	// open questions are withdrawn. Without a turn it does nothing. A repeat is safe.
	// ErrUnconfirmed: it may have arrived.
	Interrupt(ctx context.Context) error

	// Close ends the CLI: it interrupts the turn, ends the CLI's background work, and
	// asks the process to end. When ctx is done, it kills the process group. It returns
	// when the process has ended; the reaper ends processes that left the group. A call
	// is valid at any time, also while busy. A repeat waits for the same end. An error
	// means only that the process could not be ended.
	Close(ctx context.Context) error
}

// ErrUnconfirmed reports an unknown outcome: the request was sent without a response.
// It may have arrived, so no caller may resend it automatically.
var ErrUnconfirmed = errors.New("it is not known whether the agent has received it")

// ErrEnded reports a run that is over; the request was not performed.
var ErrEnded = errors.New("the agent is not running any more")

// Spec describes the CLI to start. No field of it ever reaches a shell.
type Spec struct {
	Job     string // name of the job; BRIDGE_JOB of all its processes
	Token   string // secret of the job; BRIDGE_JOB_TOKEN of all its processes
	Depth   int    // 1 for a job of a session
	Kind    bridge.AgentKind
	Command []string // the CLI: absolute path, then the first arguments
	Prompt  Message
	Note    string // added to the CLI's system prompt; may be empty
	Title   string // may be empty
	Folder  string // absolute
	// Unlinked forbids links in the paths of Folder and Writable when the CLI starts.
	Unlinked bool
	Model    string // the CLI's name for it; empty is the CLI's own choice
	Effort   string // the CLI's name for it; empty is the CLI's own choice
	Access   Access
	// Session is the session to continue; empty begins a new one. It must have no other
	// writer: not every CLI refuses one.
	Session string
	// Bridge is the MCP server of this job, whose tools need no approval.
	Bridge MCPServer
	// Hooks are the hooks of the CLI's settings, as JSON, for kinds that accept them
	// for one run; empty means no hooks.
	Hooks json.RawMessage
	// Env is NAME=value from the owner's environment and config, added to the few
	// variables that every program needs. NAME alone removes one of these.
	Env []string
	// StateFolder is the job's own folder; the CLI's TMPDIR is made in it.
	StateFolder string
	// Sandbox is the command that runs a program above the floor (`bridge
	// sandbox-exec`); empty if this system has none.
	Sandbox []string
	// BrokerSocket is the path of the broker's socket, to which every job may connect.
	BrokerSocket string
	// Sockets are the unix sockets of other programs to which a job with more than read
	// access may connect.
	Sockets []string
	// Writable are further folders that an edit job may write: the git folders of a
	// linked worktree.
	Writable []string
	// ToolLevelOnly permits a job to run if its floor is unavailable.
	ToolLevelOnly bool
	// ACP describes an agent of the kind ACP.
	ACP ACPAgent
}

// Variables returns the names of Env that are in the job's environment, sorted.
func (s Spec) Variables() []string {
	names := map[string]bool{}
	for _, pair := range s.Env {
		name, _, has := strings.Cut(pair, "=")
		if has {
			names[name] = true
		} else {
			delete(names, name)
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// ACPAgent is the owner's config of an agent that speaks the Agent Client Protocol,
// apart from its command.
type ACPAgent struct {
	Name     string            // in agents.acp
	Writable []string          // absolute folders of its own state, writable under a floor
	Modes    map[Access]string // the agent's mode for each access
}

// MCPServer is a program that speaks MCP over its standard input and output.
type MCPServer struct {
	Command string
	Args    []string
	Env     []string // NAME=value; job and token are added
	Tools   []string // their names, for CLIs that allow individual tools
}

// Access is what a job may do in its folder.
type Access string

// The access modes.
const (
	AccessRead Access = "read" // changes nothing
	AccessAsk  Access = "ask"  // edits within its folder, and asks before each change
	AccessEdit Access = "edit" // edits within its folder
)

// Floor is the protection below the CLI's own rules.
type Floor string

// The floors.
const (
	FloorNone    Floor = "none"    // the CLI's own rules alone
	FloorSandbox Floor = "sandbox" // `bridge sandbox-exec` around the CLI
	FloorOwn     Floor = "own"     // the CLI's own sandbox around each command
	// FloorSignals is FloorSandbox on a kernel without Landlock's scope of signals
	// (before version 6): the job can end its user's processes outside the sandbox.
	FloorSignals Floor = "sandbox-signals"
)

// Message is a text for the model. Its id is a UUID and appears in every event.
type Message struct {
	ID   string
	Text string
}

// Capabilities lists the features of a run. A missing feature is reported, never imitated.
type Capabilities struct {
	LiveMessage bool // a message reaches the current turn
	DenyReason  bool // the model reads the reason of a refusal
	Resume      bool // the session can be continued later
	Background  bool // an interrupt also ends background work
}

// Process is one process of a job. Identity distinguishes it from a later process with
// the same number.
type Process struct {
	PID      int    `json:"pid"`
	Identity string `json:"identity"` // proc.Identity
	Role     string `json:"role"`     // "cli", or another program of the driver
}

// Question is a request of the CLI before it continues.
type Question struct {
	ID   string
	Step string // the step that waits for it; may be empty
	Kind QuestionKind
	Tool string // the CLI's name for it
	// Subject is the exact command, path or question, never cut.
	Subject string
	Folder  string          // where a command would run; empty if the CLI does not report it
	Reason  string          // why the model or the CLI asks; may be empty
	Input   json.RawMessage // the tool's exact input, if the CLI provides it
	Diff    string          // the change, if the CLI provides it
	Choices []Choice        // only for QuestionChoice
	// LeavesSandbox reports that the step may run outside the job's sandbox if it is
	// allowed.
	LeavesSandbox bool
	// IsCut reports that the CLI's question was too long to keep: it is denied.
	IsCut bool
}

// QuestionKind is the kind of a question.
type QuestionKind string

// The kinds of questions.
const (
	QuestionCommand QuestionKind = "command" // run a command
	QuestionEdit    QuestionKind = "edit"    // change files
	QuestionTool    QuestionKind = "tool"    // use another tool
	QuestionChoice  QuestionKind = "choice"  // the model itself asks something
)

// Choice is one question of the model.
type Choice struct {
	Question string
	Options  []string
	Several  bool // more than one option may be chosen
}

// Answer answers one question, once. It never allows later steps.
type Answer struct {
	Question string
	Allow    bool
	// Reason gives the model the reason of a refusal. It is omitted if the CLI cannot
	// forward it (Capabilities.DenyReason).
	Reason string
	// Choices answers an allowed QuestionChoice: the chosen options for each Choice, in
	// order.
	Choices [][]string
}

// Event is an event of a run: one of the types below.
type Event interface{ event() }

// Spawned is the first event: these processes run. It precedes any input to the CLI, so
// that they can be ended if the runner dies.
type Spawned struct {
	Processes []Process
	Floor     Floor
}

// Opened reports that the session exists, new or continued, and its id.
type Opened struct {
	Session      string
	Model        string // the CLI's reported model; may be empty
	Version      string // of the CLI; may be empty
	Capabilities Capabilities
}

// Titled reports the title of the session.
type Titled struct{ Title string }

// Activity reports each change of the run's state.
type Activity struct{ State ActivityState }

// ActivityState is the current activity of a run.
type ActivityState string

// The states of a run.
const (
	ActivityRunning        ActivityState = "running"
	ActivityRequiresAction ActivityState = "requires_action" // a question is open
	ActivityIdle           ActivityState = "idle"            // no turn runs; a message starts one
)

// Accepted reports that the CLI has queued a message.
type Accepted struct{ Message string }

// Inserted reports that a message is part of the current turn: the model's next request
// includes it.
type Inserted struct{ Message string }

// Text is a complete piece of the model's text.
type Text struct{ Text string }

// StepStarted reports that the model uses a tool.
type StepStarted struct {
	Step    string
	Tool    string
	Subject string          // the command or path, if any
	Input   json.RawMessage // may be nil
}

// StepEnded ends a step. A step of an interrupted turn may never end.
type StepEnded struct {
	Step   string
	State  StepState
	Exit   *int   // the command's exit code, if the CLI reports it
	Output string // the output for the model, if the CLI provides it
}

// StepState is how a step ended.
type StepState string

// The ends of a step.
const (
	StepDone    StepState = "done"
	StepFailed  StepState = "failed"
	StepRefused StepState = "refused" // by rule or answer: it did not run
)

// Asked opens a question. The run waits until it is answered or withdrawn.
type Asked struct{ Question Question }

// Resolved reports that the CLI acted on an answer: the step began, or the model will
// receive the refusal.
type Resolved struct{ Question string }

// Withdrawn reports that a question is gone and its answer was not used.
type Withdrawn struct{ Question string }

// Retrying reports that the CLI waits before a retry at its provider. The wait may take
// hours: the caller must limit it.
type Retrying struct {
	Until   time.Time // zero if the CLI does not report it
	Attempt int       // from 1
	Why     EndReason // the reason with which the turn would end
	Message string
}

// Usage is the session's total usage in this run. It replaces the previous one.
type Usage struct {
	Input      int64
	CacheRead  int64 // part of Input
	CacheWrite int64 // part of Input
	Output     int64
	Context    int64   // tokens in the model's window at its last request; 0 = unknown
	Window     int64   // size of that window; 0 = unknown
	CostUSD    float64 // as computed by the CLI
	CostKnown  bool
}

// TurnEnded ends a turn. One prompt may lead to several: a message that is late for one
// begins the next. Activity reports an idle run.
type TurnEnded struct {
	Why     EndReason
	Text    string    // the model's last text, or empty
	Message string    // the CLI's message about an end without an answer
	Status  int       // HTTP status of the provider; 0 if there was none
	Until   time.Time // for EndLimit: when the limit ends, if the CLI reports it
}

// EndReason is why a turn ended. Only EndAnswer is success.
type EndReason string

// The reasons.
const (
	EndAnswer      EndReason = "answer"      // the model has answered
	EndEmpty       EndReason = "empty"       // the turn ended without text
	EndRefusal     EndReason = "refusal"     // the model or its provider refused
	EndLimit       EndReason = "limit"       // the account's usage or credit is used up
	EndContext     EndReason = "context"     // the conversation exceeds the model's window
	EndLength      EndReason = "length"      // the answer was cut at its length limit
	EndAuth        EndReason = "auth"        // the provider rejected the account
	EndOverload    EndReason = "overload"    // too many requests, or an overloaded provider
	EndProvider    EndReason = "provider"    // the provider failed
	EndNetwork     EndReason = "network"     // the provider could not be reached, or the stream broke
	EndInterrupted EndReason = "interrupted" // on request
	EndDenied      EndReason = "denied"      // the CLI stopped after our refusal
	EndNoSession   EndReason = "no_session"  // the session to continue is unknown
	EndInUse       EndReason = "in_use"      // another process writes to the session
	EndLost        EndReason = "lost"        // the CLI ended, or its stream broke, during the turn
	EndFailed      EndReason = "failed"      // any other error of the CLI
)

// IsTransient reports whether a retry soon may help.
func (r EndReason) IsTransient() bool {
	return r == EndOverload || r == EndProvider || r == EndNetwork
}

// Noise is a line of the CLI that its driver does not interpret: diagnostics, or output
// of a newer version.
type Noise struct{ Line string }

// LineCut reports that a line of the CLI was too long: its long texts and lists were cut.
type LineCut struct {
	Bytes int64 // of the whole line
	Kept  int64 // 0 if the line was omitted
}

// SocketsOpen reports that the sandbox cannot block other programs' unix sockets: this
// system does not let Bridge inspect the job's processes.
type SocketsOpen struct{}

// SocketRefused reports a unix socket to which a process of the job may not connect.
type SocketRefused struct{ Socket string }

// Exited is the last event: the CLI's process has ended.
type Exited struct {
	Code   int    // -1 if a signal ended it
	Signal string // the name of that signal, such as SIGSEGV
	Stderr string // the end of its standard error
}

func (Spawned) event()       {}
func (Opened) event()        {}
func (Titled) event()        {}
func (Activity) event()      {}
func (Accepted) event()      {}
func (Inserted) event()      {}
func (Text) event()          {}
func (StepStarted) event()   {}
func (StepEnded) event()     {}
func (Asked) event()         {}
func (Resolved) event()      {}
func (Withdrawn) event()     {}
func (Retrying) event()      {}
func (Usage) event()         {}
func (TurnEnded) event()     {}
func (Noise) event()         {}
func (LineCut) event()       {}
func (SocketsOpen) event()   {}
func (SocketRefused) event() {}
func (Exited) event()        {}

// MaxAnswerBytes limits the kept text of one turn of an agent (SEC-11).
const MaxAnswerBytes = 32 << 20
