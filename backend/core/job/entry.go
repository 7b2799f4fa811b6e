package job

import (
	"encoding/json"
	"maps"
	"slices"

	"bridge/backend/core/bridge"
)

// Job is one delegated job in the registry: an entry of jobs.json in the field's known
// layout, with additional members of ours. Members of other programs are kept.
type Job struct {
	ID         string           `json:"id,omitempty"`
	Name       string           `json:"name"`
	Agent      bridge.AgentKind `json:"agent"`
	ACPAgent   string           `json:"acpAgent,omitempty"`
	Title      string           `json:"title,omitempty"`
	Model      string           `json:"model,omitempty"`
	Effort     string           `json:"effort,omitempty"`
	Access     Access           `json:"access,omitempty"`
	Prompt     string           `json:"prompt"`
	Owner      string           `json:"owner"`                // the requester: a session, or the job above
	Supervisor string           `json:"supervisor,omitempty"` // the stable identity behind Owner
	PC         string           `json:"forPC,omitempty"`      // the identity of the paired PC that asked for it (RMT-12)
	Root       string           `json:"rootName,omitempty"`   // the session at the top
	RootID     string           `json:"rootSession,omitempty"`
	Parent     string           `json:"parentJob,omitempty"`
	Depth      int              `json:"depth,omitempty"` // 1 for a job of a session
	Masters    []string         `json:"masters,omitempty"`
	History    []Ownership      `json:"ownershipHistory,omitempty"`

	Status         string `json:"status"` // the field's name for State
	State          State  `json:"state,omitempty"`
	Wait           *Wait  `json:"wait,omitempty"`
	Run            int    `json:"run,omitempty"` // the number of runs that began
	FirstStartedAt Millis `json:"firstStartedAt,omitempty"`
	StartedAt      Millis `json:"startedAt,omitempty"`
	FinishedAt     Millis `json:"finishedAt,omitempty"`
	QueuedAt       Millis `json:"queuedAt,omitempty"`
	// Line is the place in the queue; the lowest is next.
	Line        int64     `json:"line,omitempty"`
	Ended       EndReason `json:"ended,omitempty"`
	LimitUntil  Millis    `json:"limitUntil,omitempty"`
	CancelAsked bool      `json:"cancelAsked,omitempty"`
	// ResultSent is set when the result message of the last run is durable.
	ResultSent bool `json:"delivered,omitempty"`

	SessionID string    `json:"sessionId,omitempty"`
	Workdir   string    `json:"workdir,omitempty"`
	Worktree  *Worktree `json:"worktree,omitempty"`
	Landing   *Landing  `json:"landing,omitempty"`
	NextRun
	// Said are the ids of the last messages of earlier runs, oldest first: none is sent
	// again.
	Said         []string `json:"said,omitempty"`
	SendTo       []string `json:"sendTo,omitempty"`
	TimeoutSec   int      `json:"timeoutSec,omitempty"`
	BudgetUSD    float64  `json:"budgetUsd,omitempty"`
	Layer        string   `json:"layer,omitempty"` // the floor of its run (JOB-14)
	Host         *Host    `json:"host,omitempty"`
	Remote       *Remote  `json:"remote,omitempty"`
	Mirror       *Mirror  `json:"mirror,omitempty"` // for a job on a paired PC that this program requested
	ProjectRoot  string   `json:"projectRoot,omitempty"`
	Percent      *int     `json:"percent,omitempty"`
	ProgressNote string   `json:"progressNote,omitempty"`
	ETAAt        Millis   `json:"etaAt,omitempty"`
	Tokens       int64    `json:"tokens,omitempty"`
	CostUSD      float64  `json:"costUsd,omitempty"`

	rest members
}

// NextRun is the input of a job's next run: messages, first in, first out, and the names of
// their authors. A message that came too late for the run before has no name, an unknown
// author has "".
type NextRun struct {
	QueuedMessages []string `json:"queuedMessages,omitempty"`
	QueuedAuthors  []string `json:"queuedAuthors,omitempty"`
}

// Ownership is one change of supervisor (JOB-23).
type Ownership struct {
	From string `json:"from"`
	To   string `json:"to"`
	At   Millis `json:"at"`
	Note string `json:"note,omitempty"`
}

