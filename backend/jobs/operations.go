package jobs

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"bridge/backend/bridge"
	"bridge/backend/broker"
	"bridge/backend/ipc"
	"bridge/backend/ipc/api"
	"bridge/backend/job"
)

// asks is the part that serves the operations, those of supervisors by itself.
type asks struct {
	*core
	operations map[string]operation
}

// mayControl refuses everybody but the job's own supervisor and the owner: neither a
// sibling nor whoever took the supervisor's name (JOB-11).
func mayControl(by broker.Asker, one job.Job) error {
	if by.Owner || by.Same != nil && !by.InJob && by.Same(one.Supervisor) {
		return nil
	}
	return one.MayControl("", false)
}

// errInJob refuses what a job cannot ask for.
var errInJob = bridge.Errorf(bridge.Denied, "a delegated job and a native child cannot give or steer jobs: tell whoever you work for")

// Handle serves an operation of the local link; the broker has checked its caller's
// role.
func (j *asks) Handle(ctx context.Context, conn *ipc.Conn, op string, args json.RawMessage) (any, error) {
	serve, has := j.operations[op]
	if !has {
		return nil, bridge.Errorf(bridge.Invalid, "unknown operation %q", op)
	}
	return serve(ctx, conn, args)
}

type operation func(ctx context.Context, conn *ipc.Conn, args json.RawMessage) (any, error)

func (j *asks) index() map[string]operation {
	return map[string]operation{
		api.OpRunnerHello.Name:  serve(api.OpRunnerHello, j.runners.hello),
		api.OpRunnerReport.Name: serve(api.OpRunnerReport, j.runners.report),
		api.OpRunnerWait.Name:   serve(api.OpRunnerWait, j.runners.wait),
		api.OpSpawn.Name:        serve(api.OpSpawn, j.spawn),
		api.OpJobs.Name:         serve(api.OpJobs, j.list),
		api.OpJobResult.Name:    serve(api.OpJobResult, j.result),
		api.OpJobMessage.Name:   serve(api.OpJobMessage, j.message),
		api.OpJobCancel.Name:    serve(api.OpJobCancel, j.cancelJob),
		api.OpJobProgress.Name:  serve(api.OpJobProgress, j.progress),
		api.OpJobSlots.Name:     serve(api.OpJobSlots, j.setSlots),
	}
}

func serve[A, R any](_ api.Op[A, R], method func(context.Context, *ipc.Conn, A) (R, error)) operation {
	return func(ctx context.Context, conn *ipc.Conn, raw json.RawMessage) (any, error) {
		var args A
		if err := bridge.DecodeAdditive(raw, bridge.MaxFrameBytes, &args); err != nil {
			return nil, err
		}
		return method(ctx, conn, args)
	}
}

// controlled finds a job that the caller may steer, and who the caller is.
func (j *asks) controlled(ctx context.Context, conn *ipc.Conn, caller api.Caller, name string) (job.Job, broker.Asker, error) {
	by, err := j.opts.Broker.Asker(ctx, conn, caller)
	if err != nil {
		return job.Job{}, by, err
	}
	one, err := j.find(name)
	if err != nil {
		return one, by, err
	}
	if by.InJob {
		return one, by, errInJob
	}
	return one, by, mayControl(by, one)
}

// spawn records a job and answers at once (JOB-01). Asked again with the same name by
// the same session it is the same job.
func (j *asks) spawn(ctx context.Context, conn *ipc.Conn, args api.SpawnArgs) (api.Spawned, error) {
	by, err := j.opts.Broker.Asker(ctx, conn, args.Caller)
	if err != nil {
		return api.Spawned{}, err
	}
	if by.InJob {
		return api.Spawned{}, errInJob
	}
	if present, err := j.get(args.Name); err == nil && mayControl(by, present) == nil {
		return spawned(present), nil
	}
	kind, ask, isName := job.ParseName(args.Name)
	if !isName || kind != args.Kind {
		return api.Spawned{}, bridge.Errorf(bridge.Invalid, "%q is not the name of a job of %s", args.Name, args.Kind)
	}
	request, err := job.ParseSpawn(args.Kind, ask, args.Args)
	if err == nil {
		err = possible(request)
	}
	if err != nil {
		return api.Spawned{}, err
	}
	if request.Cwd == "" {
		request.Cwd = by.Cwd
	}
	var one job.Job
	err = j.change(func(r *job.Registry) (err error) {
		one, err = r.Spawn(request, args.Name, job.Caller{Name: by.Address.Name, ID: by.Address.ID}, j.opts.Now())
		return err
	})
	if err != nil {
		return api.Spawned{}, err
	}
	j.kick()
	return spawned(one), nil
}

