package runs

import (
	"cmp"

	"bridge/backend/core/hooks"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/core/needs"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/jobs"
	"bridge/backend/jobs/jobfiles"
	"bridge/backend/platform/ipc/api"
)

// maxNextChars bounds the shown part of a job's queued message.
const maxNextChars = 200

// List is the output of `bridge runs --json`.
type List struct {
	Runs      []dto.Run      `json:"runs"`
	Approvals []dto.Approval `json:"approvals"`
}

// ListOf returns found with the members of the state.
func ListOf(found api.Runs) List {
	return List{Runs: dto.Each(found.Jobs, runShape), Approvals: dto.Each(found.Approvals, approvalShape)}
}

// Watched is the output of `bridge watch --json`: the ended run and its log.
type Watched struct {
	dto.Run
	Log string `json:"log"`
}

// WatchedOf returns a run with that log.
func WatchedOf(view api.JobView, log string) Watched { return Watched{Run: runShape(view), Log: log} }

// Answered returns the output of `bridge approve --json`.
func Answered(approval job.Approval) dto.Approval { return approvalShape(approval) }

func runShape(v api.JobView) dto.Run {
	return dto.Run{
		Run: v.Job, Job: v.Job, By: v.By, Agent: v.Agent, Called: cmp.Or(v.ACPAgent, string(v.Agent)), Title: v.Title, Status: v.Status, Wait: v.Wait, Ended: v.Ended,
		Model: v.Model, Effort: v.Effort, Access: v.Access, Layer: v.Layer, Step: v.Step, Workdir: v.Workdir, Branch: v.Branch,
		Progress: dto.RunProgress{Percent: v.Progress.Percent, ETAMinutes: v.Progress.ETAMinutes, Note: v.Progress.Note},
		Session:  v.Session, Tokens: v.Tokens, CostUSD: v.CostUSD, Started: moment(v.StartedAt), EndedAt: moment(v.EndedAt), Remote: v.Remote,
		Worktree: worktreeShape(v.Worktree), Doubt: v.Doubt,
	}
}

func worktreeShape(w *api.JobWorktree) *dto.RunWorktree {
	if w == nil {
		return nil
	}
	return &dto.RunWorktree{
		Path: w.Path, Repository: w.Repository, Bytes: w.Bytes, Stays: w.Stays, ReclaimedAt: moment(w.ReclaimedAt), Landing: lastOnly(w.Landing), Landed: w.Landed,
	}
}

// lastOnly returns a job's last finish, or nil. The page does not show the earlier ones.
func lastOnly(landing *job.Landing) *job.Finish {
	if landing == nil {
		return nil
	}
	return &landing.Finish
}

// needOf returns the job's facts for the owner's needs.
func needOf(v api.JobView) needs.JobFact {
	fact := needs.JobFact{
		Name: v.Job, Title: v.Title, By: v.By, Folder: v.Workdir, State: v.Status, Wait: v.Wait, Ended: v.Ended,
		StartedAt: v.StartedAt, EndedAt: v.EndedAt,
	}
	if v.Worktree != nil {
		fact.Changed = v.Worktree.Changed
		if landing := v.Worktree.Landing; landing != nil && landing.State == job.LandingDone {
			fact.Landed = int64(landing.At)
		}
	}
	return fact
}

// moment returns a time, or nil for 0.
func moment(millis int64) *int64 {
	if millis == 0 {
		return nil
	}
	return &millis
}

func jobShape(v api.JobView) dto.Job {
	return dto.Job{Next: hooks.Shorten(v.Next, maxNextChars), Remote: v.Remote}
}

func approvalShape(a job.Approval) dto.Approval {
	return dto.Approval{
		ID: a.ID, Job: a.Job, Session: a.Session, By: a.By, Kind: a.Kind, What: a.What, Detail: a.Detail, Cwd: a.Cwd, Why: a.Why,
		State: a.State, AskedAt: int64(a.AskedAt), ExpiresAt: moment(int64(a.ExpiresAt)), AnsweredAt: moment(int64(a.AnsweredAt)),
		AnsweredBy: a.AnsweredBy, Decision: a.Decision, Reason: a.Reason, Remote: a.Remote,
		Elsewhere: a.Elsewhere, OnlyTold: a.OnlyTold, Caution: a.Caution, Choices: a.Choices, Answers: a.Answers,
	}
}

func detailShape(d jobs.Detail) dto.RunDetail {
	detail := dto.RunDetail{Run: runShape(d.JobView), Prompt: d.Prompt}
	switch {
	case d.Result != nil:
		detail.Result = resultShape(*d.Result)
	case d.Problem != "":
		detail.Result = &dto.RunResult{Status: d.Status, Error: d.Problem, Evidence: evidenceShape(runs.Evidence{}), Variables: []string{}}
	}
	return detail
}

func turnShape(t jobfiles.Turn) dto.RunTurn {
	turn := dto.RunTurn{Run: t.Run, Message: t.Message, By: dto.List(t.By), Error: t.Problem}
	if t.Result == nil {
		return turn
	}
	seen := t.Result.Evidence
	turn.Status, turn.Ended, turn.Text, turn.Error, turn.At = t.Result.State, t.Result.Ended, t.Result.Result, t.Result.Error, moment(int64(t.Result.WrittenAt))
	turn.DurationMs, turn.Tokens, turn.CostUSD = seen.DurationMs, seen.Tokens, seen.CostUSD
	return turn
}

func resultShape(e runs.Envelope) *dto.RunResult {
	return &dto.RunResult{
		Status: e.State, Text: e.Result, Error: e.Error, At: moment(int64(e.WrittenAt)),
		Evidence: evidenceShape(e.Evidence), Variables: dto.List(e.Variables),
	}
}

func evidenceShape(e runs.Evidence) dto.Evidence {
	return dto.Evidence{
		Base: e.Base, Head: e.Head, Files: dto.List(e.Files), Commands: dto.List(e.Commands), Tokens: e.Tokens, CostUSD: e.CostUSD,
		DurationMs: e.DurationMs, Ended: e.Ended, Layer: e.Layer,
	}
}
