// Package paired keeps the jobs that this PC has given to paired PCs. It spawns and
// controls them, and stores their PCs' reports, each run's result once. These jobs have
// no runner, slot or process on this PC. The package checks and limits each report
// before other code sees it.
package paired

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"bridge/backend/broker"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/remote"
	"bridge/backend/jobs/jobfiles"
	"bridge/backend/platform/ipc/api"
)

// Options configures the jobs. All fields are required.
type Options struct {
	Registry    Registry
	Supervisors Supervisors
	Files       jobfiles.Files
	Context     context.Context //nolint:containedctx // of what is done for nobody who waits
	Now         func() time.Time
	Log         *slog.Logger
}

// Registry is the registry of all jobs of this home.
type Registry interface {
	// All lists the jobs that are not in the archive.
	All() []job.Job
	// Get returns one of them. It fails with NotFound if there is none.
	Get(name string) (job.Job, error)
	// Change applies a change and makes it durable, or rolls it back completely.
	Change(do func(*job.Registry) error) error
	// Show updates an entry with change. If change returns true, the update is durable
	// before Show returns. Show publishes the entry if it differs, or if anyway is set.
	Show(name string, change func(*job.Job) (atOnce bool), anyway bool) error
	// MayControl refuses a caller who may not control that job.
	MayControl(asker broker.Asker, entry job.Job) error
}

// Supervisors gives access to the supervisors of the jobs.
type Supervisors interface {
	// AnswersTo returns the current supervisor of a job.
	AnswersTo(entry job.Job) job.Caller
	// Deliver stores a message durably for the supervisor, only once for any number of calls.
	Deliver(ctx context.Context, entry job.Job, id, conversation, body string) error
	// Question returns the text of an approval for its recipient.
	Question(entry job.Job, approval job.Approval, caller job.Caller) string
}

// Link connects to paired PCs.
type Link interface {
	// Know returns the identity of the paired PC with that name. It returns an error if
	// the PC cannot be reached now.
	Know(host string) (id string, err error)
	// Ask sends a request to the PC with that identity and waits for the answer. After a
	// remote.IsUnanswered error the outcome is unknown; after any other, nothing happened.
	Ask(ctx context.Context, pc string, request remote.Request, args json.RawMessage) (remote.Value, error)
	// Notify signals that there is a job to follow.
	Notify()
}

// Jobs is the set of jobs that paired PCs run for this PC.
type Jobs struct {
	opts    Options
	link    atomic.Pointer[Link]
	reports Reports

	reading sync.Mutex          // held during a read of a log on another PC
	readAt  map[string]lastRead // by job name; guarded by reading
}

// New returns the jobs. They reach paired PCs after Reach is called.
func New(opts Options) *Jobs { return &Jobs{opts: opts, readAt: map[string]lastRead{}} }

// Reach sets the link to paired PCs. Without a link, no job can be given.
func (j *Jobs) Reach(link Link) {
	j.link.Store(&link)
	link.Notify()
}

var errNoLinks = bridge.Errorf(bridge.Unsupported, "this Bridge does not link with other PCs")

// ask sends the PC of a job a request about it, with the identity that gave the job.
// The session may have another identity now (RMT-12).
func (j *Jobs) ask(ctx context.Context, entry job.Job, request remote.Request, args any) (remote.Value, error) {
	link := j.link.Load()
	if link == nil {
		return remote.Value{}, errNoLinks
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return remote.Value{}, err
	}
	request.Job, request.Peer.Supervisor = entry.Remote.Name, entry.Supervisor
	return (*link).Ask(ctx, entry.Mirror.PC, request, raw)
}

