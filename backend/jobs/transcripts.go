package jobs

import (
	"context"

	"bridge/backend/core/job"
	"bridge/backend/jobs/jobfiles"
)

// transcripts is the part that stores the transcripts of runs.
type transcripts struct{ *core }

// keepAll stores the transcripts that runs wrote while no broker was there, or one died.
func (j *transcripts) keepAll() {
	for _, one := range j.all() {
		if one.State.IsEnded() && !j.tasks.HasEnded() {
			j.logged("keep the transcript of "+one.Name, j.keep(j.tasks.Context(), one))
		}
	}
}

// keep stores the new part of a job's transcript.
func (j *transcripts) keep(ctx context.Context, one job.Job) error {
	if j.opts.Transcripts == nil {
		return nil
	}
	j.keeping.Lock()
	defer j.keeping.Unlock()
	return jobfiles.Keep(ctx, j.opts.Transcripts, j.opts.Home.Dir(), one)
}
