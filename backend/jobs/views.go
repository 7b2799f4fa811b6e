package jobs

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/jobs/jobfiles"
	"bridge/backend/platform/ipc/api"
)

// views is the part that shows jobs. It reads the published snapshot, so that it never
// waits for the disk.
type views struct {
	*core
	shelf jobfiles.Shelf
}

// Views lists every job, the newest first.
func (j *views) Views() []api.JobView {
	now, views := j.shown.Load(), []api.JobView{}
	for _, one := range slices.Backward(now.jobs) {
		views = append(views, j.view(one, now.agents[one.Name]))
	}
	return views
}

// Recent lists the active jobs, the newest first. Then it lists at most that many of
// the last ended jobs, also those in the archive.
func (j *views) Recent(most int) []api.JobView {
	var recent, ended []api.JobView
	known := map[string]bool{}
	for _, view := range j.Views() {
		known[view.Job] = true
		if view.Status.IsEnded() {
			ended = append(ended, view)
		} else {
			recent = append(recent, view)
		}
	}
	for _, view := range j.archivedLast() {
		if !known[view.Job] { // the job is in both while it moves
			ended = append(ended, view)
		}
	}
	slices.SortStableFunc(ended, func(a, b api.JobView) int { return cmp.Compare(b.EndedAt, a.EndedAt) })
	return append(recent, ended[:min(most, len(ended))]...)
}

// View returns one job, from the registry or the archive. It fails as Find does.
func (j *views) View(name string) (api.JobView, error) {
	one, err := j.find(name)
	if err != nil {
		return api.JobView{}, err
	}
	return j.view(one, j.shown.Load().agents[name]), nil
}

func (j *views) view(one job.Job, agent agentState) api.JobView {
	view := api.JobView{
		Job: one.Name, By: one.Owner, Agent: one.Agent, ACPAgent: one.ACPAgent, Title: one.Title, Status: one.State, Wait: one.Wait, Model: one.Model,
		Effort: one.Effort, Access: one.Access, Layer: one.Layer, Workdir: one.Place(), Session: one.SessionID,
		Tokens: one.Tokens, CostUSD: one.CostUSD, StartedAt: int64(one.StartedAt), EndedAt: int64(one.FinishedAt),
		Progress: api.JobProgress{Percent: one.Percent, ETAMinutes: jobfiles.Minutes(one.ETAAt.Time(), j.opts.Now()), Note: one.ProgressNote},
		Ended:    one.Ended, Remote: one.Remote,
	}
	if one.Mirror != nil {
		view.Branch, view.Step, view.Doubt = one.Mirror.Branch, one.Mirror.Step, j.away.Doubt(one)
	}
	if one.Worktree != nil {
		view.Branch, view.Worktree = one.Worktree.Branch, j.landings.View(one)
	}
	if len(one.QueuedMessages) > 0 {
		view.Next = one.QueuedMessages[0]
	}
	switch {
	case one.State == job.Queued:
		view.StartedAt, view.EndedAt, view.Ended = 0, 0, ""
	case one.Mirror == nil && one.State.IsActive():
		view.Step, view.Model = agent.step, cmp.Or(agent.model, view.Model)
	}
	return view
}

// Detail is a job with its prompt and the result of its last ended run.
type Detail struct {
	api.JobView
	Prompt string
	Result *runs.Envelope // nil while there is none
	// Problem is why a result exists that cannot be shown.
	Problem string
}

// Detail returns all data of one job, from the registry or the archive. It fails as Find does.
// If the result cannot be read, Problem holds the reason.
func (j *views) Detail(name string) (Detail, error) {
	one, err := j.find(name)
	if err != nil {
		return Detail{}, err
	}
	detail := Detail{JobView: j.view(one, j.shown.Load().agents[name]), Prompt: one.Prompt}
	envelope, _, err := j.files.ReadEnvelope(name)
	switch {
	case err == nil:
		shown := envelope.Shown(j.files.Envelope(name))
		detail.Result = &shown
	case !errors.Is(err, fs.ErrNotExist):
		detail.Problem = j.unreadable(name, err)
	}
	return detail, nil
}

// Turns returns the newest turns of one job, oldest first, from the registry or the
// archive. It fails with NotFound if there is no such job.
func (j *views) Turns(name string) ([]jobfiles.Turn, error) {
	one, err := j.find(name)
	if err != nil {
		return nil, err
	}
	return j.files.Turns(one), nil
}

// unreadable returns why a result is not shown, and where it is.
func (j *views) unreadable(name string, err error) string {
	why := "the result cannot be read"
	if errors.Is(err, runs.ErrManual) {
		why = runs.ErrManual.Error()
	}
	return why + ": " + j.files.Envelope(name)
}

// ReadLog reads the log of a run from that byte offset on, also from the archive (JOB-10). It
// fails with NotFound for an unknown job, and with Invalid for an offset outside the log.
func (j *views) ReadLog(name string, from int64) (jobfiles.Log, error) {
	if !job.IsName(name) {
		return jobfiles.Log{}, bridge.Errorf(bridge.NotFound, "there is no run named %q", name)
	}
	if one, err := j.find(name); err == nil && one.Mirror != nil {
		return j.away.ReadLog(j.tasks.Context(), one, from)
	}
	log, err := jobfiles.ReadLog(name, from, j.files.Home, j.files.Archive)
	if errors.Is(err, fs.ErrNotExist) {
		_, err := j.find(name)
		return jobfiles.Log{}, err // there is no log yet, or no such job
	}
	return log, err
}
