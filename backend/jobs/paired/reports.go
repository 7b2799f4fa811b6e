package paired

import (
	"cmp"
	"crypto/sha256"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/remote"
)

// Reports keeps the state of these jobs in memory: when each last reported, its approvals,
// and how fresh the data is. The zero value is empty.
type Reports struct {
	mu   sync.Mutex // guards below
	jobs map[string]*known
}

type known struct {
	heardAt   time.Time
	clock     int64 // that PC's clock, at its last report
	results   int
	refused   string // the error of its PC's last refusal
	approvals map[string]job.Approval
	notified  map[string]bool // the recipients to whom this process sent each approval
}

func (r *Reports) ofLocked(name string) *known {
	if r.jobs == nil {
		r.jobs = map[string]*known{}
	}
	k := r.jobs[name]
	if k == nil {
		k = &known{approvals: map[string]job.Approval{}, notified: map[string]bool{}}
		r.jobs[name] = k
	}
	return k
}

// clockSlack limits how far back a PC's clock may be set before its report counts as
// outdated.
const clockSlack = time.Minute

// News is the checked report of a PC about a job, in this PC's times.
type News struct {
	State remote.JobState
	Is    bool // it is not an older report that arrived late
	Asked bool // an approval of the job changed
}

// RecordReport records a report from the PC of a job. It fails with Invalid for a report about another
// job or with impossible values, and with Unsupported for an unknown state.
func (r *Reports) RecordReport(entry job.Job, value remote.Value, at time.Time) (news News, err error) {
	if news.State, err = checked(entry, value, at); err != nil {
		return news, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.ofLocked(entry.Name)
	if late := k.clock - value.State.Now; news.State.Run < entry.Run || late > 0 && late < clockSlack.Milliseconds() {
		return news, nil
	}
	k.heardAt, k.clock, k.results, k.refused = at, value.State.Now, news.State.Results, ""
	news.Is, news.Asked = true, r.askLocked(k, entry, value, at)
	return news, nil
}

// askLocked records the approvals of a job's report. An open approval that the report
// omits is withdrawn.
func (r *Reports) askLocked(k *known, entry job.Job, value remote.Value, at time.Time) (changed bool) {
	reported := map[string]bool{}
	for _, reportedApproval := range value.Approvals {
		if bridge.CheckID("the approval", reportedApproval.ID) != nil || !slices.Contains(approvalStates, reportedApproval.State) || r.isOthersLocked(k, reportedApproval.ID) {
			continue
		}
		approval, present := approvalOf(entry, reportedApproval, shift(value, at)), k.approvals[reportedApproval.ID]
		approval.AnsweredBy = cmp.Or(present.AnsweredBy, approval.AnsweredBy)
		if len(present.PassedUp) > 0 {
			approval.By, approval.PassedUp = present.By, present.PassedUp
		}
		reported[reportedApproval.ID], changed = true, changed || approval.State != present.State
		k.approvals[reportedApproval.ID] = approval
	}
	for id, approval := range k.approvals {
		if !reported[id] && !approval.IsSettled() && approval.Withdraw() == nil {
			k.approvals[id], changed = approval, true
		}
	}
	return changed
}

var approvalStates = []job.ApprovalState{
	job.ApprovalAsked, job.ApprovalAnswered, job.ApprovalDelivered, job.ApprovalApplied, job.ApprovalExpired, job.ApprovalWithdrawn,
}

func (r *Reports) isOthersLocked(k *known, id string) bool {
	for _, other := range r.jobs {
		if _, has := other.approvals[id]; has && other != k {
			return true
		}
	}
	return false
}

// approvalOf returns a reported approval as this PC publishes it: with the job's name
// and owner here.
func approvalOf(entry job.Job, approval job.Approval, shift time.Duration) job.Approval {
	return job.Approval{
		Remote: entry.Remote, ID: approval.ID, Job: entry.Name, Run: approval.Run, Session: line(approval.Session, bridge.MaxIDChars), Agent: string(entry.Agent), By: entry.Owner,
		Kind: line(approval.Kind, job.MaxNoteChars), What: approval.What, Detail: approval.Detail, Chars: approval.Chars, Cwd: approval.Cwd, Why: approval.Why,
		State: approval.State, AskedAt: moved(approval.AskedAt, shift), ExpiresAt: moved(approval.ExpiresAt, shift),
		AnsweredAt: moved(approval.AnsweredAt, shift), AnsweredBy: line(approval.AnsweredBy, job.MaxNoteChars), Decision: approval.Decision, Reason: approval.Reason,
	}
}

// Refused records the error with which the PC of a job refused to report.
func (r *Reports) Refused(name string, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ofLocked(name).refused = why.Error()
}

// Doubt returns why the shown state of a job may be out of date, or "".
func (r *Reports) Doubt(entry job.Job, now time.Time) string {
	if entry.Mirror == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	m := remote.Mirror{Status: entry.State, AskedAt: entry.QueuedAt.Time(), HeardAt: entry.Mirror.HeardAt.Time()}
	if k := r.jobs[entry.Name]; k != nil {
		m.Refused = k.refused
		if k.heardAt.After(m.HeardAt) {
			m.HeardAt = k.heardAt
		}
	}
	return m.Doubt(entry.Remote.Host, now)
}

// Missing returns the next run whose result to fetch, or 0. If many are missing, it
// covers only the last 20.
func (r *Reports) Missing(entry job.Job) int {
	const most = 20
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.jobs[entry.Name]
	if k == nil || entry.Mirror == nil || k.results <= entry.Mirror.Results {
		return 0
	}
	return max(entry.Mirror.Results+1, k.results-most+1)
}

// Approvals lists the approvals of that job.
func (r *Reports) Approvals(name string) (list []job.Approval) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.jobs[name]; k != nil {
		list = slices.Collect(maps.Values(k.approvals))
	}
	return list
}

