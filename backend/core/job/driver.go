// Package job holds the rules of delegated jobs and the ports that they are
// carried out through. It does no I/O.
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

// Driver starts an agent CLI for one job. Each kind has one; all of them keep
// the same contract, and one suite of cases holds them to it.
type Driver interface {
	// Start starts the CLI and returns as soon as its process runs; it does not
	// wait for the CLI to answer, which may take it a minute. The prompt is handed
	// over by itself. ctx bounds Start alone, never the run. An error means that
	// nothing runs: Invalid for what the kind cannot do, Denied where the floor
	// cannot be had, Unavailable where the program does not start. Everything that
	// goes wrong later is an event.
	Start(ctx context.Context, spec Spec) (Run, error)
}

// Run is one CLI at work for a job. Its methods may be called by several
// goroutines at once and in any state of the run.
type Run interface {
	// Events returns the one stream of what happens, always the same channel. It
	// is closed after Exited, the last event. Nothing is lost by reading slowly:
	// what is unread is kept in memory.
	Events() <-chan Event

	// Message hands the message over. While the model works it reaches it at its
	// next step where the CLI can (Capabilities.LiveMessage), else as the next
	// turn; while it is idle it starts a turn. nil means that the CLI has taken it;
	// Accepted and Inserted tell how far it came. It waits, within ctx, for a CLI
	// that is still starting. By its id a message is handed over once: a second
	// call with the same id returns what the first one came to.
	// ErrUnconfirmed: it may have arrived. ErrEnded: it certainly did not. Any
	// other error is the CLI's refusal; it did not arrive.
	Message(ctx context.Context, message Message) error

	// Answer answers an open question. nil means that the CLI has taken the answer;
	// Resolved tells that it acted on it. The same answer again is no error; another
	// one is Conflict, and a question that is not open (any more) is NotFound: in
	// both cases nothing was done. ErrUnconfirmed: it may have arrived.
	Answer(ctx context.Context, answer Answer) error

	// Interrupt stops the turn that runs; what it started in the background may go
	// on until Close. It returns when the CLI has taken it; TurnEnded with
	// EndInterrupted follows, and open questions are withdrawn. While nothing runs
	// it does nothing. It may be repeated. ErrUnconfirmed: it may have arrived.
	Interrupt(ctx context.Context) error

	// Close ends the CLI: it interrupts a running turn, ends what the CLI knows to
	// run in the background, and asks the process to end. When ctx is done it is
	// killed with its process group. It returns when the process has ended; what
	// left its group is the reaper's. It may be called at any time, while busy too,
	// and again: later calls wait for the same end. The error tells only that the
	// process could not be ended.
	Close(ctx context.Context) error
}

// ErrUnconfirmed reports an unclear outcome: it was sent and nothing came back.
// It may have arrived, so nobody repeats it by himself.
var ErrUnconfirmed = errors.New("it is not known whether the agent has received it")

// ErrEnded reports a run that is over; what was asked for was not done.
var ErrEnded = errors.New("the agent is not running any more")

// Spec says what to start. No field of it ever reaches a shell.
type Spec struct {
	Job     string // name of the job; BRIDGE_JOB of all its processes
	Token   string // secret of the job; BRIDGE_JOB_TOKEN of all its processes
	Depth   int    // 1 for a job of a session
	Kind    bridge.AgentKind
	Command []string // the CLI: absolute path, then arguments that come first
	Prompt  Message
	Note    string // added to what the CLI tells the model about itself; may be empty
	Title   string // may be empty
	Folder  string // absolute
	// Unlinked says that nothing on the way to Folder and to Writable may be a link when
	// the CLI is started there.
	Unlinked bool
	Model    string // as the CLI names it; empty is the CLI's own choice
	Effort   string // as the CLI names it; empty is the CLI's own choice
	Access   Access
	// Session is the session to continue; empty begins a new one. Nobody else may
	// write to it meanwhile: not every CLI refuses a second writer.
	Session string
	// Bridge is the MCP server of this job, whose tools are never asked about.
	Bridge MCPServer
	// Hooks is what the CLI's settings say about hooks, as JSON, for the kinds that
	// take them for one run; empty means no hooks at all.
	Hooks json.RawMessage
	// Env is NAME=value of what the owner's environment and config pass on, added to the
	// few variables that every program needs; NAME alone takes one of these away.
	Env []string
	// StateFolder is the job's own folder; the CLI's TMPDIR is made in it.
	StateFolder string
	// Sandbox is the command that puts the floor under a program (`bridge
	// sandbox-exec`); empty where this system has none.
	Sandbox []string
	// BrokerSocket is the path of the broker's socket, to which every job may connect.
	BrokerSocket string
	// Sockets are the paths of other programs' unix sockets to which a job that does more
	// than read may connect.
	Sockets []string
	// Writable is what an edit job may write besides its folder: the git folders of
	// a linked worktree.
	Writable []string
	// ToolLevelOnly lets a job run where its floor cannot be had.
	ToolLevelOnly bool
	// ACP is what is known of an agent of the kind ACP.
	ACP ACPAgent
}

