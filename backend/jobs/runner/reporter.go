package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/lifecycle"
)

// Broker is a runner's connection to the broker.
type Broker interface {
	// RunnerHello identifies the run; it is the first call on each connection.
	RunnerHello(ctx context.Context, hello api.RunnerHello) (api.RunnerReported, error)
	// RunnerReport reports the news.
	RunnerReport(ctx context.Context, report api.RunnerReport) (api.RunnerReported, error)
	// RunnerWait waits for orders.
	RunnerWait(ctx context.Context) (api.RunnerOrders, error)
}

// Link returns a Broker over the local link, for Options.Broker. The function that it returns
// fails if no broker can be reached.
func Link(reconnector *ipc.Reconnector) func(context.Context) (Broker, error) {
	return func(ctx context.Context) (Broker, error) {
		client, err := reconnector.Client(ctx)
		if err != nil {
			return nil, err
		}
		return client, nil
	}
}

// reporter reports news to the current broker and receives its orders. It waits for
// brokers, so that the rest of the run does not block.
type reporter struct {
	connect  func(context.Context) (Broker, error)
	hello    api.RunnerHello
	orders   chan api.Order
	accepted chan struct{}    // closed when the result is taken or unwanted
	wake     lifecycle.Signal // there is news
	done     sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	state    *runs.StateFile
	open     map[string]job.Approval // they may still change
	news     map[string]job.Approval // not yet reported to the broker
	outcomes []api.OrderOutcome      // not yet reported to the broker
	result   *api.RunnerResult
	over     bool // taken is closed
}

func newReporter(connect func(context.Context) (Broker, error), spec runs.SpecFile) *reporter {
	return &reporter{
		connect: connect, hello: api.RunnerHello{Job: spec.Job, Run: spec.Run, Token: spec.Token},
		orders: make(chan api.Order), accepted: make(chan struct{}), wake: lifecycle.NewSignal(),
		open: map[string]job.Approval{}, news: map[string]job.Approval{},
	}
}

// The pauses between two connection attempts.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 4 * time.Second
)

// start begins to report, until ctx ends.
func (r *reporter) start(ctx context.Context, state runs.StateFile) {
	r.setState(state)
	r.done.Go(func() {
		pause := firstPause
		for ctx.Err() == nil {
			broker, err := r.connect(ctx)
			if err == nil {
				began := time.Now() //nolint:forbidigo // an interval, not a time that is kept
				if err = r.serve(ctx, broker); time.Since(began) > lastPause {
					pause = firstPause // the connection lasted for a while: the next broker is probably near
				}
			}
			if errors.Is(err, errUnwanted) {
				r.leave()
				return
			}
			ipc.Pause(ctx, pause)
			pause = min(2*pause, lastPause)
		}
	})
}

// errUnwanted reports that the broker does not want this run.
var errUnwanted = errors.New("no caller waits for this run")

// isRefusal reports whether an error of the hello means errUnwanted.
func isRefusal(err error) bool {
	switch bridge.CodeOf(err) {
	case bridge.NotFound, bridge.Unauthorized, bridge.Conflict:
		return true
	default:
		return false
	}
}

func (r *reporter) wait() { r.done.Wait() }

// serve reports everything on a new connection, then the news, until the connection ends.
func (r *reporter) serve(ctx context.Context, broker Broker) error {
	hello := r.hello
	hello.Report = r.report(true)
	reported, err := broker.RunnerHello(ctx, hello)
	if isRefusal(err) {
		return fmt.Errorf("%w: %w", errUnwanted, err)
	}
	if err != nil {
		return err
	}
	r.reported(hello.Report, reported)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel(nil)
	waiting.Go(func() { cancel(r.fetch(ctx, broker)) })
	for {
		select {
		case <-r.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		report := r.report(false)
		reported, err := broker.RunnerReport(ctx, report)
		if err != nil {
			return err
		}
		r.reported(report, reported)
	}
}

// fetch receives orders until the connection ends.
func (r *reporter) fetch(ctx context.Context, broker Broker) error {
	for {
		orders, err := broker.RunnerWait(ctx)
		if err != nil {
			return err
		}
		for _, order := range orders.Orders {
			select {
			case r.orders <- order:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// report returns a report with everything, or with the news only.
func (r *reporter) report(all bool) api.RunnerReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	state := *r.state
	report := api.RunnerReport{State: &state, Outcomes: r.outcomes[:len(r.outcomes):len(r.outcomes)], Result: r.result}
	for id, approval := range r.open {
		if _, isNew := r.news[id]; all && !isNew {
			report.Approvals = append(report.Approvals, approval)
		}
	}
	for _, approval := range r.news {
		report.Approvals = append(report.Approvals, approval)
	}
	return report
}

// reported removes the news that the broker has received.
func (r *reporter) reported(report api.RunnerReport, reported api.RunnerReported) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcomes = r.outcomes[len(report.Outcomes):]
	for _, approval := range report.Approvals {
		if r.news[approval.ID].State == approval.State {
			delete(r.news, approval.ID)
		}
	}
	if reported.Taken && report.Result != nil {
		r.leaveLocked()
	}
}

func (r *reporter) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leaveLocked()
}

func (r *reporter) leaveLocked() {
	if !r.over {
		r.over = true
		close(r.accepted)
	}
}

func (r *reporter) setState(state runs.StateFile) { r.change(func() { r.state = &state }) }

func (r *reporter) outcome(outcome api.OrderOutcome) {
	r.change(func() { r.outcomes = append(r.outcomes, outcome) })
}

func (r *reporter) finish(result *api.RunnerResult) { r.change(func() { r.result = result }) }

// approval reports the state of a question.
func (r *reporter) approval(approval job.Approval) {
	r.change(func() {
		r.news[approval.ID] = approval
		switch approval.State {
		case job.ApprovalApplied, job.ApprovalExpired, job.ApprovalWithdrawn:
			delete(r.open, approval.ID)
		case job.ApprovalAsked, job.ApprovalAnswered, job.ApprovalDelivered:
			r.open[approval.ID] = approval
		}
	})
}

func (r *reporter) change(change func()) {
	r.mu.Lock()
	change()
	r.mu.Unlock()
	r.wake.Notify()
}
