package jobs

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"

	"bridge/backend/broker"
	"bridge/backend/broker/mux"
	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/jobs/jobfiles"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// supervision is the part that serves the operations, mainly those of supervisors.
type supervision struct {
	*core
}

// answersTo returns the current supervisor of a job. See job.Registry.AnswersTo.
func (j *core) answersTo(entry job.Job) job.Caller {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.answersToLocked(entry)
}

func (j *core) answersToLocked(entry job.Job) job.Caller {
	if present, has := j.book.Get(entry.Name); has { // if absent, it is in the archive
		entry = present
	}
	caller, _ := j.book.AnswersTo(entry, 0)
	return caller
}

// mayControl refuses every caller except the job's supervisor and the owner. It refuses
// siblings, the job itself and a job above that handed it off. It also refuses a
// session that reused the supervisor's name (JOB-11).
func (j *core) mayControl(asker broker.Asker, entry job.Job) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return mayAct(asker, entry, j.answersToLocked(entry))
}

// mayAct is mayControl for a job whose supervisor is to.
func mayAct(asker broker.Asker, entry job.Job, caller job.Caller) error {
	switch {
	case asker.Owner, caller.IsJob && asker.Job == caller.Name:
		return nil
	case entry.PC == "" && !caller.IsJob && !asker.InJob && caller.ID != "" && asker.Same != nil && asker.Same(caller.ID):
		return nil
	}
	return bridge.Errorf(bridge.Denied, "%s works for %s: only %s or the owner can steer it", entry.Name, caller.Name, caller.Name)
}

// errInJob refuses operations that jobs and native children may not use. errInChild
// refuses those that only native children may not use.
var (
	errInJob   = bridge.Errorf(bridge.Denied, "a delegated job and a native child cannot do this: tell whoever you work for")
	errInChild = bridge.Errorf(bridge.Denied, "a native child cannot give or steer jobs: tell whoever you work for")
)

// Register registers the operations of jobs and of their runners.
func (j *supervision) Register(m *mux.Mux) {
	mux.Handle(m, api.OpRunnerHello, j.runners.hello)
	mux.Handle(m, api.OpRunnerReport, j.runners.report)
	mux.Handle(m, api.OpRunnerWait, j.runners.wait)
	mux.Handle(m, api.OpSpawn, j.spawn)
	mux.Handle(m, api.OpJobs, j.list)
	mux.Handle(m, api.OpJobResult, j.result)
	mux.Handle(m, api.OpJobMessage, j.message)
	mux.Handle(m, api.OpJobCancel, j.cancelJob)
	mux.Handle(m, api.OpJobProgress, j.progress)
	mux.Handle(m, api.OpHandOff, j.handOff)
	mux.Handle(m, api.OpJobSlots, j.setSlots)
	mux.Handle(m, api.OpJobFinish, j.finishJob)
	mux.Handle(m, api.OpModels, j.models)
	mux.Handle(m, api.OpUsage, j.usage)
	mux.Handle(m, api.OpRuns, j.runsOf)
	mux.Handle(m, api.OpRunLog, j.runLog)
}

// controlled returns a job that the caller may control.
func (j *supervision) controlled(ctx context.Context, conn *ipc.Conn, caller api.Caller, name string) (job.Job, error) {
	asker, err := j.opts.Broker.Asker(ctx, conn, caller)
	if err != nil {
		return job.Job{}, err
	}
	entry, err := j.find(name)
	if err != nil {
		return entry, err
	}
	if asker.InJob && asker.Job == "" {
		return entry, errInChild
	}
	return entry, j.mayControl(asker, entry)
}

// spawn records a job and returns immediately (JOB-01). If the same session repeats the
// name, spawn returns the same job.
func (j *supervision) spawn(ctx context.Context, conn *ipc.Conn, args api.SpawnArgs) (api.Spawned, error) {
	asker, err := j.opts.Broker.Asker(ctx, conn, args.Caller)
	if err != nil {
		return api.Spawned{}, err
	}
	if asker.InJob && asker.Job == "" {
		return api.Spawned{}, errInChild
	}
	if present, err := j.get(args.Name); err == nil && j.mayControl(asker, present) == nil {
		return j.spawned(present), nil
	}
	if err := j.checkName(args.Name); err != nil {
		return api.Spawned{}, err
	}
	kind, ask, isName := job.ParseName(args.Name)
	if !isName || kind != args.Kind {
		return api.Spawned{}, bridge.Errorf(bridge.Invalid, "%q is not the name of a job of %s", args.Name, args.Kind)
	}
	if err := j.allowed(); err != nil {
		return api.Spawned{}, err
	}
	request, err := job.ParseSpawn(args.Kind, ask, args.Args)
	if err != nil {
		return api.Spawned{}, err
	}
	if request.Host != "" {
		if asker.InJob {
			return api.Spawned{}, errInJob
		}
		return j.paired.Spawn(ctx, asker, request, args)
	}
	caller, err := j.place(asker, &request)
	if err != nil {
		return api.Spawned{}, err
	}
	entry, err := j.take(ctx, request, args.Name, caller, j.opts.Home.Worktrees())
	if err != nil {
		return api.Spawned{}, err
	}
	return j.spawned(entry), nil
}