// Worktree is the worktree of a job (JOB-08).
type Worktree struct {
	RepoRoot   string `json:"repoRoot"`
	Path       string `json:"path"`
	Cwd        string `json:"cwd,omitempty"`
	Branch     string `json:"branch"`
	Base       string `json:"base,omitempty"` // the commit at its start
	BaseBranch string `json:"baseBranch,omitempty"`
	BranchHead string `json:"branchHead,omitempty"`
	BaseTree   string `json:"baseTree,omitempty"` // the content of the folder at its start
	// ReclaimedAt is when the checkout was removed, Bytes its freed size; the branch
	// stays. ExpiredAt is when a discarded job's branch was removed too.
	ReclaimedAt Millis `json:"reclaimedAt,omitempty"`
	Bytes       int64  `json:"bytes,omitempty"`
	ExpiredAt   Millis `json:"expiredAt,omitempty"`
}

// Host is the process that runs a job.
type Host struct {
	PID       int    `json:"pid"`
	Peer      string `json:"peer,omitempty"`
	StartedAt Millis `json:"startedAt,omitempty"`
	Identity  string `json:"identity,omitempty"`
}

// Remote names a job on a paired PC.
type Remote struct {
	Host string `json:"host"`
	Name string `json:"name"`
}

// Mirror has additional data about a job on a paired PC.
type Mirror struct {
	PC string `json:"pc"` // its identity, not its name
	// HeardAt is when that PC last reported on the job. If it is 0, it is unknown
	// whether the job was started.
	HeardAt Millis `json:"heardAt,omitempty"`
	// UnknownAt is since when that PC reports that it does not know the job.
	UnknownAt Millis `json:"unknownAt,omitempty"`
	// ToldAt is when an ended job was sent a message without a response: it may continue.
	ToldAt  Millis `json:"toldAt,omitempty"`
	Results int    `json:"results,omitempty"` // the last run whose result has arrived
	Branch  string `json:"branch,omitempty"`
	Step    string `json:"step,omitempty"`
}

// Progress returns the job's last progress report.
func (j *Job) Progress() Progress {
	p := Progress{ETA: j.ETAAt.Time(), Note: j.ProgressNote}
	if j.Percent != nil {
		p.Percent, p.HasPercent = *j.Percent, true
	}
	return p
}

// SetProgress stores the job's progress report.
func (j *Job) SetProgress(p Progress) {
	j.Percent, j.ETAAt, j.ProgressNote = nil, MillisOf(p.ETA), p.Note
	if p.HasPercent {
		j.Percent = &p.Percent
	}
}

// UnmarshalJSON reads an entry tolerantly: a member of another type counts as missing
// and is written back unchanged. It fails if data is not a JSON object.
func (j *Job) UnmarshalJSON(data []byte) error {
	*j = Job{}
	rest, err := decodeMembers(data, j)
	if err != nil {
		return err
	}
	j.rest, j.State = rest, stateOf(j.Status, j.State)
	return nil
}

// MarshalJSON writes the entry with all members that it was read with. It fails if a
// member cannot be encoded.
func (j Job) MarshalJSON() ([]byte, error) {
	j.Status = j.State.FieldStatus()
	return j.rest.encode(&j)
}

// UnmarshalJSON reads an approval tolerantly. Without a state, as the field writes it,
// the decision determines the state. It fails if data is not a JSON object.
func (a *Approval) UnmarshalJSON(data []byte) error {
	*a = Approval{}
	rest, err := decodeMembers(data, a)
	if err != nil {
		return err
	}
	a.rest = rest
	if a.ExpiresAt == 0 && !a.OfSession() {
		a.ExpiresAt = a.AskedAt + Millis(approvalLife.Milliseconds())
	}
	if a.State == "" {
		a.State = ApprovalAsked
		if _, err := ParseDecision(string(a.Decision)); err == nil {
			a.State = ApprovalAnswered
		}
	}
	return nil
}

// MarshalJSON writes the approval with all members that it was read with. It fails if a
// member cannot be encoded.
func (a Approval) MarshalJSON() ([]byte, error) { return a.rest.encode(&a) }

// jobsVersion is the version of jobs.json that this program writes: the field's version
// with hand-offs.
const jobsVersion = 4

// File is jobs.json.
type File struct {
	Version  int               `json:"version"`
	Jobs     []Job             `json:"jobs"`
	Handoffs []json.RawMessage `json:"handoffs,omitempty"`

	aside   []json.RawMessage // entries that cannot be served; they are written back unchanged
	twofold []string          // names of more than one entry
	rest    members
}