// Approval finds an approval.
func (r *Reports) Approval(id string) (job.Approval, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.jobs {
		if approval, has := k.approvals[id]; has {
			return approval, true
		}
	}
	return job.Approval{}, false
}

// Note records the new state of an approval.
func (r *Reports) Note(approval job.Approval) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ofLocked(approval.Job).approvals[approval.ID] = approval
}

// First reports whether this is the first delivery of an approval to that recipient,
// and records the delivery. Undo reverts the record.
func (r *Reports) First(approval job.Approval, recipient string) (first bool, undo func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, key := r.ofLocked(approval.Job), approval.ID+" "+recipient
	first = !k.notified[key]
	k.notified[key] = true
	return first, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(k.notified, key)
	}
}

// Forget removes the jobs for which isStored returns false.
func (r *Reports) Forget(isStored func(name string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.jobs, func(name string, _ *known) bool { return !isStored(name) })
}

const maxWorkdirChars = 4096

// checked validates a PC's report of a job, and shifts its times to this PC's clock.
func checked(entry job.Job, value remote.Value, at time.Time) (remote.JobState, error) {
	if value.State == nil || value.State.Job != entry.Remote.Name {
		return remote.JobState{}, bridge.Errorf(bridge.Invalid, "%s speaks of another job than %s", entry.Remote.Host, entry.Name)
	}
	s := *value.State
	if s.Status != job.Queued && !s.Status.IsActive() && !s.Status.IsEnded() {
		return s, bridge.Errorf(bridge.Unsupported, "%s says that %s is %q, which this Bridge does not know", entry.Remote.Host, entry.Name, line(string(s.Status), job.MaxNoteChars))
	}
	if s.Run < 0 || s.Run > math.MaxInt32 || s.Results < 0 || s.Results > s.Run || s.Tokens < 0 || s.CostUSD < 0 || s.Percent != nil && (*s.Percent < 0 || *s.Percent > 100) {
		return s, bridge.Errorf(bridge.Invalid, "%s says of %s what cannot be", entry.Remote.Host, entry.Name)
	}
	s.Title, s.Note, s.Step = line(s.Title, job.MaxTitleChars), line(s.Note, job.MaxNoteChars), line(s.Step, job.MaxNoteChars)
	s.Model, s.Effort, s.Layer = line(s.Model, job.MaxModelChars), line(s.Effort, job.MaxModelChars), line(s.Layer, job.MaxModelChars)
	s.Workdir, s.Branch, s.Session = line(s.Workdir, maxWorkdirChars), line(s.Branch, maxWorkdirChars), line(s.Session, bridge.MaxIDChars)
	s.Access, s.Ended = line(s.Access, job.MaxNoteChars), job.EndReason(line(string(s.Ended), job.MaxNoteChars))
	offset := shift(value, at)
	for _, moment := range []*int64{&s.Started, &s.EndedAt, &s.ETA, &s.Until} {
		*moment = int64(moved(job.Millis(*moment), offset))
	}
	if s.Wait != nil {
		wait := job.Wait{For: job.WaitFor(line(string(s.Wait.For), job.MaxNoteChars)), ID: line(s.Wait.ID, bridge.MaxIDChars), Until: moved(s.Wait.Until, offset)}
		s.Wait = &wait
	}
	return s, nil
}

