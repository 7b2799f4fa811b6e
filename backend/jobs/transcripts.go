package jobs

import (
	"context"

	"bridge/backend/core/job"
	"bridge/backend/jobs/jobfiles"
)

// transcripts is the part that stores the transcripts of runs.
type transcripts struct{ *core }

// storeAll stores the transcripts that runs wrote while no broker was there, or one died.
func (j *transcripts) storeAll() {
	for _, entry := range j.all() {
		if entry.State.IsEnded() && !j.tasks.HasEnded() {
			j.logged("keep the transcript of "+entry.Name, j.keep(j.tasks.Context(), entry))
		}
	}
}

// keep stores the new part of a job's transcript.
func (j *transcripts) keep(ctx context.Context, entry job.Job) error {
	if j.opts.Transcripts == nil {
		return nil
	}
	j.keeping.Lock()
	defer j.keeping.Unlock()
	return jobfiles.Keep(ctx, j.opts.Transcripts, j.opts.Home.Dir(), entry)
}
