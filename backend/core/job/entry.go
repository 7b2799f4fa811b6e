package job

import (
	"encoding/json"
	"maps"
	"slices"

	"bridge/backend/core/bridge"
)

// Job is one delegated job as the registry keeps it: an entry of jobs.json in the
// layout that is known in the field, with members of ours beside. What others put
// into the entry survives.
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
	Owner      string           `json:"owner"`                // whoever asked for it: a session, or the job above
	Supervisor string           `json:"supervisor,omitempty"` // the stable identity behind Owner
	PC         string           `json:"forPC,omitempty"`      // the identity of the paired PC that asked for it (RMT-12)
	Root       string           `json:"rootName,omitempty"`   // the session at the top
	RootID     string           `json:"rootSession,omitempty"`
	Parent     string           `json:"parentJob,omitempty"`
	Depth      int              `json:"depth,omitempty"` // 1 for a job of a session
	Masters    []string         `json:"masters,omitempty"`
	History    []Ownership      `json:"ownershipHistory,omitempty"`

	Status         string `json:"status"` // the field's word for State
	State          State  `json:"state,omitempty"`
	Wait           *Wait  `json:"wait,omitempty"`
	Run            int    `json:"run,omitempty"` // how many runs were begun
	FirstStartedAt Millis `json:"firstStartedAt,omitempty"`
	StartedAt      Millis `json:"startedAt,omitempty"`
	FinishedAt     Millis `json:"finishedAt,omitempty"`
	QueuedAt       Millis `json:"queuedAt,omitempty"`
	// Line is the place in line; the lowest is next.
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
	// QueuedMessages are what the next run begins with, first in, first out.
	QueuedMessages []string `json:"queuedMessages,omitempty"`
	// Said are the ids of the words that it was told last, those of its present run
	// apart, the oldest first: none is said to it again.
	Said         []string `json:"said,omitempty"`
	SendTo       []string `json:"sendTo,omitempty"`
	TimeoutSec   int      `json:"timeoutSec,omitempty"`
	BudgetUSD    float64  `json:"budgetUsd,omitempty"`
	Layer        string   `json:"layer,omitempty"` // which floor held (JOB-14)
	Host         *Host    `json:"host,omitempty"`
	Remote       *Remote  `json:"remote,omitempty"`
	Mirror       *Mirror  `json:"mirror,omitempty"` // of one on a paired PC that this program asked for
	ProjectRoot  string   `json:"projectRoot,omitempty"`
	Percent      *int     `json:"percent,omitempty"`
	ProgressNote string   `json:"progressNote,omitempty"`
	ETAAt        Millis   `json:"etaAt,omitempty"`
	Tokens       int64    `json:"tokens,omitempty"`
	CostUSD      float64  `json:"costUsd,omitempty"`

	rest members
}

// Ownership is one change of supervisor (JOB-23).
type Ownership struct {
	From string `json:"from"`
	To   string `json:"to"`
	At   Millis `json:"at"`
	Note string `json:"note,omitempty"`
}

