package jobs

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/remote"
	"bridge/backend/jobs/jobfiles"
	"bridge/backend/platform/disk"
)

// read takes jobs.json in.
func (j *core) read() (err error) {
	if j.file, err = j.registry.Read(); err != nil {
		return err
	}
	j.book, j.checkName = job.NewRegistry(j.limits, j.file.Jobs), j.file.Check
	for _, name := range j.file.Twofold() {
		j.opts.Log.Error("jobs: a name is not served", "err", j.checkName(name))
	}
	return nil
}

// change carries something out and makes it durable: all of it, or nothing.
func (j *core) change(do func(*job.Registry) error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.changeLocked(do)
}

// errSame ends a change that changed nothing.
var errSame = errors.New("nothing changed")

func (j *core) changeLocked(do func(*job.Registry) error) error {
	if err := do(j.book); err != nil {
		if errors.Is(err, errSame) {
			return nil
		}
		j.rollBackLocked()
		return err
	}
	if err := j.writeLocked(); err != nil {
		j.rollBackLocked()
		return bridge.WithCause(bridge.Storage, err, "the job could not be recorded: "+disk.Reason(err))
	}
	return nil
}

// writeLocked makes the registry durable and shows it.
func (j *core) writeLocked() error {
	j.file.Jobs = j.book.All()
	if err := j.registry.Write(j.file, job.MillisOf(j.opts.Now())); err != nil {
		return err
	}
	j.dirty = false
	j.publish()
	return nil
}

// noteLocked changes what need not be durable at once, such as progress.
func (j *core) noteLocked(name string, change func(*job.Job)) {
	if _, err := j.book.Update(name, change); err != nil {
		return // it went to the archive meanwhile
	}
	j.dirty = true
	j.publish()
}

// rollBackLocked goes back to what was shown last.
func (j *core) rollBackLocked() {
	j.book = job.NewRegistry(j.limits, slices.Clone(j.all()))
	for root, slots := range j.slots {
		_ = j.book.SetSlots(root, slots) // it was accepted before
	}
}

// shown is what those see who only read: they wait for nobody who writes.
type shown struct {
	jobs      []job.Job
	agents    map[string]agentState // of active jobs
	approvals []job.Approval        // of the runs that go on, the oldest first
}

// agentState is what the agent of a run does, and with which model.
type agentState struct{ step, model string }

// publish shows the registry, and what goes with its jobs, to those who only read.
func (j *core) publish() {
	now := shown{jobs: j.book.All(), agents: map[string]agentState{}}
	for name, r := range j.runs {
		now.agents[name] = agentState{r.step, r.model}
		now.approvals = slices.AppendSeq(now.approvals, maps.Values(r.approvals))
	}
	for _, one := range now.jobs {
		if one.Mirror != nil && !one.State.IsEnded() {
			now.approvals = append(now.approvals, j.away.Approvals(one.Name)...)
		}
	}
	slices.SortFunc(now.approvals, func(a, b job.Approval) int {
		return cmp.Or(cmp.Compare(a.AskedAt, b.AskedAt), strings.Compare(a.ID, b.ID))
	})
	j.shown.Store(&now)
	j.opts.Broker.Changed()
}

// all lists every job as it was shown last.
func (j *core) all() []job.Job { return j.shown.Load().jobs }

func (j *core) get(name string) (job.Job, error) {
	host, local := remote.SplitName(name)
	for _, one := range j.all() {
		if one.Name == name || host != "" && one.Remote != nil && one.Remote.Host == host && one.Remote.Name == local {
			return one, nil
		}
	}
	if err := j.checkName(name); err != nil {
		return job.Job{}, err
	}
	return job.Job{}, bridge.Errorf(bridge.NotFound, "there is no job named %q", name)
}

// find returns a job, also one in the archive.
func (j *core) find(name string) (job.Job, error) {
	one, err := j.get(name)
	host, name := remote.SplitName(name)
	if err == nil || !job.IsName(name) || j.checkName(name) != nil {
		return one, err
	}
	kept, readErr := jobfiles.ReadEntry(j.files.Entry(name))
	if errors.Is(readErr, fs.ErrNotExist) || host != "" && (kept.Remote == nil || kept.Remote.Host != host) {
		return one, err
	}
	return kept, readErr
}