// Variables are the names of Env that stand in the job's environment, sorted.
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

// ACPAgent is what the owner's config says of an agent that speaks the Agent Client
// Protocol, beside its command.
type ACPAgent struct {
	Name     string            // in agents.acp
	Writable []string          // absolute folders of its own state, which it writes under a floor
	Modes    map[Access]string // the mode for each access, as the agent names it
}

// MCPServer is a program that speaks MCP over its standard input and output.
type MCPServer struct {
	Command string
	Args    []string
	Env     []string // NAME=value; job and token are added
	Tools   []string // their names, for the CLIs that allow tools one by one
}

// Access is what a job may do in its folder.
type Access string

// The access modes.
const (
	AccessRead Access = "read" // changes nothing
	AccessAsk  Access = "ask"  // edits within its folder, and asks before each change
	AccessEdit Access = "edit" // edits within its folder
)

// Floor is what holds below the CLI's own rules.
type Floor string

// The floors.
const (
	FloorNone    Floor = "none"    // the CLI's own rules alone
	FloorSandbox Floor = "sandbox" // `bridge sandbox-exec` around the CLI
	FloorOwn     Floor = "own"     // the CLI's own sandbox around each command
	// FloorSignals is FloorSandbox on a kernel without Landlock's scope of signals (before
	// version 6): the job can end processes of its user outside of the sandbox.
	FloorSignals Floor = "sandbox-signals"
)

// Message is words for the model. Its id is a UUID and names it in every event.
type Message struct {
	ID   string
	Text string
}

// Capabilities tells what a run can do. What is missing is said, never imitated.
type Capabilities struct {
	LiveMessage bool // a message reaches the turn that runs
	DenyReason  bool // the model reads why it was refused
	Resume      bool // the session can be continued later
	Background  bool // an interrupt ends what was started in the background, too
}

// Process is one process of a job, recognisable after its number was given to
// another one.
type Process struct {
	PID      int    `json:"pid"`
	Identity string `json:"identity"` // proc.Identity
	Role     string `json:"role"`     // "cli", or what else the driver started
}

// Question is what the CLI asks before it goes on.
type Question struct {
	ID   string
	Step string // the step that waits for it; may be empty
	Kind QuestionKind
	Tool string // as the CLI names it
	// Subject is the exact command, path or question, never cut.
	Subject string
	Folder  string          // where a command would run; empty where the CLI does not say
	Reason  string          // why the model or the CLI asks; may be empty
	Input   json.RawMessage // the tool's exact input, as far as the CLI gives it
	Diff    string          // the change, where the CLI gives one
	Choices []Choice        // of QuestionChoice alone
	// LeavesSandbox says that what is asked about may be done outside of the job's sandbox
	// once it is allowed.
	LeavesSandbox bool
	// IsCut says that the CLI's question was too long to be kept whole: it is refused.
	IsCut bool
}

// QuestionKind tells what a question is about.
type QuestionKind string

// The kinds of questions.
const (
	QuestionCommand QuestionKind = "command" // run a command
	QuestionEdit    QuestionKind = "edit"    // change files
	QuestionTool    QuestionKind = "tool"    // use another tool
	QuestionChoice  QuestionKind = "choice"  // the model asks something itself
)

// Choice is one thing that the model wants to know.
type Choice struct {
	Question string
	Options  []string
	Several  bool // more than one option may be taken
}

// Answer answers one question, once. It never allows anything for later.
type Answer struct {
	Question string
	Allow    bool
	// Reason tells the model why it was refused. Where the CLI cannot pass it on
	// (Capabilities.DenyReason) it is left out.
	Reason string
	// Choices answers a QuestionChoice that is allowed: for each Choice, in its
	// order, the options taken.
	Choices [][]string
}

// Event is something that happened in a run: one of the types below.
type Event interface{ event() }

// Spawned is the first event: these processes run. It comes before anything is
// said to the CLI, so that whoever finds a dead runner can end them.
type Spawned struct {
	Processes []Process
	Floor     Floor
}

// Opened says that the session is there, new or continued, and its id.
type Opened struct {
	Session      string
	Model        string // what the CLI says it uses; may be empty
	Version      string // of the CLI; may be empty
	Capabilities Capabilities
}

// Titled gives the title of the session.
type Titled struct{ Title string }

// Activity says what the run does. It comes when that changes.
type Activity struct{ State ActivityState }

