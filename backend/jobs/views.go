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
	archive jobfiles.Shelf
}

// Views lists every job, the newest first.
func (j *views) Views() []api.JobView {
	now, views := j.published.Load(), []api.JobView{}
	for _, entry := range slices.Backward(now.jobs) {
		views = append(views, j.view(entry, now.agents[entry.Name]))
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
	entry, err := j.find(name)
	if err != nil {
		return api.JobView{}, err
	}
	return j.view(entry, j.published.Load().agents[name]), nil
}

func (j *views) view(entry job.Job, agent agentState) api.JobView {
	view := api.JobView{
		Job: entry.Name, By: entry.Owner, Agent: entry.Agent, ACPAgent: entry.ACPAgent, Title: entry.Title, Status: entry.State, Wait: entry.Wait, Model: entry.Model,
		Effort: entry.Effort, Access: entry.Access, Layer: entry.Layer, Workdir: entry.Folder(), Session: entry.SessionID,
		Tokens: entry.Tokens, CostUSD: entry.CostUSD, StartedAt: int64(entry.StartedAt), EndedAt: int64(entry.FinishedAt),
		Progress: api.JobProgress{Percent: entry.Percent, ETAMinutes: jobfiles.Minutes(entry.ETAAt.Time(), j.opts.Now()), Note: entry.ProgressNote},
		Ended:    entry.Ended, Remote: entry.Remote,
	}
	if entry.Mirror != nil {
		view.Branch, view.Step, view.Doubt = entry.Mirror.Branch, entry.Mirror.Step, j.paired.Doubt(entry)
	}
	if entry.Worktree != nil {
		view.Branch, view.Worktree = entry.Worktree.Branch, j.landings.View(entry)
	}
	if len(entry.QueuedMessages) > 0 {
		view.Next = entry.QueuedMessages[0]
	}
	switch {
	case entry.State == job.Queued:
		view.StartedAt, view.EndedAt, view.Ended = 0, 0, ""
	case entry.Mirror == nil && entry.State.IsActive():
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
	entry, err := j.find(name)
	if err != nil {
		return Detail{}, err
	}
	detail := Detail{JobView: j.view(entry, j.published.Load().agents[name]), Prompt: entry.Prompt}
	envelope, _, err := j.files.ReadEnvelope(name)
	switch {
	case err == nil:
		visible := envelope.Shown(j.files.Envelope(name))
		detail.Result = &visible
	case !errors.Is(err, fs.ErrNotExist):
		detail.Problem = j.unreadable(name, err)
	}
	return detail, nil
}

// Turns returns the newest turns of one job, oldest first, from the registry or the
// archive. It fails with NotFound if there is no such job.
func (j *views) Turns(name string) ([]jobfiles.Turn, error) {
	entry, err := j.find(name)
	if err != nil {
		return nil, err
	}
	return j.files.Turns(entry), nil
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
	if entry, err := j.find(name); err == nil && entry.Mirror != nil {
		return j.paired.ReadLog(j.tasks.Context(), entry, from)
	}
	log, err := jobfiles.ReadLog(name, from, j.files.Home, j.files.Archive)
	if errors.Is(err, fs.ErrNotExist) {
		_, err := j.find(name)
		return jobfiles.Log{}, err // there is no log yet, or no such job
	}
	return log, err
}