// take records a job. If the job uses a worktree, its checkout goes below the folder worktrees.
func (j *supervision) take(ctx context.Context, request job.Request, name string, caller job.Caller, worktrees string) (entry job.Job, err error) {
	if j.opts.Agents != nil {
		if err := j.opts.Agents.Check(ctx, request); err != nil {
			return entry, err
		}
	}
	if err := j.checkFolder(request.Access, request.Cwd, caller.PC); err != nil {
		return entry, err
	}
	worktree, err := j.landings.Place(ctx, request, name, worktrees)
	if err != nil {
		return entry, err
	}
	err = j.change(func(r *job.Registry) (err error) {
		entry, err = r.Spawn(request, name, caller, j.opts.Now())
		if err == nil && worktree != nil {
			entry, err = r.Update(name, func(entry *job.Job) { entry.Worktree = worktree })
		}
		return err
	})
	if err == nil {
		j.notifyScheduler()
	}
	return entry, err
}

// place fills in the request's missing folder and returns the caller. If the caller is
// a job, its recorded folder counts, not the one that its session reports. A link that
// leads out of that folder counts as outside.
func (j *supervision) place(asker broker.Asker, request *job.Request) (job.Caller, error) {
	caller := job.Caller{Name: asker.Address.Name, ID: asker.Address.ID}
	if asker.Job == "" {
		request.Cwd = cmp.Or(request.Cwd, asker.Cwd)
		return caller, nil
	}
	parent, err := j.get(asker.Job)
	if err != nil {
		return caller, err
	}
	at := parent.Workdir
	if w := parent.Worktree; w != nil {
		at = cmp.Or(w.Cwd, w.Path, at)
	}
	request.Cwd = cmp.Or(request.Cwd, at)
	caller.Name, caller.IsJob = parent.Name, true
	folder, err := filepath.EvalSymlinks(request.Cwd)
	own, ownErr := filepath.EvalSymlinks(at)
	if err == nil && ownErr == nil {
		request.Cwd = folder
		inside, err := filepath.Rel(own, folder)
		caller.Inside = err == nil && filepath.IsLocal(inside)
	}
	return caller, nil
}

func (j *supervision) spawned(entry job.Job) api.Spawned {
	if entry.Mirror != nil {
		return j.paired.Spawned(entry)
	}
	answer := api.Spawned{Job: entry.Name, Title: entry.Title, Status: entry.State, Workdir: entry.Folder()}
	if entry.Worktree != nil {
		answer.Branch = entry.Worktree.Branch
	}
	return answer
}

// message sends a message to a job, changes the settings of its next turn, or answers
// its approval (JOB-05, JOB-07).
func (j *supervision) message(ctx context.Context, conn *ipc.Conn, args api.JobMessageArgs) (api.JobMessaged, error) {
	control, err := args.Args.Check()
	if err != nil {
		return api.JobMessaged{}, err
	}
	asker, err := j.opts.Broker.Asker(ctx, conn, args.Caller)
	if err != nil {
		return api.JobMessaged{}, err
	}
	if control.ApprovalID != "" { // it may be passed up to a supervisor who does not control the job
		if _, is := j.paired.Approval(control.ApprovalID); is {
			return j.paired.Decide(ctx, asker, control)
		}
		return j.decide(control, asker)
	}
	entry, err := j.controlled(ctx, conn, args.Caller, args.Args.Job)
	if err == nil {
		err = bridge.CheckID("the message's id", args.ID)
	}
	if err == nil {
		err = checkTurn(j, asker, entry, control)
	}
	if err != nil {
		return api.JobMessaged{}, err
	}
	control.By = asker.Address.Name
	return j.Say(args.ID, control)
}

// checkTurn refuses a turn that the job could not spawn now: see job.Registry.CheckTurn.
func checkTurn(j *supervision, asker broker.Asker, entry job.Job, control job.Control) error {
	if asker.Job == "" {
		return nil
	}
	caller, err := j.place(asker, &job.Request{Cwd: entry.Workdir})
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.book.CheckTurn(control, caller)
}

