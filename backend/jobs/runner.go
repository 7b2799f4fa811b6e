package jobs

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/jobs/jobfiles"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/orphans"
)

// runners is the part that handles runners' reports and orders.
type runners struct{ *core }

// hello binds a connection to the run that its runner drives. If a broker died, the
// runner reconnects this way with a full report.
func (j *runners) hello(ctx context.Context, conn *ipc.Conn, args api.RunnerHello) (api.RunnerReported, error) {
	entry, err := j.get(args.Job)
	if err != nil {
		return api.RunnerReported{}, err
	}
	r, err := j.bind(conn, args)
	if err != nil {
		return api.RunnerReported{}, err
	}
	if r == nil { // its records are closed: nothing waits for it
		return api.RunnerReported{Taken: true}, nil
	}
	if pid := conn.PeerPID(); pid > 0 && (entry.Host == nil || entry.Host.PID != pid) {
		j.mu.Lock()
		j.noteLocked(entry.Name, func(present *job.Job) {
			j.setHost(present, pid, identityOf(pid))
			j.recordProcessesLocked(r, present.Host)
		})
		j.mu.Unlock()
	}
	return j.take(ctx, r, args.Report)
}

// bind refuses a connection that is not from the runner of that run. It returns nil if
// the result is already sent, or another run began since.
func (j *runners) bind(conn *ipc.Conn, args api.RunnerHello) (*run, error) {
	spec, err := j.files.ReadSpec(args.Job)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, bridge.WithCause(bridge.NotFound, err, "there is no spec of "+args.Job)
	}
	if err != nil { // the runner retries
		return nil, bridge.WithCause(bridge.Storage, err, "the spec of "+args.Job+" cannot be read: "+disk.Reason(err))
	}
	if spec.Token != args.Token {
		return nil, bridge.Errorf(bridge.Unauthorized, "that is not the secret of %s", args.Job)
	}
	if args.Run != spec.Run {
		return nil, bridge.Errorf(bridge.Conflict, "%s is at its run %d, not at %d", args.Job, spec.Run, args.Run)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if entry, _ := j.book.Get(args.Job); entry.Host != nil && conn.PeerPID() > 0 && entry.Host.PID != conn.PeerPID() && orphans.Runs(job.Process{PID: entry.Host.PID, Identity: entry.Host.Identity}) {
		return nil, bridge.Errorf(bridge.Denied, "%s is driven by process %d: no other speaks for it", args.Job, entry.Host.PID)
	}
	r := j.runs[args.Job]
	if r == nil || r.number != args.Run {
		return nil, nil //nolint:nilnil // there is no run, and that is no error
	}
	r.conn, r.sentHere = conn, map[string]bool{}
	if r.token != spec.Token { // its spec could not be read when this broker started
		r.token = spec.Token
		entry, _ := j.book.Get(args.Job)
		j.recordProcessesLocked(r, entry.Host)
	}
	j.bound[conn] = r
	r.notify()
	return r, nil
}

// Disconnected removes the connection of a runner. Its job continues.
func (j *runners) Disconnected(conn *ipc.Conn) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.bound[conn]
	delete(j.bound, conn)
	if r != nil && r.conn == conn {
		r.conn = nil
	}
}

func (j *runners) runOf(conn *ipc.Conn) (*run, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.bound[conn]
	if r == nil {
		return nil, bridge.Errorf(bridge.Denied, "say first which run this is")
	}
	return r, nil
}

// report records the news of a run.
func (j *runners) report(ctx context.Context, conn *ipc.Conn, args api.RunnerReport) (api.RunnerReported, error) {
	r, err := j.runOf(conn)
	if err != nil {
		return api.RunnerReported{}, err
	}
	return j.take(ctx, r, args)
}

// take makes the parts of a report durable that must survive.
func (j *runners) take(ctx context.Context, r *run, report api.RunnerReport) (api.RunnerReported, error) {
	j.mu.Lock()
	err := j.handleReportLocked(r, report)
	j.approvals.askLocked(r, report.Approvals)
	j.mu.Unlock()
	if err != nil {
		return api.RunnerReported{}, err
	}
	j.logged("ask about an approval", j.approvals.put(ctx))
	if report.Result == nil || report.Result.Run != r.number {
		return api.RunnerReported{}, nil
	}
	if err := j.results.finish(r.job, r.number); err != nil {
		return api.RunnerReported{}, err
	}
	return api.RunnerReported{Taken: true}, nil
}

func (j *runners) handleReportLocked(r *run, report api.RunnerReport) error {
	if err := j.settleLocked(r, report.Outcomes); err != nil {
		return err
	}
	if report.State == nil || report.State.Run != r.number {
		return nil
	}
	return j.stateLocked(r, *report.State)
}

