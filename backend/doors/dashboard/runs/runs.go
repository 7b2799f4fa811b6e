// Package runs is the dashboard's part about delegated jobs: their state, a run
// with its log and result, and the owner's messages, answers, cancellations and
// landings (seed 4.6; rows JOB-02, JOB-05, JOB-07, JOB-10, JOB-11, JOB-18). The
// dashboard admits the requests; package jobs decides what is allowed.
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

// Jobs is the dashboard's view of the delegated jobs; *jobs.Jobs implements it. All
// methods are safe for concurrent use.
type Jobs interface {
	// Recent returns the running jobs, then at most that many ended ones, including
	// archived jobs, each newest first.
	Recent(ended int) []api.JobView
	Detail(name string) (jobs.Detail, error)
	Turns(name string) ([]jobfiles.Turn, error)
	ReadLog(name string, from int64) (jobfiles.Log, error)
	// Approvals returns the questions of the running jobs, oldest first.
	Approvals() []job.Approval
	// Answer decides a question for the owner. It returns the new record, also with
	// a Conflict: it was answered, has expired or is gone.
	Answer(id string, decision job.Decision, reason string) (job.Approval, error)
	// AnswerFromNowOn allows the request and makes a standing rule of it. If the
	// answer has no effect, it makes no rule.
	AnswerFromNowOn(id string, wish rule.Wish) (job.Approval, error)
	// FromNowOn returns the possible rule for a question, with its folder.
	FromNowOn(approval job.Approval) (offer rule.Offer, folder string)
	// Say sends a job a message, under an id, and settings.
	Say(id string, control job.Control) (api.JobMessaged, error)
	// NoteDelivery returns the delivery state of the message with that id.
	NoteDelivery(id string) jobfiles.Way
	// Cancel ends a job; an ended one stays unchanged.
	Cancel(name string) (api.JobStatus, error)
	Landings
	Agents
}

var _ Jobs = (*jobs.Jobs)(nil)

// Runs serves the dashboard's part about jobs.
type Runs struct {
	jobs    Jobs
	prompts Prompts
	rules   Rules
	bound   func() error
}

// New serves those jobs, and what sessions ask beside them, with the owner's standing rules; nil where there are none.
// bound refuses words of the owner that come too fast.
func New(jobs Jobs, prompts Prompts, rules Rules, bound func() error) *Runs {
	return &Runs{jobs: jobs, prompts: prompts, rules: rules, bound: bound}
}

// The display limits, both Bridge's own choice.
const (
	// recentEnded is how many ended jobs the state shows, as many as messages.
	recentEnded = bridge.RecentMessages
	// settledApprovals is how many settled questions the lists show; open ones are
	// all shown.
	settledApprovals = 100
)

// Into adds the jobs to the state and to the facts for the owner's needs.
func (s *Runs) Into(state *dto.State, facts *needs.Facts) {
	approvals := s.approvals()
	state.Runs, state.Jobs, state.Approvals = []dto.Run{}, map[string]dto.Job{}, s.approvalShapes(approvals)
	state.Prompting = s.prompting()
	for _, approval := range approvals {
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

// approvalShape returns a question with the possible rule while it is open.
func (s *Runs) approvalShape(approval job.Approval) dto.Approval {
	wire := approvalShape(approval)
	wire.FromNowOn = s.fromNowOn(approval)
	return wire
}

// Show answers GET /api/runs/<run>: the run, or with from, its log from that byte.
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

// Turns answers GET /api/runs/<run>/turns: the conversation of a job, oldest turn first.
func (s *Runs) Turns(w http.ResponseWriter, r *http.Request) error {
	if s.jobs == nil {
		return noJobs()
	}
	turns, err := s.jobs.Turns(r.PathValue("run"))
	if err != nil {
		return err
	}
	answer := dto.RunTurns{Turns: []dto.RunTurn{}}
	for _, turn := range turns {
		answer.Turns = append(answer.Turns, turnShape(turn))
	}
	return httpjson.WriteJSON(w, answer)
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
