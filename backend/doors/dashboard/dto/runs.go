package dto

import (
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
)

// Run is a delegated job as the lists show it. Its run has the name of its job.
type Run struct {
	Run      string             `json:"run"`
	Job      string             `json:"job"`
	By       string             `json:"by"` // who supervises it
	Agent    bridge.AgentKind   `json:"agent"`
	Called   string             `json:"called"` // what its agent is called: the kind, or the name that its owner gave one of kind acp
	Title    string             `json:"title"`
	Status   job.State          `json:"status"`
	Wait     *job.Wait          `json:"wait"`  // for what a waiting one waits; null for every other
	Ended    job.EndReason      `json:"ended"` // why its last run ended, "" while it goes on
	Model    string             `json:"model"`
	Effort   string             `json:"effort"`
	Access   job.Access         `json:"access"`
	Layer    string             `json:"layer"` // what held below the agent's own rules
	Progress RunProgress        `json:"progress"`
	Step     string             `json:"step"` // what its agent does now, "" where that is not known
	Workdir  string             `json:"workdir"`
	Branch   string             `json:"branch"`  // of its worktree, or ""
	Session  string             `json:"session"` // the agent's own, "" before there is one
	Tokens   int64              `json:"tokens"`
	CostUSD  float64            `json:"costUsd"`
	Started  *bridge.UnixMillis `json:"startedAt"` // null while it stands in line
	EndedAt  *bridge.UnixMillis `json:"endedAt"`   // null while it goes on
	Worktree *RunWorktree       `json:"worktree"`  // null without one of its own
	Remote   *job.Remote        `json:"remote,omitempty"`
	Doubt    string             `json:"doubt,omitempty"` // why this may not be the present state of one on a paired PC
}

// RunWorktree is the checkout of a worktree job.
type RunWorktree struct {
	Path        string             `json:"path"`
	Repository  string             `json:"repository"`  // its main checkout, where the work is landed
	Bytes       int64              `json:"bytes"`       // what it holds, or what it gave back
	Stays       string             `json:"stays"`       // why it was not taken away, "" before that was looked at
	ReclaimedAt *bridge.UnixMillis `json:"reclaimedAt"` // when it was taken away; its branch stays
	Landing     *job.Landing       `json:"landing"`     // what the owner did last with the work, or null
}

// Worktrees sums up those that are there.
type Worktrees struct {
	Count int   `json:"count"`
	Bytes int64 `json:"bytes"`
}

// RunProgress is how far a job says that it is; null for what it does not say.
type RunProgress struct {
	Percent    *int   `json:"percent"`
	ETAMinutes *int64 `json:"etaMinutes"`
	Note       string `json:"note"`
}

// Job is what goes with a job's name in the state.
type Job struct {
	// Next is how the first words begin that wait for the job's next run.
	Next   string      `json:"next"`
	Remote *job.Remote `json:"remote,omitempty"`
}

// RunDetail is the answer of GET /api/runs/<run>.
type RunDetail struct {
	Run
	Prompt string `json:"prompt"`
	// Result is what came of the job's last run that has ended, or null.
	Result *RunResult `json:"result"`
}

// RunResult is what the agent said, beside what the runner saw.
type RunResult struct {
	Status   job.State          `json:"status"`
	Text     string             `json:"text"`
	Error    string             `json:"error"` // why there is no answer, or it cannot be read; "" where there is one
	At       *bridge.UnixMillis `json:"at"`
	Evidence Evidence           `json:"evidence"`
	// Variables are the names of what the job's environment had of its owner's.
	Variables []string `json:"variables"`
}

// Evidence is what the runner saw itself.
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
	Next int64  `json:"next"` // the byte at which the next piece begins
	Size int64  `json:"size"` // bytes of the whole log
}

// Approvals is the answer of GET /api/approvals, the oldest first.
type Approvals struct {
	Approvals []Approval `json:"approvals"`
}

// Approval is a question of a job and where its answer is: nothing is done before
// it is applied.
type Approval struct {
	ID         string             `json:"id"`
	Job        string             `json:"job"`
	Session    string             `json:"session"`
	By         string             `json:"by"`   // who may answer beside the owner
	Kind       string             `json:"kind"` // command, change, tool or question
	What       string             `json:"what"`
	Detail     string             `json:"detail"` // exact, never cut
	Cwd        string             `json:"cwd"`
	Why        string             `json:"why"` // what the agent says of it, or ""
	State      job.ApprovalState  `json:"state"`
	AskedAt    bridge.UnixMillis  `json:"askedAt"`
	ExpiresAt  *bridge.UnixMillis `json:"expiresAt"`  // null for a prompt of a session, which its terminal keeps
	AnsweredAt *bridge.UnixMillis `json:"answeredAt"` // null while nobody has
	AnsweredBy string             `json:"answeredBy"`
	Decision   job.Decision       `json:"decision"` // "" while there is none
	Reason     string             `json:"reason"`
	Remote     *job.Remote        `json:"remote,omitempty"` // which job on a paired PC asks
	// Of a prompt of an interactive session, whose job is "" and whose session is its
	// name: how it ended without an answer from here, why it cannot be answered here,
	// and what an answer does besides.
	Elsewhere job.Elsewhere `json:"elsewhere,omitempty"`
	OnlyTold  string        `json:"onlyTold,omitempty"`
	Caution   string        `json:"caution,omitempty"`
	// What its model asks in its own words, and what the owner chose, a list for each.
	Choices   []bridge.Choice `json:"choices,omitempty"`
	Answers   [][]string      `json:"answers,omitempty"`
	FromNowOn *FromNowOn      `json:"fromNowOn,omitempty"` // while it is open
}

// AnsweredBefore is the refusal of an answer that came too late: with the record as
// it stands.
type AnsweredBefore struct {
	Error
	Approval Approval `json:"approval"`
}

// Said is the answer to the owner's words, settings or cancellation of a job.
type Said struct {
	Job    string    `json:"job"`
	Status job.State `json:"status"`
	// Delivery says what becomes of words: running, continued or queued; null where
	// there were none.
	Delivery *job.Delivery `json:"delivery"`
}

// RunDiff is the answer of GET /api/runs/<run>/diff: the job's own changes.
type RunDiff struct {
	Base  string       `json:"base"` // commits
	Head  string       `json:"head"`
	Files []FileChange `json:"files"`
}

// FileChange is one file that differs from what stood there at the job's start.
type FileChange struct {
	Path    string `json:"path"`
	From    string `json:"from"`   // of a rename or copy, else ""
	Status  string `json:"status"` // added, modified, deleted, renamed, copied, type
	Added   int    `json:"added"`  // lines
	Removed int    `json:"removed"`
	Binary  bool   `json:"binary"`
	Patch   string `json:"patch"`
	Cut     bool   `json:"cut"` // the patch is too long to be shown
}

// Finished is the answer of POST /api/runs/<run>/finish.
type Finished struct {
	Action    string   `json:"action"`
	Conflicts []string `json:"conflicts"` // paths; where there are some nothing was done
	Done      bool     `json:"done"`
	Commit    string   `json:"commit"` // on the main checkout's branch, of keep and discard the job's own, or ""
	Branch    string   `json:"branch"` // of the job, after it
	Checkout  string   `json:"checkout"`
	LeftOut   []string `json:"leftOut,omitempty"` // sentences about what git cannot take up
}

// Conflicting is the refusal of a finish that files stand against.
type Conflicting struct {
	Error
	Finished
}