// Worktree is where a worktree job works (JOB-08).
type Worktree struct {
	RepoRoot   string `json:"repoRoot"`
	Path       string `json:"path"`
	Cwd        string `json:"cwd,omitempty"`
	Branch     string `json:"branch"`
	Base       string `json:"base,omitempty"` // the commit at its start
	BaseBranch string `json:"baseBranch,omitempty"`
	BranchHead string `json:"branchHead,omitempty"`
	BaseTree   string `json:"baseTree,omitempty"` // what the folder held at its start
	// ReclaimedAt is when the checkout was taken away, Bytes what that gave back; the
	// branch stays. ExpiredAt is when that of a discarded job went, too.
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

// Mirror is what is known here of a job on a paired PC besides what every job has.
type Mirror struct {
	PC string `json:"pc"` // its identity, which its name is not
	// HeardAt is when that PC was heard of the job last. Never is 0: nobody knows then
	// whether it was started.
	HeardAt Millis `json:"heardAt,omitempty"`
	// UnknownAt is since when that PC has said that it knows no such job.
	UnknownAt Millis `json:"unknownAt,omitempty"`
	// ToldAt is when words went out to the ended job that were not answered: it may go on.
	ToldAt  Millis `json:"toldAt,omitempty"`
	Results int    `json:"results,omitempty"` // the last run whose result has come
	Branch  string `json:"branch,omitempty"`
	Step    string `json:"step,omitempty"`
}

// Progress is how far the job says that it is.
func (j *Job) Progress() Progress {
	p := Progress{ETA: j.ETAAt.Time(), Note: j.ProgressNote}
	if j.Percent != nil {
		p.Percent, p.HasPercent = *j.Percent, true
	}
	return p
}

// SetProgress keeps what the job says.
func (j *Job) SetProgress(p Progress) {
	j.Percent, j.ETAAt, j.ProgressNote = nil, MillisOf(p.ETA), p.Note
	if p.HasPercent {
		j.Percent = &p.Percent
	}
}

// UnmarshalJSON reads an entry tolerantly: a member of another type than expected
// counts as left out and is written back as it was.
func (j *Job) UnmarshalJSON(data []byte) error {
	*j = Job{}
	rest, err := decodeMembers(data, j)
	if err != nil {
		return err
	}
	j.rest, j.State = rest, stateOf(j.Status, j.State)
	return nil
}

// MarshalJSON writes the entry with everything that it was read with.
func (j Job) MarshalJSON() ([]byte, error) {
	j.Status = j.State.FieldStatus()
	return j.rest.encode(&j)
}

// UnmarshalJSON reads an approval tolerantly. One without a state, as the field
// writes it, is judged by its decision.
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

// MarshalJSON writes the approval with everything that it was read with.
func (a Approval) MarshalJSON() ([]byte, error) { return a.rest.encode(&a) }

// jobsVersion is the version of jobs.json that is written: the field's with
// hand-offs.
const jobsVersion = 4

// File is jobs.json.
type File struct {
	Version  int               `json:"version"`
	Jobs     []Job             `json:"jobs"`
	Handoffs []json.RawMessage `json:"handoffs,omitempty"`

	aside   []json.RawMessage // entries that are nobody's job; they are written back as they are
	twofold []string          // names that more than one entry has
	rest    members
}

// HandoffReceipt is one of a file's hand-offs as this program writes them.
type HandoffReceipt struct {
	ID     string           `json:"id,omitempty"` // of the hand-off
	From   string           `json:"from"`
	FromID string           `json:"fromId,omitempty"` // the identity behind From, and its kind
	Agent  bridge.AgentKind `json:"agent,omitempty"`
	To     string           `json:"to"`
	ToID   string           `json:"toId,omitempty"`
	Jobs   []string         `json:"jobs"`
	At     Millis           `json:"at"`
	Note   string           `json:"note,omitempty"`
}

// DecodeFile reads jobs.json. One of a newer version, or whose jobs are no list, is
// Unsupported: it must be left as it is.
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

// setAside takes the entries out that cannot be served: nobody can tell which of two
// jobs of one name is meant, nor how to call one without a name.
func (f *File) setAside() {
	count := map[string]int{}
	for _, one := range f.Jobs {
		count[one.Name]++
	}
	var raw []json.RawMessage
	if json.Unmarshal(f.rest["jobs"], &raw) != nil || len(raw) != len(f.Jobs) || len(count) == len(f.Jobs) && count[""] == 0 {
		return
	}
	var served []Job
	for i, one := range f.Jobs {
		if one.Name != "" && count[one.Name] == 1 {
			served = append(served, one)
			continue
		}
		f.aside = append(f.aside, raw[i])
		if one.Name != "" && !slices.Contains(f.twofold, one.Name) {
			f.twofold = append(f.twofold, one.Name)
		}
	}
	f.Jobs = served
}

// Twofold lists the names that Check refuses.
func (f File) Twofold() []string { return f.twofold }

// Check refuses a name that the file has for more than one job: Storage.
func (f File) Check(name string) error {
	if slices.Contains(f.twofold, name) {
		return bridge.Errorf(bridge.Storage, "jobs.json has more than one job named %s: none of them is served until it has one", name)
	}
	return nil
}

// Encode writes the file with everything that it was read with.
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
	for _, one := range f.Jobs {
		raw, err := one.MarshalJSON()
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

// IsUnsent reports whether the result of the last run has not gone out yet.
func (j Job) IsUnsent() bool { return j.State.IsEnded() && j.Run > 0 && !j.ResultSent }

// Sender is who its messages are from: of a job on a paired PC `<host>/<name>` (RMT-19).
func (j Job) Sender() bridge.Address {
	if j.Mirror == nil {
		return bridge.Address{ID: j.Name, Name: j.Name, Agent: j.Agent}
	}
	name := j.Remote.Host + "/" + j.Remote.Name
	return bridge.Address{ID: name, Name: name, Agent: j.Agent}
}