// settleLocked removes the orders that have an outcome. It keeps a message that the run
// could not receive for the next run. If the orders cannot be read, the outcomes wait.
func (j *runners) settleLocked(r *run, outcomes []api.OrderOutcome) error {
	if len(outcomes) > 0 && j.mendLocked(r) != nil {
		r.unheard = append(r.unheard, outcomes...)
		return nil //nolint:nilerr // documented
	}
	orders, late := r.orders, r.forNextRun
	for _, outcome := range outcomes {
		at := slices.IndexFunc(r.orders, func(o api.Order) bool { return o.ID == outcome.ID })
		if at < 0 {
			continue
		}
		order := r.orders[at]
		if outcome.Error != nil {
			j.opts.Log.Info("a job's runner could not do as it was told", "job", r.job, "order", order.Kind, "err", outcome.Error.Message)
			if order.Kind == api.OrderMessage && outcome.Error.Code == bridge.Unavailable {
				r.forNextRun = append(slices.Clone(r.forNextRun), order.Text)
			}
		}
		r.orders = slices.Delete(slices.Clone(r.orders), at, at+1)
		j.settled(order, outcome)
	}
	if len(r.orders) == len(orders) {
		return nil
	}
	if err := j.saveLocked(r); err != nil {
		r.orders, r.forNextRun = orders, late
		return err
	}
	return nil
}

// stateLocked records the state of a run. It saves the data that a restart needs
// immediately, the rest later.
func (j *runners) stateLocked(r *run, state runs.StateFile) error {
	r.step, r.model, r.nextTurn = state.Step, cmp.Or(state.Model, r.model), state.NextTurn
	entry, has := j.book.Get(r.job)
	if !slices.Equal(r.agents, state.Processes) {
		r.agents = slices.Clone(state.Processes)
		j.recordProcessesLocked(r, entry.Host)
	}
	if !has || entry.Run != r.number || !entry.State.IsActive() {
		return nil
	}
	update := func(present *job.Job) {
		present.SessionID, present.Layer = cmp.Or(state.Session, present.SessionID), cmp.Or(string(state.Layer), present.Layer)
		// A requested setting counts from the next turn on, whatever this turn has (JOB-05).
		present.Model, present.Title = cmp.Or(present.Model, state.Model), cmp.Or(present.Title, state.Title)
		jobfiles.NoteWorktree(present, state.Worktree)
		present.Tokens, present.CostUSD = max(state.Tokens, present.Tokens), max(state.CostUSD, present.CostUSD)
	}
	moves := state.State == job.Running && entry.State != job.Running || state.State == job.Waiting && !sameWait(entry.Wait, state.Wait)
	placed := jobfiles.NoteWorktree(&entry, state.Worktree)
	if !moves && !placed && cmp.Or(state.Session, entry.SessionID) == entry.SessionID {
		j.noteLocked(r.job, update)
		return nil
	}
	return j.changeLocked(func(book *job.Registry) error {
		if _, err := book.Update(r.job, update); err != nil || !moves {
			return err
		}
		transition := job.Work(r.number)
		if state.State == job.Waiting && state.Wait != nil {
			transition = job.Pause(r.number, *state.Wait)
		}
		_, err := book.Apply(r.job, transition)
		return err
	})
}

func sameWait(a, b *job.Wait) bool { return a == b || a != nil && b != nil && *a == *b }

// wait returns a runner's orders without an outcome. It blocks until one is new to this
// connection.
func (j *runners) wait(ctx context.Context, conn *ipc.Conn, _ api.Empty) (api.RunnerOrders, error) {
	r, err := j.runOf(conn)
	if err != nil {
		return api.RunnerOrders{}, err
	}
	for {
		j.mu.Lock()
		orders, more := slices.Clone(r.orders), r.more
		hasNew := slices.ContainsFunc(orders, func(o api.Order) bool { return !r.sentHere[o.ID] })
		if r.conn != conn {
			j.mu.Unlock()
			return api.RunnerOrders{}, bridge.Errorf(bridge.Conflict, "%s has another connection by now", r.job)
		}
		for _, order := range orders {
			r.sentHere[order.ID], r.sent[order.ID] = true, true
		}
		j.mu.Unlock()
		if hasNew {
			return api.RunnerOrders{Orders: orders}, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return api.RunnerOrders{}, ctx.Err()
		case <-j.tasks.Done():
			return api.RunnerOrders{}, bridge.Errorf(bridge.Unavailable, "this broker is ending")
		}
	}
}