// line returns a text of another PC as one line, cut to that many characters.
func line(text string, most int) string {
	text = bridge.VisibleLine(text)
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most])
	}
	return text
}

// shift returns the offset from that PC's clock to ours.
func shift(value remote.Value, at time.Time) time.Duration {
	return time.Duration(at.UnixMilli()-value.State.Now) * time.Millisecond
}

func moved(at job.Millis, offset time.Duration) job.Millis {
	if at == 0 {
		return 0
	}
	return at + job.Millis(offset.Milliseconds())
}

// Show updates the entry of a job from its PC's report. It reports whether the entry
// must be durable immediately.
func Show(entry *job.Job, s remote.JobState, at time.Time) (atOnce bool) {
	before, mirror := *entry, *entry.Mirror
	mirror.HeardAt, mirror.UnknownAt, mirror.Branch, mirror.Step = job.Millis(at.UnixMilli()), 0, s.Branch, s.Step
	if s.Run > before.Run || at.Sub(mirror.ToldAt.Time()) >= remote.SpawnTimeout { // otherwise the message may be in transit
		mirror.ToldAt = 0
	}
	entry.Mirror = &mirror
	entry.State, entry.Run, entry.Wait, entry.Ended, entry.LimitUntil = s.Status, s.Run, s.Wait, s.Ended, job.Millis(s.Until)
	entry.Title, entry.Model, entry.Effort, entry.Layer = cmp.Or(s.Title, entry.Title), s.Model, s.Effort, s.Layer
	entry.Workdir, entry.SessionID = cmp.Or(s.Workdir, entry.Workdir), cmp.Or(s.Session, entry.SessionID)
	if access, err := job.ParseAccess(s.Access); err == nil {
		entry.Access = access
	}
	entry.Tokens, entry.CostUSD, entry.Percent, entry.ETAAt, entry.ProgressNote = s.Tokens, s.CostUSD, s.Percent, job.Millis(s.ETA), s.Note
	entry.FinishedAt = 0
	if s.Started != 0 {
		entry.StartedAt = job.Millis(s.Started)
	}
	if entry.State.IsEnded() {
		entry.FinishedAt = cmp.Or(job.Millis(s.EndedAt), job.Millis(at.UnixMilli()))
	}
	entry.ResultSent = entry.State.IsEnded() && entry.Mirror.Results >= entry.Run
	if entry.Run > before.Run || !entry.State.IsEnded() && before.State.IsEnded() {
		entry.CancelAsked = false
	}
	return before.Mirror.HeardAt == 0 || before.Mirror.UnknownAt != 0 || before.Mirror.ToldAt != mirror.ToldAt || entry.State != before.State || entry.Run != before.Run || entry.ResultSent != before.ResultSent ||
		entry.SessionID != before.SessionID || entry.Workdir != before.Workdir || entry.Mirror.Branch != before.Mirror.Branch
}

// Differs reports whether two entries show different data, apart from the time of the
// last report.
func Differs(a, b job.Job) bool {
	percent := func(j job.Job) int {
		if j.Percent == nil {
			return -1
		}
		return *j.Percent
	}
	const slack = 5000 // the two clocks differ
	near := func(x, y job.Millis) bool { return x-y < slack && y-x < slack }
	return a.State != b.State || a.Run != b.Run || a.Title != b.Title || a.Model != b.Model || a.Effort != b.Effort || a.Access != b.Access ||
		a.Layer != b.Layer || a.Tokens != b.Tokens || a.CostUSD != b.CostUSD || percent(a) != percent(b) || a.ProgressNote != b.ProgressNote ||
		!near(a.ETAAt, b.ETAAt) || !near(a.StartedAt, b.StartedAt) || !near(a.FinishedAt, b.FinishedAt) ||
		a.Mirror.Step != b.Mirror.Step || (a.Wait == nil) != (b.Wait == nil) || a.Wait != nil && (a.Wait.For != b.Wait.For || a.Wait.ID != b.Wait.ID)
}

// Digest returns a short hash of a text from another PC, for use in ids.
func Digest(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:12]
}