// HandoffReceipt is a hand-off in the file, as this program writes it.
type HandoffReceipt struct {
	ID     string           `json:"id,omitempty"` // of the hand-off
	From   string           `json:"from"`
	FromID string           `json:"fromId,omitempty"` // the identity of From; Agent is its kind
	Agent  bridge.AgentKind `json:"agent,omitempty"`
	To     string           `json:"to"`
	ToID   string           `json:"toId,omitempty"`
	Jobs   []string         `json:"jobs"`
	At     Millis           `json:"at"`
	Note   string           `json:"note,omitempty"`
}

// DecodeFile reads jobs.json. It fails with Unsupported for a newer version or jobs
// that are no list: such a file must stay unchanged.
func DecodeFile(data []byte) (File, error) {
	var file File
	rest, err := decodeMembers(data, &file)
	if err != nil {
		return File{}, bridge.Errorf(bridge.Unsupported, "jobs.json is not readable: %s", err)
	}
	if file.Version > jobsVersion {
		return File{}, bridge.Errorf(bridge.Unsupported, "jobs.json is of version %d, newer than this program's %d", file.Version, jobsVersion)
	}
	if _, has := rest["jobs"]; has && file.Jobs == nil {
		return File{}, bridge.Errorf(bridge.Unsupported, "the jobs of jobs.json are no list of jobs")
	}
	file.rest = rest
	file.setAside()
	return file, nil
}

// setAside removes the entries that cannot be served: jobs with a duplicate name, which
// are ambiguous, and jobs without a name.
func (f *File) setAside() {
	count := map[string]int{}
	for _, job := range f.Jobs {
		count[job.Name]++
	}
	var raw []json.RawMessage
	if json.Unmarshal(f.rest["jobs"], &raw) != nil || len(raw) != len(f.Jobs) || len(count) == len(f.Jobs) && count[""] == 0 {
		return
	}
	var served []Job
	for i, job := range f.Jobs {
		if job.Name != "" && count[job.Name] == 1 {
			served = append(served, job)
			continue
		}
		f.aside = append(f.aside, raw[i])
		if job.Name != "" && !slices.Contains(f.twofold, job.Name) {
			f.twofold = append(f.twofold, job.Name)
		}
	}
	f.Jobs = served
}

// Twofold returns the names that Check refuses.
func (f File) Twofold() []string { return f.twofold }

// Check fails with Storage for a name of more than one job in the file.
func (f File) Check(name string) error {
	if slices.Contains(f.twofold, name) {
		return bridge.Errorf(bridge.Storage, "jobs.json has more than one job named %s: none of them is served until it has one", name)
	}
	return nil
}

// Encode writes the file with all members that it was read with. It fails if a member
// cannot be encoded.
func (f File) Encode() ([]byte, error) {
	f.Version = jobsVersion
	if f.Jobs == nil {
		f.Jobs = []Job{}
	}
	if len(f.aside) == 0 {
		return f.rest.encode(&f)
	}
	list := []byte{'['}
	for _, raw := range f.aside {
		list = append(append(list, raw...), ',')
	}
	for _, job := range f.Jobs {
		raw, err := job.MarshalJSON()
		if err != nil {
			return nil, err
		}
		list = append(append(list, raw...), ',')
	}
	list[len(list)-1] = ']'
	rest := maps.Clone(f.rest)
	rest["jobs"] = list
	return rest.encode(&struct {
		Version  int               `json:"version"`
		Handoffs []json.RawMessage `json:"handoffs,omitempty"`
	}{f.Version, f.Handoffs})
}

// IsUnsent reports whether the result of the last run has not been sent.
func (j Job) IsUnsent() bool { return j.State.IsEnded() && j.Run > 0 && !j.ResultSent }

// Sender returns the sender of its messages: `<host>/<name>` for a job on a paired PC (RMT-19).
func (j Job) Sender() bridge.Address {
	if j.Mirror == nil {
		return bridge.Address{ID: j.Name, Name: j.Name, Agent: j.Agent}
	}
	name := j.Remote.Host + "/" + j.Remote.Name
	return bridge.Address{ID: name, Name: name, Agent: j.Agent}
}
