// Package runs is the part of the dashboard about delegated jobs: what the state
// shows of them, a run with its log and its result, and what their owner says to
// them, answers, ends and lands (seed 4.6; rows JOB-02, JOB-05, JOB-07, JOB-10, JOB-11, JOB-18).
// Who may ask is the dashboard's to decide; what may be done, that of the jobs.
package runs

import (
	"net/http"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/needs"
	"bridge/backend/core/rule"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/httpjson"
	"bridge/backend/jobs"
	"bridge/backend/jobs/jobfiles"
	"bridge/backend/platform/ipc/api"
)

// Jobs is what is asked of the delegated jobs; *jobs.Jobs is one. All methods may be
// called concurrently.
type Jobs interface {
	// Recent lists the jobs that go on, and after them at most that many that have
	// ended, archived ones included, each the newest first.
	Recent(ended int) []api.JobView
	Detail(name string) (jobs.Detail, error)
	ReadLog(name string, from int64) (jobfiles.Log, error)
	// Approvals lists the questions of the jobs that go on, the oldest first.
	Approvals() []job.Approval
	// Answer decides a question for the owner. The record is as it is then, also
	// beside a Conflict: it was answered, has expired or is gone.
	Answer(id string, decision job.Decision, reason string) (job.Approval, error)
	// AnswerFromNowOn allows what is asked and makes a standing rule of it; where the
	// answer does nothing there is no rule either.
	AnswerFromNowOn(id string, wish rule.Wish) (job.Approval, error)
	// FromNowOn says what rule may be made of a question, by which folder.
	FromNowOn(approval job.Approval) (offer rule.Offer, folder string)
	// Say gives a job words, under an id that names them, and settings.
	Say(id string, control job.Control) (api.JobMessaged, error)
	// Heard tells how far the words of that id came.
	Heard(id string) jobfiles.Way
	// Cancel ends a job. One that has ended stays as it is.
	Cancel(name string) (api.JobStatus, error)
	Landings
	Agents
}

var _ Jobs = (*jobs.Jobs)(nil)

// Runs serves what the dashboard has about jobs.
type Runs struct {
	jobs    Jobs
	prompts Prompts
	rules   Rules
	bound   func() error
}

// New serves those jobs, and what sessions ask beside them, with the owner's standing rules; nil where there are none.
// bound refuses words of the owner that come too fast.
func New(of Jobs, prompts Prompts, rules Rules, bound func() error) *Runs {
	return &Runs{jobs: of, prompts: prompts, rules: rules, bound: bound}
}

// The display limits, both ours.
const (
	// recentEnded is how many jobs that have ended the state shows, as many as of the
	// messages.
	recentEnded = bridge.RecentMessages
	// settledApprovals is how many questions the lists show that nobody waits for
	// any more; those that are open are all shown.
	settledApprovals = 100
)

// Into puts what there is of jobs into the state, and into what its owner's needs are
// decided from.
func (s *Runs) Into(state *dto.State, facts *needs.Facts) {
	asked := s.approvals()
	state.Runs, state.Jobs, state.Approvals = []dto.Run{}, map[string]dto.Job{}, s.approvalShapes(asked)
	state.Prompting = s.prompting()
	for _, approval := range asked {
		if !approval.IsSettled() {
			facts.Approvals = append(facts.Approvals, approval.Public())
		}
	}
	if s.jobs == nil {
		return
	}
	recent := s.jobs.Recent(recentEnded)
	for _, view := range recent {
		state.Jobs[view.Job] = jobShape(view)
		facts.Jobs = append(facts.Jobs, needOf(view))
	}
	state.Runs = dto.Each(recent, runShape)
	state.Worktrees.Count, state.Worktrees.Bytes = s.jobs.Worktrees()
}

// ListApprovals answers GET /api/approvals.
func (s *Runs) ListApprovals(w http.ResponseWriter, _ *http.Request) error {
	return httpjson.WriteJSON(w, dto.Approvals{Approvals: s.approvalShapes(s.approvals())})
}

func (s *Runs) approvalShapes(all []job.Approval) []dto.Approval {
	list := []dto.Approval{}
	settled := 0
	for _, approval := range all {
		if approval.IsSettled() {
			settled++
		}
	}
	for _, approval := range all {
		if approval.IsSettled() {
			if settled--; settled >= settledApprovals {
				continue
			}
		}
		list = append(list, s.approvalShape(approval))
	}
	return list
}

// approvalShape is a question with the rule that may be made of it while it is open.
func (s *Runs) approvalShape(approval job.Approval) dto.Approval {
	wire := approvalShape(approval)
	wire.FromNowOn = s.fromNowOn(approval)
	return wire
}

// Show answers GET /api/runs/<run>: the run, or, from a byte on, its log.
func (s *Runs) Show(w http.ResponseWriter, r *http.Request) error {
	params, err := httpjson.Params(r)
	if err != nil {
		return err
	}
	if s.jobs == nil {
		return noJobs()
	}
	if params.Has("from") {
		return s.showLog(w, r.PathValue("run"), params.Get("from"))
	}
	detail, err := s.jobs.Detail(r.PathValue("run"))
	if err != nil {
		return err
	}
	return httpjson.WriteJSON(w, detailShape(detail))
}

func (s *Runs) showLog(w http.ResponseWriter, run, from string) error {
	at, ok := httpjson.WholeNumber(from)
	if !ok {
		return bridge.Errorf(bridge.Invalid, "from must be a whole number of bytes")
	}
	log, err := s.jobs.ReadLog(run, at)
	if err != nil {
		return err
	}
	return httpjson.WriteJSON(w, dto.RunLog{Text: log.Text, Next: log.Next, Size: log.Size})
}

func noJobs() error {
	return bridge.Errorf(bridge.NotFound, "no delegated jobs are served here: they are enabled by jobs.enabled in config.json and a restart of Bridge")
}
