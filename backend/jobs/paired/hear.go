package paired

import (
	"context"
	"fmt"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/core/remote"
)

// refused ends a job that its PC refused. The caller receives the error directly.
func (j *Jobs) refused(entry job.Job, why error) error {
	entry.Run = 1
	outcome := job.Outcome{State: job.Failed, Ended: job.EndedNotStarted}
	if err := j.opts.Files.WriteEnvelope(entry, outcome, why.Error(), j.opts.Now()); err != nil {
		return err
	}
	return j.finish(entry, outcome, true)
}

func (j *Jobs) finish(entry job.Job, outcome job.Outcome, sent bool) error {
	return j.opts.Registry.Change(func(r *job.Registry) error {
		_, err := r.Update(entry.Name, func(present *job.Job) {
			present.State, present.Run, present.Ended, present.Wait = outcome.State, entry.Run, outcome.Ended, nil
			present.FinishedAt, present.ResultSent = job.Millis(j.opts.Now().UnixMilli()), sent
			present.Mirror.Results = entry.Run - 1
			if sent {
				present.Mirror.Results = entry.Run
			}
		})
		return err
	})
}

// lost ends a job that sends no more reports, and notifies its supervisor.
func (j *Jobs) lost(entry job.Job, outcome job.Outcome, why string) error {
	if entry.State.IsEnded() { // only its result is missing
		outcome = job.Outcome{State: entry.State, Ended: entry.Ended, Until: entry.LimitUntil.Time()}
		if entry.State == job.Finished {
			outcome.State = job.Failed
		}
	}
	entry.Run = max(1, entry.Run)
	envelope := runs.NewEnvelope(entry.Name, entry.Run, outcome, "", runs.Evidence{}, j.opts.Now())
	envelope.Error, envelope.Title, envelope.Model, envelope.Session, envelope.Workdir = why, entry.Title, entry.Model, entry.SessionID, entry.Workdir
	if err := j.finish(entry, outcome, false); err != nil {
		return err
	}
	return j.Came(j.opts.Context, entry.Name, envelope)
}

// Followed lists the jobs that may still send reports.
func (j *Jobs) Followed() (list []job.Job) {
	names := map[string]bool{}
	for _, entry := range j.opts.Registry.All() {
		if entry.Mirror == nil {
			continue
		}
		names[entry.Name] = true
		resumes := entry.State == job.Limit && entry.LimitUntil > 0 && !entry.CancelAsked
		if !entry.State.IsEnded() || !entry.ResultSent || resumes || entry.Mirror.ToldAt > 0 {
			list = append(list, entry)
		}
	}
	j.reports.Forget(func(name string) bool { return names[name] })
	return list
}

// RecordReport records the report of a job's PC, or the error instead.
func (j *Jobs) RecordReport(name string, value remote.Value, why error) error {
	entry, err := j.opts.Registry.Get(name)
	if err != nil || entry.Mirror == nil {
		return nil //nolint:nilerr // it went to the archive meanwhile
	}
	at := j.opts.Now()
	if why != nil {
		return j.unheard(entry, why)
	}
	news, err := j.reports.RecordReport(entry, value, at)
	if err != nil || !news.Is {
		return err
	}
	if err := j.passNote(entry, news.State); err != nil {
		return err
	}
	show := func(entry *job.Job) bool { return Show(entry, news.State, j.opts.Now()) }
	if err := j.opts.Registry.Show(name, show, news.Asked); err != nil {
		return err
	}
	return j.Put(j.opts.Context)
}

// unheard handles an error in place of a report. If the PC still does not know a job
// after the time limit of a spawn, the job is lost. The start of that time is durable,
// so that broker restarts cannot extend it (RMT-13).
func (j *Jobs) unheard(entry job.Job, why error) error {
	host, now, since := entry.Remote.Host, j.opts.Now(), entry.Mirror.UnknownAt.Time()
	switch code := bridge.CodeOf(why); {
	case code == bridge.Unauthorized:
		return j.lost(entry, job.Outcome{State: job.Interrupted, Ended: job.EndedRunnerGone}, host+" is neither paired with this PC nor in its team any more: whether the job goes on there is not known here.")
	case remote.IsUnanswered(why), code == bridge.Unavailable, code == bridge.Busy:
		return nil
	case code != bridge.NotFound:
		j.reports.Refused(entry.Name, why)
		return j.noteUnknown(entry, 0)
	case since.IsZero(), since.After(now): // or the clock was set back
		return j.noteUnknown(entry, job.MillisOf(now))
	case now.Sub(since) < remote.SpawnTimeout:
		return nil
	case entry.Mirror.HeardAt == 0:
		return j.lost(entry, job.Outcome{State: job.Failed, Ended: job.EndedNotStarted}, host+" knows no such job: it was not started.")
	}
	return j.lost(entry, job.Outcome{State: job.Interrupted, Ended: job.EndedRunnerGone}, host+" does not know this job any more.")
}

// noteUnknown records since when the PC of a job does not know the job; 0 clears the
// record.
func (j *Jobs) noteUnknown(entry job.Job, since job.Millis) error {
	if entry.Mirror.UnknownAt == since {
		return nil
	}
	return j.setMirror(entry.Name, func(mirror *job.Mirror) { mirror.UnknownAt = since })
}

// setMirror durably changes this PC's own data about a job of another PC.
func (j *Jobs) setMirror(name string, change func(*job.Mirror)) error {
	return j.opts.Registry.Change(func(r *job.Registry) error {
		_, err := r.Update(name, func(entry *job.Job) { change(entry.Mirror) })
		return err
	})
}

// passNote sends a job's progress note once as a message (RMT-19). The message wakes no
// session.
func (j *Jobs) passNote(entry job.Job, s remote.JobState) error {
	if s.Note == "" || s.Note == entry.ProgressNote {
		return nil
	}
	body := s.Note
	if s.Percent != nil {
		body = fmt.Sprintf("%d %%: %s", *s.Percent, s.Note)
	}
	id := fmt.Sprintf("note-%s-%d-%x", entry.Name, s.Run, Digest(s.Note))
	return j.opts.Supervisors.Deliver(j.opts.Context, entry, id, runs.Conversation(entry.Name)+":note", body)
}

// Missing returns the next run whose result to fetch, or 0.
func (j *Jobs) Missing(name string) int {
	entry, err := j.opts.Registry.Get(name)
	if err != nil {
		return 0
	}
	return j.reports.Missing(entry)
}

// Came stores the result of a run durably, then sends its message, then records that. The
// message is sent once, even if a process dies in between (JOB-03). Came fails with NotFound
// for an unknown job, and if one of these three steps fails.
func (j *Jobs) Came(ctx context.Context, name string, result runs.Envelope) error {
	entry, err := j.opts.Registry.Get(name)
	if err != nil || entry.Mirror == nil || result.Run <= entry.Mirror.Results {
		return err
	}
	result.Job, result.MessageID, result.Host = name, runs.ResultID(name, result.Run), entry.Remote.Host
	result.WrittenAt = job.Millis(j.opts.Now().UnixMilli())
	if err := j.opts.Files.StoreEnvelope(entry, result, j.opts.Now()); err != nil {
		return err
	}
	if err := j.opts.Supervisors.Deliver(ctx, entry, result.MessageID, runs.Conversation(name), result.Body(j.opts.Files.Envelope(name))); err != nil {
		return err
	}
	return j.opts.Registry.Change(func(r *job.Registry) error {
		_, err := r.Update(name, func(entry *job.Job) {
			entry.Mirror.Results = result.Run
			entry.ResultSent = entry.State.IsEnded() && result.Run >= entry.Run
		})
		return err
	})
}