func (j *supervision) decide(control job.Control, asker broker.Asker) (api.JobMessaged, error) {
	j.mu.Lock()
	_, approval, err := j.approvals.approvalLocked(control.ApprovalID)
	j.mu.Unlock()
	if err == nil && approval.Job != control.Job {
		err = bridge.Errorf(bridge.NotFound, "%s has no approval %q", control.Job, control.ApprovalID)
	}
	if err != nil { // an unrelated caller learns no more than that
		if entry, has := j.find(control.Job); has == nil && j.mayControl(asker, entry) != nil {
			err = j.mayControl(asker, entry)
		}
	}
	switch {
	case err != nil:
	case control.Decision == job.PassUp:
		err = j.approvals.passUp(control.ApprovalID, asker, control.Reason)
	default:
		_, err = j.approvals.answer(control.ApprovalID, asker, control.Decision, control.Reason)
	}
	if err != nil {
		return api.JobMessaged{}, err
	}
	done := job.AnswerDone
	return api.JobMessaged{JobStatus: j.status(control.Job), Delivery: &done}, nil
}

// errUnsent reports that the supervisor does not durably have a run's result yet. A
// next run would replace that result.
var errUnsent = bridge.Errorf(bridge.Busy, "the job has just ended and its result is on its way: say it again in a moment")

// deliver sends a message and settings to a job that is not in the archive. If a message
// crosses the end of a run, it waits. The next run starts after the result is sent.
func (j *supervision) deliver(id string, control job.Control) (delivery job.Delivery, err error) {
	for range 3 {
		if delivery, err = j.deliverOnce(id, control); !errors.Is(err, errUnsent) {
			break
		}
	}
	return delivery, err
}