// possible refuses what this build cannot do yet, rather than to do something else.
func possible(request job.Request) error {
	switch {
	case request.Kind == job.ACP || request.Kind == bridge.Antigravity:
		return bridge.Errorf(bridge.Unsupported, "this version of Bridge runs no jobs of %s", request.Kind)
	case request.Worktree:
		return bridge.Errorf(bridge.Unsupported, "this version of Bridge runs no jobs in worktrees of their own: leave worktree out")
	case request.Host != "":
		return bridge.Errorf(bridge.Unsupported, "this version of Bridge runs jobs on this PC only: leave host out")
	}
	return nil
}

func spawned(one job.Job) api.Spawned {
	answer := api.Spawned{Job: one.Name, Title: one.Title, Status: one.State, Workdir: one.Workdir}
	if one.Worktree != nil {
		answer.Branch = one.Worktree.Branch
	}
	return answer
}

// message says something to a job, sets what its next turn begins with, or answers
// what it asks (JOB-05, JOB-07).
func (j *asks) message(ctx context.Context, conn *ipc.Conn, args api.JobMessageArgs) (api.JobMessaged, error) {
	one, by, err := j.controlled(ctx, conn, args.Caller, args.Args.Job)
	if err != nil {
		return api.JobMessaged{}, err
	}
	control, err := args.Args.Check()
	if err == nil && control.ApprovalID == "" {
		err = bridge.CheckID("the message's id", args.ID)
	}
	if err != nil {
		return api.JobMessaged{}, err
	}
	if control.ApprovalID != "" {
		return j.decide(control, by)
	}
	delivery, err := j.say(args.ID, control)
	if err != nil {
		return api.JobMessaged{}, err
	}
	answer := api.JobMessaged{JobStatus: j.status(one.Name)}
	if delivery != job.NoDelivery {
		answer.Delivery = &delivery
	}
	return answer, nil
}

func (j *asks) decide(control job.Control, by broker.Asker) (api.JobMessaged, error) {
	j.mu.Lock()
	_, approval, err := j.approvals.approvalLocked(control.ApprovalID)
	j.mu.Unlock()
	if err == nil && approval.Job != control.Job {
		err = bridge.Errorf(bridge.NotFound, "%s has no approval %q", control.Job, control.ApprovalID)
	}
	if err == nil {
		_, err = j.approvals.answer(control.ApprovalID, by, control.Decision, control.Reason)
	}
	if err != nil {
		return api.JobMessaged{}, err
	}
	done := job.AnswerDone
	return api.JobMessaged{JobStatus: j.status(control.Job), Delivery: &done}, nil
}