// Spawn gives a job to a paired PC. It records the job before it sends the request. It fails
// with Unsupported without links, with Invalid for bad arguments, if the PC is unknown, and
// with that PC's error if it refuses the job. If the answer is lost, Spawn returns the job with
// Doubt, because the job may exist.
func (j *Jobs) Spawn(ctx context.Context, asker broker.Asker, request job.Request, args api.SpawnArgs) (api.Spawned, error) {
	if err := remote.CheckSpawn(request); err != nil {
		return api.Spawned{}, err
	}
	link := j.link.Load()
	if link == nil {
		return api.Spawned{}, errNoLinks
	}
	pc, err := (*link).Know(request.Host)
	if err != nil {
		return api.Spawned{}, err
	}
	caller, err := j.callerFor(asker, request, pc)
	if err != nil {
		return api.Spawned{}, err
	}
	var spawnArgs job.SpawnArgs
	if err := bridge.DecodeStrict(args.Args, bridge.MaxFrameBytes, &spawnArgs); err != nil {
		return api.Spawned{}, err
	}
	spawnArgs.Host = ""
	var entry job.Job
	err = j.opts.Registry.Change(func(r *job.Registry) (err error) {
		if _, err = r.Spawn(request, args.Name, caller, j.opts.Now()); err == nil {
			entry, err = r.Update(args.Name, func(entry *job.Job) { entry.Mirror.PC = pc })
		}
		return err
	})
	if err != nil {
		return api.Spawned{}, err
	}
	defer (*link).Notify()
	value, err := j.ask(ctx, entry, remote.Request{Operation: remote.Spawn, Spawn: request}, spawnArgs)
	return j.started(entry, value, err)
}

// started completes a spawn with the answer of its PC. If there is no answer, the next
// report settles the spawn (RMT-13).
func (j *Jobs) started(entry job.Job, value remote.Value, why error) (api.Spawned, error) {
	switch {
	case why == nil:
		if err := j.RecordReport(entry.Name, value, nil); err != nil {
			return api.Spawned{}, err
		}
	case remote.IsUnanswered(why), bridge.CodeOf(why) == bridge.Internal:
		answer := j.Spawned(entry)
		answer.Doubt = remote.Mirror{Status: entry.State}.Doubt(entry.Remote.Host, j.opts.Now())
		// From now on the job is visible, although its data is the same.
		return answer, j.opts.Registry.Show(entry.Name, func(*job.Job) bool { return false }, true)
	default:
		if err := j.refused(entry, why); err != nil {
			return api.Spawned{}, err
		}
		return api.Spawned{}, why
	}
	entry, err := j.opts.Registry.Get(entry.Name)
	return j.Spawned(entry), err
}

// Spawned returns the answer of a spawn for a job on a paired PC.
func (j *Jobs) Spawned(entry job.Job) api.Spawned {
	return api.Spawned{Job: entry.Name, Title: entry.Title, Status: entry.State, Workdir: entry.Folder(), Branch: entry.Mirror.Branch, Doubt: j.Doubt(entry)}
}

// callerFor returns the caller to name to a paired PC. If the request continues a job's session,
// the caller has the identity that gave that job. The session may have another identity now.
func (j *Jobs) callerFor(asker broker.Asker, request job.Request, pc string) (job.Caller, error) {
	caller := job.Caller{Name: asker.Address.Name, ID: asker.Address.ID}
	if request.SessionID == "" {
		return caller, nil
	}
	for _, entry := range j.opts.Registry.All() {
		if entry.Mirror != nil && entry.Mirror.PC == pc && entry.SessionID == request.SessionID && j.opts.Registry.MayControl(asker, entry) == nil {
			caller.ID = entry.Supervisor
			return caller, nil
		}
	}
	return caller, bridge.Errorf(bridge.Denied, "session_id can only be that of one of your own jobs on %s", request.Host)
}

func (j *Jobs) status(name string) api.JobStatus {
	entry, _ := j.opts.Registry.Get(name)
	return api.JobStatus{Job: name, Status: entry.State}
}

// logged logs an error that no caller waits for, except a cancel.
func (j *Jobs) logged(what string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		j.opts.Log.Error("jobs: could not "+what, "err", err)
	}
}

// Approval finds an approval of a job.
func (j *Jobs) Approval(id string) (job.Approval, bool) { return j.reports.Approval(id) }

// Approvals lists the approvals of that job.
func (j *Jobs) Approvals(name string) []job.Approval { return j.reports.Approvals(name) }

// Doubt returns why the shown state of a job may be out of date, or "".
func (j *Jobs) Doubt(entry job.Job) string { return j.reports.Doubt(entry, j.opts.Now()) }
