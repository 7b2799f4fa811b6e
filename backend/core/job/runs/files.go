// Package runs has the rules of one run of a job: the input and state of its runner
// (spec.json, state.json), its transcript, when it must stop and ask, and its result
// (envelope.json). It does no I/O.
package runs

import (
	"encoding/json"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// maxRunnerBytes limits a runner's own files: a prompt as the longest JSON escapes, and
// the rest.
const maxRunnerBytes = 4 << 20

// runnerVersion is the version of a runner's own files.
const runnerVersion = 1

// SpecFile is jobs/<name>/spec.json: the input of a runner. Only the broker writes it.
// It is decoded strictly, because a runner that ignored an unknown member would perform
// another task.
type SpecFile struct {
	Version    int              `json:"version"`
	Job        string           `json:"job"`
	Run        int              `json:"run"`
	Kind       bridge.AgentKind `json:"kind"`
	ACPAgent   string           `json:"acpAgent,omitempty"`
	PromptID   string           `json:"promptId"`
	Prompt     string           `json:"prompt"`
	PromptBy   []string         `json:"promptBy,omitempty"` // the names of its authors
	Note       string           `json:"note,omitempty"`
	Title      string           `json:"title,omitempty"`
	Model      string           `json:"model,omitempty"`
	Effort     string           `json:"effort,omitempty"`
	Session    string           `json:"session,omitempty"` // to continue
	Folder     string           `json:"folder"`
	Access     job.Access       `json:"access"`
	TimeoutSec int              `json:"timeoutSec"`
	BudgetUSD  float64          `json:"budgetUsd,omitempty"`
	Supervisor string           `json:"supervisor"`
	Depth      int              `json:"depth"`
	SendTo     []string         `json:"sendTo,omitempty"`
	Token      string           `json:"token"`
	Worktree   *job.Worktree    `json:"worktree,omitempty"`
	QueuedAt   job.Millis       `json:"queuedAt,omitempty"`
	// Worktrees is the folder for the checkout of a new worktree; "" is the home's
	// folder.
	Worktrees string `json:"worktrees,omitempty"`
	Restrictions
}

// Restrictions limit how a run may start.
type Restrictions struct {
	ToolOnly bool `json:"toolLevelOnly,omitempty"`
	// Unlinked reports that the folder was permitted under its own name: its path may
	// contain no link now (RMT-09).
	Unlinked bool `json:"unlinked,omitempty"`
}

// DecodeSpec reads a spec of that job. It fails with Invalid for data of another job or
// without a required member, and with Unsupported for another version.
func DecodeSpec(data []byte, name string) (SpecFile, error) {
	var spec SpecFile
	if err := bridge.DecodeStrict(data, maxRunnerBytes, &spec); err != nil {
		return SpecFile{}, err
	}
	switch {
	case spec.Version != runnerVersion:
		return SpecFile{}, bridge.Errorf(bridge.Unsupported, "the spec of %s is of version %d: this program knows %d", name, spec.Version, runnerVersion)
	case spec.Job != name || spec.Run < 1:
		return SpecFile{}, bridge.Errorf(bridge.Invalid, "the spec of %s is of run %d of %q", name, spec.Run, spec.Job)
	case spec.Prompt == "" || spec.PromptID == "" || spec.Token == "" || !job.IsAbsolute(spec.Folder):
		return SpecFile{}, bridge.Errorf(bridge.Invalid, "the spec of %s lacks its prompt, its token or an absolute folder", name)
	}
	_, err := job.ParseAccess(string(spec.Access))
	return spec, err
}

// Encode returns the spec as JSON. It fails if a member cannot be encoded.
func (s SpecFile) Encode() ([]byte, error) {
	s.Version = runnerVersion
	return json.MarshalIndent(s, "", "  ")
}

// StateFile is jobs/<name>/state.json: a runner's state, and the processes to end if
// the runner dies. Only the runner writes it.
type StateFile struct {
	Version   int           `json:"version"`
	Job       string        `json:"job"`
	Run       int           `json:"run"`
	State     job.State     `json:"state"`
	Wait      *job.Wait     `json:"wait,omitempty"`
	Runner    job.Process   `json:"runner"`
	Processes []job.Process `json:"processes,omitempty"` // the agent's processes and their helpers
	// Tracking is how the run's processes are identified; "" while there are none.
	Tracking Tracking  `json:"tracking,omitempty"`
	Layer    job.Floor `json:"layer,omitempty"`
	Session  string    `json:"session,omitempty"`
	Title    string    `json:"title,omitempty"`
	Model    string    `json:"model,omitempty"`
	Step     string    `json:"step,omitempty"`
	Tokens   int64     `json:"tokens,omitempty"`
	CostUSD  float64   `json:"costUsd,omitempty"`
	Tried    int       `json:"tried,omitempty"` // retries after a provider's failure
	// NextTurn reports that a message to the running agent waits for the end of its turn.
	NextTurn bool `json:"nextTurn,omitempty"`
	// Worktree is the job's worktree, also if the spec requests a new one by an empty
	// path.
	Worktree *job.Worktree `json:"worktree,omitempty"`
	Base     string        `json:"base,omitempty"` // commit and files at the job's start
	BaseTree string        `json:"baseTree,omitempty"`
	HeadTree string        `json:"headTree,omitempty"` // at its end, for a job without a worktree
	// Checkout is git's data of the job's place before the job began. It is nil outside
	// a repository and in older files.
	Checkout  *job.Checkout `json:"checkout,omitempty"`
	UpdatedAt job.Millis    `json:"updatedAt"`
}

// Tracking is how the processes of a run are distinguished from others (SEC-08).
type Tracking string

// The methods of tracking.
const (
	TrackedByCgroup  Tracking = "cgroup"    // by a control group of the run
	TrackedByProcess Tracking = "processes" // by parents, by marks, and by earlier observation below the runner
)

// DecodeState reads the state of that job's runner. It ignores members of a newer
// runner, because the processes matter most if the runner is dead. It fails with
// Invalid for data of another job, and with TooLarge beyond the size limit.
func DecodeState(data []byte, name string) (StateFile, error) {
	var state StateFile
	if err := bridge.DecodeAdditive(data, maxRunnerBytes, &state); err != nil {
		return StateFile{}, err
	}
	if state.Job != name || state.Run < 1 {
		return StateFile{}, bridge.Errorf(bridge.Invalid, "the state of %s is of run %d of %q", name, state.Run, state.Job)
	}
	return state, nil
}

// Encode returns the state as JSON. It fails if a member cannot be encoded.
func (s StateFile) Encode() ([]byte, error) {
	s.Version = runnerVersion
	return json.MarshalIndent(s, "", "  ")
}
