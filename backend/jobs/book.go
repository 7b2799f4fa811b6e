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

// read loads jobs.json.
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

// change applies a change and makes it durable, or rolls it back completely.
func (j *core) change(do func(*job.Registry) error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.changeLocked(do)
}

// errSame aborts a change that modified nothing.
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

// writeLocked makes the registry durable and publishes it.
func (j *core) writeLocked() error {
	j.file.Jobs = j.book.All()
	if err := j.registry.Write(j.file, job.MillisOf(j.opts.Now())); err != nil {
		return err
	}
	j.dirty = false
	j.publish()
	return nil
}

// noteLocked applies a change that is saved later, such as progress.
func (j *core) noteLocked(name string, change func(*job.Job)) {
	if _, err := j.book.Update(name, change); err != nil {
		return // the job went to the archive meanwhile
	}
	j.dirty = true
	j.publish()
}

// rollBackLocked restores the last published registry.
func (j *core) rollBackLocked() {
	j.book = job.NewRegistry(j.limits, slices.Clone(j.all()))
	for root, slots := range j.slots {
		_ = j.book.SetSlots(root, slots) // these limits were accepted before
	}
}

// shown is the published snapshot for readers, who never wait for writers.
type shown struct {
	jobs      []job.Job
	agents    map[string]agentState // of active jobs
	approvals []job.Approval        // of active runs, the oldest first
}

// agentState is the current step and model of a run's agent.
type agentState struct{ step, model string }

// publish stores a new snapshot of the registry for readers and notifies the broker.
func (j *core) publish() {
	now := shown{jobs: j.book.All(), agents: map[string]agentState{}}
	for name, r := range j.runs {
		now.agents[name] = agentState{r.step, r.model}
		now.approvals = slices.AppendSeq(now.approvals, maps.Values(r.approvals))
	}
	for _, entry := range now.jobs {
		if entry.Mirror != nil && !entry.State.IsEnded() {
			now.approvals = append(now.approvals, j.paired.Approvals(entry.Name)...)
		}
	}
	slices.SortFunc(now.approvals, func(a, b job.Approval) int {
		return cmp.Or(cmp.Compare(a.AskedAt, b.AskedAt), strings.Compare(a.ID, b.ID))
	})
	j.published.Store(&now)
	j.opts.Broker.Changed()
}

// all lists the jobs of the last published snapshot.
func (j *core) all() []job.Job { return j.published.Load().jobs }

func (j *core) get(name string) (job.Job, error) {
	host, local := remote.SplitName(name)
	for _, entry := range j.all() {
		if entry.Name == name || host != "" && entry.Remote != nil && entry.Remote.Host == host && entry.Remote.Name == local {
			return entry, nil
		}
	}
	if err := j.checkName(name); err != nil {
		return job.Job{}, err
	}
	return job.Job{}, bridge.Errorf(bridge.NotFound, "there is no job named %q", name)
}

// find returns a job from the registry or the archive.
func (j *core) find(name string) (job.Job, error) {
	entry, err := j.get(name)
	host, name := remote.SplitName(name)
	if err == nil || !job.IsName(name) || j.checkName(name) != nil {
		return entry, err
	}
	archived, readErr := jobfiles.ReadEntry(j.files.Entry(name))
	if errors.Is(readErr, fs.ErrNotExist) || host != "" && (archived.Remote == nil || archived.Remote.Host != host) {
		return entry, err
	}
	return archived, readErr
}
