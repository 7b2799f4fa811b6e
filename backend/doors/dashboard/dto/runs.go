package dto

import (
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
)

// Run is a delegated job in a list. Its run has the name of its job.
type Run struct {
	Run      string             `json:"run"`
	Job      string             `json:"job"`
	By       string             `json:"by"` // its supervisor
	Agent    bridge.AgentKind   `json:"agent"`
	Called   string             `json:"called"` // the agent's display name: the kind, or the owner's name for one of kind acp
	Title    string             `json:"title"`
	Status   job.State          `json:"status"`
	Wait     *job.Wait          `json:"wait"`  // what a waiting job waits for; null otherwise
	Ended    job.EndReason      `json:"ended"` // why its last run ended; "" while it runs
	Model    string             `json:"model"`
	Effort   string             `json:"effort"`
	Access   job.Access         `json:"access"`
	Layer    string             `json:"layer"` // the sandbox below the agent's own rules
	Progress RunProgress        `json:"progress"`
	Step     string             `json:"step"` // the agent's current step; "" if unknown
	Workdir  string             `json:"workdir"`
	Branch   string             `json:"branch"`  // of its worktree, or ""
	Session  string             `json:"session"` // the agent's own; "" before it has one
	Tokens   int64              `json:"tokens"`
	CostUSD  float64            `json:"costUsd"`
	Started  *bridge.UnixMillis `json:"startedAt"` // null while it is queued
	EndedAt  *bridge.UnixMillis `json:"endedAt"`   // null while it runs
	Worktree *RunWorktree       `json:"worktree"`  // null without a worktree
	Remote   *job.Remote        `json:"remote,omitempty"`
	Doubt    string             `json:"doubt,omitempty"` // why the state of a job on a paired PC may be outdated
}

// RunWorktree is the checkout of a worktree job.
type RunWorktree struct {
	Path        string             `json:"path"`
	Repository  string             `json:"repository"`  // its main checkout, into which the work lands
	Bytes       int64              `json:"bytes"`       // its size, or the space freed by its removal
	Stays       string             `json:"stays"`       // why it was not removed; "" before that was checked
	ReclaimedAt *bridge.UnixMillis `json:"reclaimedAt"` // time of its removal; its branch stays
	Landing     *job.Finish        `json:"landing"`     // the owner's last action on the work, or null
	Landed      *job.Finish        `json:"landed"`      // the action that an undo takes back, or null
}

// Worktrees sums up the existing ones.
type Worktrees struct {
	Count int   `json:"count"`
	Bytes int64 `json:"bytes"`
}

// RunProgress is a job's own progress report; null for unreported values.
type RunProgress struct {
	Percent    *int   `json:"percent"`
	ETAMinutes *int64 `json:"etaMinutes"`
	Note       string `json:"note"`
}

// Job holds a job's further data in the state.
type Job struct {
	// Next is the start of the first message queued for the job's next run.
	Next   string      `json:"next"`
	Remote *job.Remote `json:"remote,omitempty"`
}

// RunDetail is the answer of GET /api/runs/<run>.
type RunDetail struct {
	Run
	Prompt string `json:"prompt"`
	// Result is the result of the job's last ended run, or null.
	Result *RunResult `json:"result"`
}

// RunTurns is the answer of GET /api/runs/<run>/turns: the newest turns, oldest first.
type RunTurns struct {
	Turns []RunTurn `json:"turns"`
}

// RunTurn is one turn of a job: the words that began it, and its answer.
type RunTurn struct {
	Run        int                `json:"run"`     // from 1
	Message    string             `json:"message"` // "" if it is not known
	By         []string           `json:"by"`      // the names of the message's authors; "you" is the owner
	Status     job.State          `json:"status"`  // "" before its end
	Ended      job.EndReason      `json:"ended"`
	Text       string             `json:"text"`  // at most 64 KiB of it
	Error      string             `json:"error"` // why there is no readable answer, or ""
	At         *bridge.UnixMillis `json:"at"`    // of its end, or null
	DurationMs int64              `json:"durationMs"`
	Tokens     int64              `json:"tokens"`
	CostUSD    float64            `json:"costUsd"`
}

// RunResult is the agent's answer and the runner's observations.
type RunResult struct {
	Status   job.State          `json:"status"`
	Text     string             `json:"text"`
	Error    string             `json:"error"` // why there is no readable answer, or ""
	At       *bridge.UnixMillis `json:"at"`
	Evidence Evidence           `json:"evidence"`
	// Variables lists the names of the owner's variables in the job's environment.
	Variables []string `json:"variables"`
}