// say gives words and settings to a job that is not in the archive.
func (j *asks) say(id string, control job.Control) (delivery job.Delivery, err error) {
	one, err := j.get(control.Job)
	if err != nil {
		return "", err
	}
	if one.State.IsEnded() && one.Run > 0 && !one.ResultSent {
		// What came of the run goes out first: the next one would take its place.
		if err := j.results.send(j.life, one.Name); err != nil {
			return "", err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	err = j.changeLocked(func(book *job.Registry) (err error) {
		delivery, err = book.Message(control.Job, control.Message, control.Settings, j.opts.Now())
		return err
	})
	if err != nil {
		return "", err
	}
	defer j.kick()
	one, _ = j.book.Get(control.Job)
	r := j.runs[control.Job]
	if r == nil || !one.State.IsActive() {
		return delivery, nil
	}
	if control.Settings != (job.Settings{}) {
		if err := j.orderLocked(r, api.Order{ID: "settings-" + id, Kind: api.OrderSettings, Settings: control.Settings}); err != nil {
			return "", err
		}
	}
	if delivery != job.ToRunning {
		return delivery, nil
	}
	order := api.Order{ID: id, Kind: api.OrderMessage, Text: control.Message}
	if one.State == job.Waiting && one.Wait != nil && isStop(one.Wait.For) && control.Message == job.GoOn {
		order = api.Order{ID: id, Kind: api.OrderGoOn}
	}
	return delivery, j.orderLocked(r, order)
}

// isStop reports whether a job waits because it has used up what it was given.
func isStop(what job.WaitFor) bool {
	return slices.Contains([]job.WaitFor{job.ForBudget, job.ForTime, job.ForRepeat, job.ForSilence}, what)
}

// cancelJob ends a job: at once where it waits for a slot, else by its runner.
func (j *asks) cancelJob(ctx context.Context, conn *ipc.Conn, args api.JobArgs) (api.JobStatus, error) {
	one, _, err := j.controlled(ctx, conn, args.Caller, args.Job)
	if err != nil {
		return api.JobStatus{}, err
	}
	return j.Cancel(one.Name)
}

// Cancel ends a job on the owner's word (JOB-06).
func (j *asks) Cancel(name string) (api.JobStatus, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var one job.Job
	err := j.changeLocked(func(book *job.Registry) (err error) {
		one, err = book.Cancel(name, j.opts.Now())
		return err
	})
	if err != nil {
		return api.JobStatus{}, err
	}
	if r := j.runs[name]; r != nil && one.State.IsActive() {
		if err := j.orderLocked(r, cancelOrder); err != nil {
			return api.JobStatus{}, err
		}
	}
	return api.JobStatus{Job: name, Status: one.State}, nil
}

var cancelOrder = api.Order{ID: "cancel", Kind: api.OrderCancel}

// progress takes what a job says of itself, from a process that has the job's secret.
func (j *asks) progress(_ context.Context, _ *ipc.Conn, args api.JobProgressArgs) (api.Empty, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.runs[args.Job]
	if r == nil || r.token == "" || r.token != args.Token {
		return api.Empty{}, bridge.Errorf(bridge.Denied, "report_progress is for delegated jobs while they run")
	}
	at := j.opts.Now()
	j.noteLocked(args.Job, func(one *job.Job) { one.SetProgress(one.Progress().With(args.Args, at)) })
	return api.Empty{}, nil
}

// MaySend refuses words of a job to anybody but its supervisor and those whom it was
// given by name (JOB-12).
func (j *asks) MaySend(name, to string) error {
	one, err := j.get(name)
	if err != nil {
		return err
	}
	if !job.MaySend(to, one.Owner, one.SendTo) {
		return bridge.Errorf(bridge.Denied, "%s may write to %s only, and to whom its send_to names; %q is not among them", name, one.Owner, to)
	}
	return nil
}

// setSlots sets how many jobs of the caller's run at once, or only tells (JOB-09).
func (j *asks) setSlots(ctx context.Context, conn *ipc.Conn, args api.JobSlotsArgs) (api.JobSlots, error) {
	by, err := j.opts.Broker.Asker(ctx, conn, args.Caller)
	if err != nil {
		return api.JobSlots{}, err
	}
	if by.InJob {
		return api.JobSlots{}, errInJob
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if args.Limit != 0 {
		if err := j.book.SetSlots(by.Address.ID, args.Limit); err != nil {
			return api.JobSlots{}, err
		}
		j.slots[by.Address.ID] = args.Limit
		j.kick()
	}
	var answer api.JobSlots
	answer.Limit, answer.Running, answer.Queued = j.book.Slots(by.Address.ID)
	return answer, nil
}

func (j *asks) status(name string) api.JobStatus {
	one, _ := j.get(name)
	return api.JobStatus{Job: name, Status: one.State}
}

// list shows the jobs of the calling session, or all of them to the owner.
func (j *asks) list(ctx context.Context, conn *ipc.Conn, caller api.Caller) (api.JobsResult, error) {
	by, err := j.opts.Broker.Asker(ctx, conn, caller)
	if err != nil {
		return api.JobsResult{}, err
	}
	result := api.JobsResult{Jobs: []api.JobView{}}
	for _, view := range j.views.Views() {
		if one, err := j.get(view.Job); err == nil && mayControl(by, one) == nil {
			result.Jobs = append(result.Jobs, view)
		}
	}
	return result, nil
}

// result tells what came of a job, to its supervisor.
func (j *asks) result(ctx context.Context, conn *ipc.Conn, args api.JobArgs) (api.JobResult, error) {
	one, _, err := j.controlled(ctx, conn, args.Caller, args.Job)
	if err != nil {
		return api.JobResult{}, err
	}
	answer := api.JobResult{
		JobStatus: api.JobStatus{Job: one.Name, Status: one.State}, Ended: one.State.IsEnded(), Sent: one.ResultSent,
		Evidence: job.Evidence{Files: []job.Changed{}, Commands: []job.Command{}},
	}
	if !answer.Ended || one.Run == 0 {
		return answer, nil
	}
	answer.Message = job.ResultID(one.Name, one.Run)
	envelope, _, err := j.results.readEnvelope(one.Name)
	if err != nil {
		answer.Error = err.Error()
		return answer, nil //nolint:nilerr // the answer says it
	}
	answer.Result, answer.Error, answer.Evidence = envelope.Result, envelope.Error, envelope.Evidence
	return answer, nil
}

// minutes is how long it is until then, in whole minutes and at least none.
func minutes(until, now time.Time) *int64 {
	if until.IsZero() {
		return nil
	}
	left := max(0, int64(until.Sub(now).Round(time.Minute)/time.Minute))
	return &left
}
