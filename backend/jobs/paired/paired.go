// Package paired has the jobs that this PC has given to paired ones: it gives them, steers
// them, and takes what their PCs say of them, each run's result once. They have no runner
// and no slot here, and no process of this PC is theirs: what is known of them is what
// their PC says, which is checked and bounded here before anything else sees it.
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

// Options says what it works with. All fields are required.
type Options struct {
	Registry    Registry
	Supervisors Supervisors
	Files       jobfiles.Files
	Life        context.Context //nolint:containedctx // of what is done for nobody who waits
	Now         func() time.Time
	Log         *slog.Logger
}

// Registry is that of all jobs of this home.
type Registry interface {
	// All lists the jobs that are not in the archive.
	All() []job.Job
	// Get returns one of them. The error is NotFound where there is none.
	Get(name string) (job.Job, error)
	// Change carries something out and makes it durable: all of it, or nothing.
	Change(do func(*job.Registry) error) error
	// Show brings an entry to what change makes of it, durably before it returns where
	// that says so, and shows it where something differs, or anyway.
	Show(name string, change func(*job.Job) (atOnce bool), anyway bool) error
	// MayControl refuses who may not steer that job.
	MayControl(by broker.Asker, one job.Job) error
}

// Supervisors are those who gave the jobs.
type Supervisors interface {
	// AnswersTo says whose word counts for a job, as it is now.
	AnswersTo(one job.Job) job.Caller
	// Deliver stores a message durably for that one, once however often it is asked.
	Deliver(ctx context.Context, one job.Job, id, conversation, body string) error
	// Question says what a job asks, to whom it is put.
	Question(one job.Job, approval job.Approval, to job.Caller) string
}

// Link reaches paired PCs.
type Link interface {
	// Know is the identity of the paired PC of that name; an error says why it cannot be
	// asked now.
	Know(host string) (id string, err error)
	// Ask asks the PC with that identity, and waits for its answer. After an error that
	// remote.IsUnanswered nobody knows what became of it; after every other one nothing did.
	Ask(ctx context.Context, pc string, request remote.Request, args json.RawMessage) (remote.Value, error)
	// Follow says that there is something to follow.
	Follow()
}

// Jobs are the jobs that paired PCs do for this one.
type Jobs struct {
	opts Options
	link atomic.Pointer[Link]
	book Book

	reading sync.Mutex          // held while a log is read on another PC
	readAt  map[string]lastRead // of each; guarded by reading
}

// New has them. They are reached once Reach was called.
func New(opts Options) *Jobs { return &Jobs{opts: opts, readAt: map[string]lastRead{}} }

// Reach has jobs given to paired PCs. Before, there are none.
func (j *Jobs) Reach(link Link) {
	j.link.Store(&link)
	link.Follow()
}

var errNoLinks = bridge.Errorf(bridge.Unsupported, "this Bridge does not link with other PCs")

// ask asks the PC of a job about it, in the name of whoever gave it, whatever the
// session's identity is by now (RMT-12).
func (j *Jobs) ask(ctx context.Context, one job.Job, request remote.Request, args any) (remote.Value, error) {
	link := j.link.Load()
	if link == nil {
		return remote.Value{}, errNoLinks
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return remote.Value{}, err
	}
	request.Job, request.Peer.Supervisor = one.Remote.Name, one.Supervisor
	return (*link).Ask(ctx, one.Mirror.PC, request, raw)
}

// Spawn gives a job to a paired PC. It is recorded before anything goes out, so that
// whatever becomes of the answer, it is known here that there may be such a job.
func (j *Jobs) Spawn(ctx context.Context, by broker.Asker, request job.Request, args api.SpawnArgs) (api.Spawned, error) {
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
	caller, err := j.callerFor(by, request, pc)
	if err != nil {
		return api.Spawned{}, err
	}
	var said job.SpawnArgs
	if err := bridge.DecodeStrict(args.Args, bridge.MaxFrameBytes, &said); err != nil {
		return api.Spawned{}, err
	}
	said.Host = ""
	var one job.Job
	err = j.opts.Registry.Change(func(r *job.Registry) (err error) {
		if _, err = r.Spawn(request, args.Name, caller, j.opts.Now()); err == nil {
			one, err = r.Update(args.Name, func(one *job.Job) { one.Mirror.PC = pc })
		}
		return err
	})
	if err != nil {
		return api.Spawned{}, err
	}
	defer (*link).Follow()
	value, err := j.ask(ctx, one, remote.Request{Operation: remote.Spawn, Spawn: request}, said)
	return j.begun(one, value, err)
}

// begun answers a spawn by what its PC said, or did not say: then the next state that is
// heard settles it (RMT-13).
func (j *Jobs) begun(one job.Job, value remote.Value, why error) (api.Spawned, error) {
	switch {
	case why == nil:
		if err := j.HeardFrom(one.Name, value, nil); err != nil {
			return api.Spawned{}, err
		}
	case remote.IsUnanswered(why), bridge.CodeOf(why) == bridge.Internal:
		answer := j.Spawned(one)
		answer.Doubt = remote.Mirror{Status: one.State}.Doubt(one.Remote.Host, j.opts.Now())
		// It is shown from now on, though nothing of the job is different.
		return answer, j.opts.Registry.Show(one.Name, func(*job.Job) bool { return false }, true)
	default:
		if err := j.refused(one, why); err != nil {
			return api.Spawned{}, err
		}
		return api.Spawned{}, why
	}
	one, err := j.opts.Registry.Get(one.Name)
	return j.Spawned(one), err
}

func (j *Jobs) Spawned(one job.Job) api.Spawned {
	return api.Spawned{Job: one.Name, Title: one.Title, Status: one.State, Workdir: one.Place(), Branch: one.Mirror.Branch, Doubt: j.Doubt(one)}
}

// callerFor is who a paired PC hears to be asking. Who goes on with the session of a job
// there asks by the identity that gave that job: the session may have another one now.
func (j *Jobs) callerFor(by broker.Asker, request job.Request, pc string) (job.Caller, error) {
	caller := job.Caller{Name: by.Address.Name, ID: by.Address.ID}
	if request.SessionID == "" {
		return caller, nil
	}
	for _, one := range j.opts.Registry.All() {
		if one.Mirror != nil && one.Mirror.PC == pc && one.SessionID == request.SessionID && j.opts.Registry.MayControl(by, one) == nil {
			caller.ID = one.Supervisor
			return caller, nil
		}
	}
	return caller, bridge.Errorf(bridge.Denied, "session_id can only be that of one of your own jobs on %s", request.Host)
}

func (j *Jobs) status(name string) api.JobStatus {
	one, _ := j.opts.Registry.Get(name)
	return api.JobStatus{Job: name, Status: one.State}
}

// logged says what nobody waits for.
func (j *Jobs) logged(what string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		j.opts.Log.Error("jobs: could not "+what, "err", err)
	}
}

// Approval finds a question of a job.
func (j *Jobs) Approval(id string) (job.Approval, bool) { return j.book.Approval(id) }

// Approvals lists what that job has asked.
func (j *Jobs) Approvals(name string) []job.Approval { return j.book.Approvals(name) }

// Doubt says why what is shown of a job may not be its present state; "" is no doubt.
func (j *Jobs) Doubt(one job.Job) string { return j.book.Doubt(one, j.opts.Now()) }
