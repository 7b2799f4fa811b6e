package jobs

import (
	"cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
)

// allowed returns an error if the owner forbids delegated jobs. It reads the settings
// each time and applies their limits to the registry.
func (j *core) allowed() error {
	settings, err := j.opts.Settings()
	if err != nil {
		return err
	}
	if !settings.Enabled {
		return bridge.Errorf(bridge.Denied, "the owner does not allow delegated jobs: jobs.enabled is false in config.json")
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.limits = settings.Limits()
	j.book.SetLimits(j.limits)
	return nil
}

// checkFolder refuses a job that writes in a reserved folder (SEC-09). The error for
// another PC hides the details of this PC's folders.
func (j *core) checkFolder(access job.Access, folder, pc string) error {
	if access == job.AccessRead {
		return nil
	}
	err := j.opts.CheckFolder(folder)
	if err != nil && pc != "" {
		return bridge.WithCause(bridge.Denied, err, "no job may write in that folder: name a project's folder, or use access read")
	}
	return err
}

// checkNext refuses a next run that would write in a reserved folder. It permits a
// message to an active run, which starts no work.
func (j *core) checkNext(entry job.Job, control job.Control) error {
	if entry.Remote != nil || entry.State.IsActive() && control.Settings.Access == "" || control.Message == "" && control.Settings.Access == "" {
		return nil
	}
	return j.checkFolder(cmp.Or(control.Settings.Access, entry.Access), entry.Workdir, entry.PC)
}

// resume continues a job after its usage limit has passed, if the owner's settings
// allow it (JOB-16).
func (j *supervision) resume(entry job.Job) error {
	now := j.opts.Now()
	if entry.LimitUntil == 0 || entry.CancelAsked || entry.Landing != nil || now.Before(entry.LimitUntil.Time()) {
		return nil
	}
	settings, err := j.opts.Settings()
	if err != nil || !settings.Enabled {
		return err
	}
	at, resumes := job.ResumeAt(job.Outcome{State: entry.State, Until: entry.LimitUntil.Time()}, settings.ResumeAtReset)
	if !resumes || now.Before(at) {
		return nil
	}
	_, err = j.deliver("resume-"+runs.ResultID(entry.Name, entry.Run), job.Control{Job: entry.Name, Message: job.GoOn, By: job.BySystem})
	return err
}
