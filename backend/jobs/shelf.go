package jobs

import (
	"path/filepath"

	"bridge/backend/core/job"
	"bridge/backend/platform/ipc/api"
)

// archivedLast lists the jobs in the archive that ended last, the newest first.
func (j *views) archivedLast() []api.JobView {
	last, err := j.archive.Last(filepath.Dir(j.files.Entry("x")), j.opts.Now(), func(entry job.Job) api.JobView { return j.view(entry, agentState{}) })
	j.logged("read the archive of jobs", err)
	return last
}