// ActivityState is what a run does.
type ActivityState string

// The states of a run.
const (
	ActivityRunning        ActivityState = "running"
	ActivityRequiresAction ActivityState = "requires_action" // a question is open
	ActivityIdle           ActivityState = "idle"            // no turn runs; a message starts one
)

// Accepted says that the CLI has queued a message.
type Accepted struct{ Message string }

// Inserted says that a message is part of the turn that runs: the model's next
// request carries it.
type Inserted struct{ Message string }

// Text is a finished piece of what the model says.
type Text struct{ Text string }

// StepStarted says that the model uses a tool.
type StepStarted struct {
	Step    string
	Tool    string
	Subject string          // the command or path, where there is one
	Input   json.RawMessage // may be nil
}

// StepEnded ends a step. A step of an interrupted turn may never end.
type StepEnded struct {
	Step   string
	State  StepState
	Exit   *int   // the command's exit code where the CLI tells it
	Output string // what the model got, where the CLI gives it
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

// Resolved says that the CLI acted on an answer: the step began, or the refusal
// is on its way to the model.
type Resolved struct{ Question string }

// Withdrawn says that a question is gone without the answer having been used.
type Withdrawn struct{ Question string }

// Retrying says that the CLI waits before it asks its provider again. It may wait
// for hours by itself: whoever drives it bounds that.
type Retrying struct {
	Until   time.Time // zero where the CLI does not say
	Attempt int       // from 1
	Why     EndReason // what the turn would end with
	Message string
}

// Usage is what the session has used so far in this run. It replaces the one
// before.
type Usage struct {
	Input      int64
	CacheRead  int64 // part of Input
	CacheWrite int64 // part of Input
	Output     int64
	Context    int64   // tokens in the model's window at its last request; 0 = unknown
	Window     int64   // size of that window; 0 = unknown
	CostUSD    float64 // as the CLI computes it
	CostKnown  bool
}

// TurnEnded ends a turn. One prompt may lead to several: a message that came too
// late for one begins the next, and Activity says when the run is idle.
type TurnEnded struct {
	Why     EndReason
	Text    string    // the model's last words, or empty
	Message string    // what the CLI says about an end that is no answer
	Status  int       // HTTP status of the provider; 0 where there was none
	Until   time.Time // of EndLimit: when it is over, as far as the CLI says it
}

// EndReason is why a turn ended. Only EndAnswer is success.
type EndReason string

// The reasons.
const (
	EndAnswer      EndReason = "answer"      // the model has answered
	EndEmpty       EndReason = "empty"       // it ended without a word
	EndRefusal     EndReason = "refusal"     // the model or its provider refused
	EndLimit       EndReason = "limit"       // the account's usage or credit is used up
	EndContext     EndReason = "context"     // the conversation does not fit any more
	EndLength      EndReason = "length"      // the answer was cut by its own limit
	EndAuth        EndReason = "auth"        // the provider does not accept the account
	EndOverload    EndReason = "overload"    // too many requests, or an overloaded provider
	EndProvider    EndReason = "provider"    // the provider failed
	EndNetwork     EndReason = "network"     // the provider could not be reached, or the stream broke
	EndInterrupted EndReason = "interrupted" // on request
	EndDenied      EndReason = "denied"      // the CLI stopped at a refusal of ours
	EndNoSession   EndReason = "no_session"  // the session to continue is unknown
	EndInUse       EndReason = "in_use"      // another process writes to the session
	EndLost        EndReason = "lost"        // the CLI ended, or its stream broke, in the middle
	EndFailed      EndReason = "failed"      // anything else that the CLI calls an error
)

// IsTransient reports whether trying again soon may help.
func (r EndReason) IsTransient() bool {
	return r == EndOverload || r == EndProvider || r == EndNetwork
}

// Noise is a line of the CLI that means nothing to its driver: its diagnostics,
// or something newer than the driver.
type Noise struct{ Line string }

// LineCut says that a line of the CLI was too long: its long texts and lists were cut.
type LineCut struct {
	Bytes int64 // of the whole line
	Kept  int64 // 0 where the line was left out
}

// SocketsOpen says that the sandbox leaves other programs' unix sockets open, because this
// system does not let Bridge look into the job's processes.
type SocketsOpen struct{}

// SocketRefused is a unix socket to which a process of the job was not allowed to connect.
type SocketRefused struct{ Socket string }

// Exited is the last event: the CLI's process has ended.
type Exited struct {
	Code   int    // -1 where a signal ended it
	Signal string // that one, SIGSEGV
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

// MaxAnswerBytes bounds the words that are kept of one turn of an agent (SEC-11).
const MaxAnswerBytes = 32 << 20