func (j *supervision) deliverOnce(id string, control job.Control) (delivery job.Delivery, err error) {
	entry, err := j.registered(control.Job)
	if err != nil {
		return "", err
	}
	if err := j.allowed(); err != nil && !entry.State.IsActive() {
		return "", err
	}
	if err := j.checkNext(entry, control); err != nil {
		return "", err
	}
	if err := j.runners.canHear(entry.Name); err != nil {
		return "", err
	}
	if err := j.results.sendFirst(entry.Name); err != nil {
		return "", err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.wasSaidLocked(control.Job, id) {
		return job.NoDelivery, nil
	}
	if delivery, err = j.recordMessageLocked(id, control); err != nil {
		return "", err
	}
	defer j.notifyScheduler()
	entry, _ = j.book.Get(control.Job)
	r := j.runs[control.Job]
	if r == nil || !entry.State.IsActive() {
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
	stop := entry.StoppedFor()
	if stop != "" && control.Message == job.GoOn {
		order = api.Order{ID: id, Kind: api.OrderGoOn}
	}
	j.deliveries.Note(id, jobfiles.Way{State: chat.Queued, At: j.opts.Now().UnixMilli()})
	if order.Kind == api.OrderMessage && (r.nextTurn || stop != "" && stop != job.ForSilence) {
		delivery = job.InLine // the agent receives it when its turn has ended or the run continues
	}
	return delivery, j.orderLocked(r, order)
}

// recordMessageLocked records a message or settings in the registry, with the message's
// author if it waits for the next run. It fails with the errors of [job.Registry.Message].
func (j *core) recordMessageLocked(id string, control job.Control) (delivery job.Delivery, err error) {
	err = j.changeLocked(func(book *job.Registry) (err error) {
		if present, _ := book.Get(control.Job); present.IsUnsent() {
			return errUnsent // the run has ended since
		}
		delivery, err = book.Message(control.Job, control.Message, control.Settings, j.opts.Now())
		if err == nil && delivery != job.ToRunning { // otherwise the run's orders record the id
			_, err = book.Update(control.Job, func(entry *job.Job) {
				if entry.NoteSaid(id); control.Message != "" {
					entry.QueuedAuthors = append(entry.QueuedAuthors, control.By)
				}
			})
		}
		return err
	})
	return delivery, err
}

// wasSaidLocked reports whether a job already received the message with this id, from
// any broker. A repeated message has no effect.
func (j *core) wasSaidLocked(name, id string) bool {
	entry, _ := j.book.Get(name)
	r := j.runs[name]
	return slices.Contains(entry.Said, id) || r != nil && slices.Contains(r.messageIDs, id)
}

// cancelJob cancels a job: immediately if it waits for a slot, otherwise through its runner.
func (j *supervision) cancelJob(ctx context.Context, conn *ipc.Conn, args api.JobArgs) (api.JobStatus, error) {
	entry, err := j.controlled(ctx, conn, args.Caller, args.Job)
	if err != nil {
		return api.JobStatus{}, err
	}
	return j.Cancel(entry.Name)
}

var cancelOrder = api.Order{ID: "cancel", Kind: api.OrderCancel}

// progress records a job's progress report from a process that has the job's secret.
func (j *supervision) progress(_ context.Context, conn *ipc.Conn, args api.JobProgressArgs) (api.Empty, error) {
	if inside := j.opts.Broker.JobOf(conn); inside != args.Job || j.Prove(args.Job, args.Token) != nil {
		return api.Empty{}, bridge.Errorf(bridge.Denied, "report_progress is for delegated jobs while they run")
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	at := j.opts.Now()
	j.noteLocked(args.Job, func(entry *job.Job) { entry.SetProgress(entry.Progress().With(args.Args, at)) })
	return api.Empty{}, nil
}

// MaySend fails with Denied if a job writes to anyone but its supervisor and the recipients in
// its send_to (JOB-12). It fails with NotFound for an unknown job.
func (j *supervision) MaySend(name, recipient string) error {
	entry, err := j.get(name)
	if err != nil {
		return err
	}
	above := j.answersTo(entry)
	if !job.MaySend(recipient, above.Name, entry.SendTo) {
		return bridge.Errorf(bridge.Denied, "%s may write to %s only, and to whom its send_to names; %q is not among them", name, above.Name, recipient)
	}
	return nil
}

// setSlots sets how many of the caller's jobs run at once; 0 only reads it (JOB-09).
func (j *supervision) setSlots(ctx context.Context, conn *ipc.Conn, args api.JobSlotsArgs) (api.JobSlots, error) {
	asker, err := j.opts.Broker.Asker(ctx, conn, args.Caller)
	if err != nil {
		return api.JobSlots{}, err
	}
	if asker.InJob {
		return api.JobSlots{}, errInJob
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if args.Limit != 0 {
		if err := j.book.SetSlots(asker.Address.ID, args.Limit); err != nil {
			return api.JobSlots{}, err
		}
		j.slots[asker.Address.ID] = args.Limit
		j.notifyScheduler()
	}
	var answer api.JobSlots
	answer.Limit, answer.Running, answer.Queued = j.book.Slots(asker.Address.ID)
	return answer, nil
}

func (j *supervision) status(name string) api.JobStatus {
	entry, _ := j.get(name)
	return api.JobStatus{Job: name, Status: entry.State}
}

// list returns the jobs of the calling session, or all jobs for the owner.
func (j *supervision) list(ctx context.Context, conn *ipc.Conn, caller api.Caller) (api.JobsResult, error) {
	asker, err := j.opts.Broker.Asker(ctx, conn, caller)
	if err != nil {
		return api.JobsResult{}, err
	}
	result := api.JobsResult{Jobs: []api.JobView{}}
	for _, view := range j.views.Views() {
		if entry, err := j.get(view.Job); err == nil && j.mayControl(asker, entry) == nil {
			result.Jobs = append(result.Jobs, view)
		}
	}
	return result, nil
}

// result returns the result of a job to its supervisor.
func (j *supervision) result(ctx context.Context, conn *ipc.Conn, args api.JobArgs) (api.JobResult, error) {
	entry, err := j.controlled(ctx, conn, args.Caller, args.Job)
	if err != nil {
		return api.JobResult{}, err
	}
	answer := api.JobResult{
		JobStatus: api.JobStatus{Job: entry.Name, Status: entry.State}, Ended: entry.State.IsEnded(), Sent: entry.ResultSent,
		Evidence: runs.Evidence{Files: []runs.Changed{}, Commands: []runs.Command{}},
	}
	if !answer.Ended || entry.Run == 0 {
		view := j.views.view(entry, j.published.Load().agents[entry.Name])
		answer.Wait, answer.Progress, answer.Step = view.Wait, view.Progress, view.Step
		return answer, nil
	}
	answer.Message = runs.ResultID(entry.Name, entry.Run)
	envelope, _, err := j.files.ReadEnvelope(entry.Name)
	if err != nil {
		answer.Error = err.Error()
		return answer, nil //nolint:nilerr // the answer says it
	}
	answer.Result, answer.Error, answer.Evidence = envelope.Result, envelope.Error, envelope.Evidence
	if size, err := envelope.EncodedBytes(); err == nil && size > bridge.MaxFrameBytes-64<<10 { // the result exceeds the frame limit
		answer.Result = envelope.Begin("an answer", j.files.Envelope(entry.Name))
	}
	return answer, nil
}