// Evidence holds the runner's own observations.
type Evidence struct {
	Base       string         `json:"base"` // commits, "" outside of a repository
	Head       string         `json:"head"`
	Files      []runs.Changed `json:"files"`
	Commands   []runs.Command `json:"commands"`
	Tokens     int64          `json:"tokens"`
	CostUSD    float64        `json:"costUsd"`
	DurationMs int64          `json:"durationMs"`
	Ended      job.EndReason  `json:"ended"`
	Layer      string         `json:"layer"`
}

// RunLog is the answer of GET /api/runs/<run>?from=<byte>.
type RunLog struct {
	Text string `json:"text"`
	Next int64  `json:"next"` // the first byte of the next part
	Size int64  `json:"size"` // bytes of the whole log
}

// Approvals is the answer of GET /api/approvals, oldest first.
type Approvals struct {
	Approvals []Approval `json:"approvals"`
}

// Approval is a question of a job with the state of its answer: nothing happens
// before the answer is applied.
type Approval struct {
	ID         string             `json:"id"`
	Job        string             `json:"job"`
	Session    string             `json:"session"`
	By         string             `json:"by"`   // who may answer in addition to the owner
	Kind       string             `json:"kind"` // command, change, tool or question
	What       string             `json:"what"`
	Detail     string             `json:"detail"` // exact, never cut
	Cwd        string             `json:"cwd"`
	Why        string             `json:"why"` // the agent's explanation, or ""
	State      job.ApprovalState  `json:"state"`
	AskedAt    bridge.UnixMillis  `json:"askedAt"`
	ExpiresAt  *bridge.UnixMillis `json:"expiresAt"`  // null for a session's prompt, which its terminal keeps
	AnsweredAt *bridge.UnixMillis `json:"answeredAt"` // null without an answer
	AnsweredBy string             `json:"answeredBy"`
	Decision   job.Decision       `json:"decision"` // "" without a decision
	Reason     string             `json:"reason"`
	Remote     *job.Remote        `json:"remote,omitempty"` // the asking job on a paired PC
	// For a prompt of an interactive session (Job is "", Session is its name): how
	// it ended elsewhere, why it cannot be answered here, and further effects of an
	// answer.
	Elsewhere job.Elsewhere `json:"elsewhere,omitempty"`
	OnlyTold  string        `json:"onlyTold,omitempty"`
	Caution   string        `json:"caution,omitempty"`
	// The questions of its model, and the owner's choices, one list for each.
	Choices   []bridge.Choice `json:"choices,omitempty"`
	Answers   [][]string      `json:"answers,omitempty"`
	FromNowOn *FromNowOn      `json:"fromNowOn,omitempty"` // while it is open
}

// AnsweredBefore is the refusal of a late answer, with the current record.
type AnsweredBefore struct {
	Error
	Approval Approval `json:"approval"`
}

// Said is the answer to the owner's message, settings or cancellation for a job.
type Said struct {
	Job    string    `json:"job"`
	Status job.State `json:"status"`
	// Delivery is the state of a message: running, continued or queued; null
	// without a message.
	Delivery *job.Delivery `json:"delivery"`
}

// RunDiff is the answer of GET /api/runs/<run>/diff: the job's own changes.
type RunDiff struct {
	Base  string       `json:"base"` // commits
	Head  string       `json:"head"`
	Files []FileChange `json:"files"`
}

// FileChange is one file that differs from its state at the job's start.
type FileChange struct {
	Path    string `json:"path"`
	From    string `json:"from"`   // for a rename or copy, else ""
	Status  string `json:"status"` // added, modified, deleted, renamed, copied, type
	Added   int    `json:"added"`  // lines
	Removed int    `json:"removed"`
	Binary  bool   `json:"binary"`
	Patch   string `json:"patch"`
	Cut     bool   `json:"cut"` // the patch is too long to show
}

// Finished is the answer of POST /api/runs/<run>/finish.
type Finished struct {
	Action    string   `json:"action"`
	Conflicts []string `json:"conflicts"` // paths; with conflicts nothing was done
	Done      bool     `json:"done"`
	Commit    string   `json:"commit"` // on the main checkout's branch, for keep and discard the job's own, or ""
	Branch    string   `json:"branch"` // of the job, after the action
	Checkout  string   `json:"checkout"`
	LeftOut   []string `json:"leftOut,omitempty"` // sentences about content that git cannot include
}

// Conflicting is the refusal of a finish because of conflicting files.
type Conflicting struct {
	Error
	Finished
}
