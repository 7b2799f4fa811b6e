package runs

import (
	"context"
	"errors"
	"net/http"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/httpjson"
	"bridge/backend/jobs/gitwork"
	"bridge/backend/jobs/landing"
	"bridge/backend/platform/ipc/api"
)

// Landings is the dashboard's view of the work of jobs.
type Landings interface {
	// Diff returns a job's own changes.
	Diff(ctx context.Context, name string) (landing.Diff, error)
	// DiffSince returns its changes since a commit of its branch.
	DiffSince(ctx context.Context, name, commit string) (landing.Diff, error)
	// Finish applies or discards a job's work. With a Conflict the answer names the files.
	Finish(ctx context.Context, args api.JobFinishArgs) (api.JobFinished, error)
	// Worktrees returns the number of jobs' checkouts and their size in bytes.
	Worktrees() (count int, bytes int64)
}

// Diff answers GET /api/runs/<run>/diff, and with ?since=<commit> only the later changes.
func (s *Runs) Diff(w http.ResponseWriter, r *http.Request) error {
	if s.jobs == nil {
		return noJobs()
	}
	var diff landing.Diff
	var err error
	if since := r.URL.Query().Get("since"); since == "" {
		diff, err = s.jobs.Diff(r.Context(), r.PathValue("run"))
	} else {
		diff, err = s.jobs.DiffSince(r.Context(), r.PathValue("run"), since)
	}
	if err != nil {
		return err
	}
	return httpjson.WriteJSON(w, dto.RunDiff{Base: diff.Base, Head: diff.Head, Files: dto.Each(diff.Files, changeShape)})
}

func changeShape(c gitwork.FileChange) dto.FileChange {
	return dto.FileChange{
		Path: c.Path, From: c.From, Status: c.Status, Added: c.Added, Removed: c.Removed, Binary: c.Binary, Patch: c.Patch, Cut: c.Cut,
	}
}

// commentsRequest is the body of POST /api/runs/<run>/comments.
type commentsRequest struct {
	Comments []job.Comment `json:"comments"`
}

// Comment answers POST /api/runs/<run>/comments: it sends all comments to the job
// as one message of its owner.
func (s *Runs) Comment(w http.ResponseWriter, r *http.Request) error {
	var request commentsRequest
	if err := httpjson.ReadJSON(w, r, &request); err != nil {
		return err
	}
	text, err := job.CommentsText(request.Comments)
	if err != nil {
		return err
	}
	return s.say(w, job.MessageArgs{Job: r.PathValue("run"), Message: text})
}

// finishRequest is the body of POST /api/runs/<run>/finish.
type finishRequest struct {
	Action  string `json:"action"`
	DryRun  bool   `json:"dryRun"`
	Message string `json:"message"`
}

// Finish answers POST /api/runs/<run>/finish (JOB-18). Conflicts are a 409 that
// names the files; for a dry run they are the answer.
func (s *Runs) Finish(w http.ResponseWriter, r *http.Request) error {
	var request finishRequest
	if err := httpjson.ReadJSON(w, r, &request); err != nil {
		return err
	}
	if s.jobs == nil {
		return noJobs()
	}
	finished, err := s.jobs.Finish(r.Context(), api.JobFinishArgs{
		Job: r.PathValue("run"), Action: request.Action, DryRun: request.DryRun, Message: request.Message,
	})
	var refused *bridge.Error
	if errors.As(err, &refused) && refused.Code == bridge.Conflict && len(finished.Conflicts) > 0 {
		return httpjson.Refuse(w, http.StatusConflict, dto.Conflicting{Error: dto.Error{Error: refused.Message}, Finished: finishedShape(finished)})
	}
	if err != nil {
		return err
	}
	return httpjson.WriteJSON(w, finishedShape(finished))
}

func finishedShape(f api.JobFinished) dto.Finished {
	return dto.Finished{
		Action: f.Action, Conflicts: dto.List(f.Conflicts), Done: f.Done, Commit: f.Commit, Branch: f.Branch, Checkout: f.Checkout, LeftOut: f.LeftOut,
	}
}
