// Package runs holds the rules of one run of a job: what its runner is given to do and
// where it is (spec.json, state.json), what was said in it, when it has to stop and ask,
// and what came of it (envelope.json). It does no I/O.
package runs

import (
	"encoding/json"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// maxRunnerBytes bounds a runner's own files: a prompt as the longest JSON escapes,
// with room for the rest.
const maxRunnerBytes = 4 << 20

// runnerVersion is the form of a runner's own files.
const runnerVersion = 1

// SpecFile is jobs/<name>/spec.json: what a runner is asked to do. Only the broker
// writes it, and it is read strictly: a runner that does not know a member would do
// something else than it was asked.
type SpecFile struct {
	Version    int              `json:"version"`
	Job        string           `json:"job"`
	Run        int              `json:"run"`
	Kind       bridge.AgentKind `json:"kind"`
	ACPAgent   string           `json:"acpAgent,omitempty"`
	PromptID   string           `json:"promptId"`
	Prompt     string           `json:"prompt"`
	Note       string           `json:"note,omitempty"`
	Title      string           `json:"title,omitempty"`
	Model      string           `json:"model,omitempty"`
	Effort     string           `json:"effort,omitempty"`
	Session    string           `json:"session,omitempty"` // to be continued
	Folder     string           `json:"folder"`
	Access     job.Access       `json:"access"`
	TimeoutSec int              `json:"timeoutSec"`
	BudgetUSD  float64          `json:"budgetUsd,omitempty"`
	Supervisor string           `json:"supervisor"`
	Depth      int              `json:"depth"`
	SendTo     []string         `json:"sendTo,omitempty"`
	Token      string           `json:"token"`
	Worktree   *job.Worktree    `json:"worktree,omitempty"`
	ToolOnly   bool             `json:"toolLevelOnly,omitempty"`
	QueuedAt   job.Millis       `json:"queuedAt,omitempty"`
	// Worktrees is where the checkout of a new worktree is made; "" is where the home
	// has them.
	Worktrees string `json:"worktrees,omitempty"`
	// Unlinked says that the folder was allowed by the name that it has: nothing on the
	// way to it may be a link by now (RMT-09).
	Unlinked bool `json:"unlinked,omitempty"`
}

// DecodeSpec reads a spec of that job.
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

// Encode writes the spec.
func (s SpecFile) Encode() ([]byte, error) {
	s.Version = runnerVersion
	return json.MarshalIndent(s, "", "  ")
}

// StateFile is jobs/<name>/state.json: where a runner is, and whose processes have
// to be ended by whoever finds it dead. Only the runner writes it.
type StateFile struct {
	Version   int           `json:"version"`
	Job       string        `json:"job"`
	Run       int           `json:"run"`
	State     job.State     `json:"state"`
	Wait      *job.Wait     `json:"wait,omitempty"`
	Runner    job.Process   `json:"runner"`
	Processes []job.Process `json:"processes,omitempty"` // the agent's own and their helpers
	// Tracking says how those that belong to the run are told; "" while there are none.
	Tracking Tracking  `json:"tracking,omitempty"`
	Layer    job.Floor `json:"layer,omitempty"`
	Session  string    `json:"session,omitempty"`
	Title    string    `json:"title,omitempty"`
	Model    string    `json:"model,omitempty"`
	Step     string    `json:"step,omitempty"`
	Tokens   int64     `json:"tokens,omitempty"`
	CostUSD  float64   `json:"costUsd,omitempty"`
	Tried    int       `json:"tried,omitempty"` // tries again after a provider's trouble
	// NextTurn says that a message to the running agent waits for its turn's end.
	NextTurn bool `json:"nextTurn,omitempty"`
	// Worktree is the one that the job has, also where the spec asks for a new one by
	// an empty path.
	Worktree *job.Worktree `json:"worktree,omitempty"`
	Base     string        `json:"base,omitempty"` // commit and files at the job's start
	BaseTree string        `json:"baseTree,omitempty"`
	HeadTree string        `json:"headTree,omitempty"` // at its end, where it has no worktree
	// Checkout is what git knew of the job's place before the job began; nil outside of a
	// repository, and in what older programs wrote.
	Checkout  *job.Checkout `json:"checkout,omitempty"`
	UpdatedAt job.Millis    `json:"updatedAt"`
}

// Tracking is how the processes of a run are told from others (SEC-08).
type Tracking string

// The ways to tell them.
const (
	TrackedByCgroup  Tracking = "cgroup"    // they are in a control group of the run's own
	TrackedByProcess Tracking = "processes" // by their parents, by marks, and because they were seen below the runner
)

// DecodeState reads the state of that job's runner. What a newer runner adds is
// passed over: whoever finds it dead needs the processes above all.
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

// Encode writes the state.
func (s StateFile) Encode() ([]byte, error) {
	s.Version = runnerVersion
	return json.MarshalIndent(s, "", "  ")
}
