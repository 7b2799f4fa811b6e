package api

import (
	"context"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
)

// RunnerHello is a runner's first request on each connection: the run it drives,
// the job's secret as proof, and the run's state. It binds the connection to the
// run. It fails with NotFound for an unknown job, with Unauthorized for a wrong
// token, and with Conflict for a run that is not the job's current one.
type RunnerHello struct {
	Job   string `json:"job"`
	Run   int    `json:"run"`
	Token string `json:"token"`
	// Report is the complete state of the run, even if a broker already received it.
	Report RunnerReport `json:"report"`
}

// RunnerReport holds the changes of a run. An omitted member is unchanged. Each
// report may arrive twice.
type RunnerReport struct {
	State *runs.StateFile `json:"state,omitempty"`
	// Approvals are the questions in approvals/<id>.json, which only the runner
	// writes while it runs.
	Approvals []job.Approval `json:"approvals,omitempty"`
	// Outcomes are the results of orders. The broker repeats an order until it has
	// the outcome.
	Outcomes []OrderOutcome `json:"outcomes,omitempty"`
	// Result reports that envelope.json is complete and durable.
	Result *RunnerResult `json:"result,omitempty"`
}

// RunnerResult identifies the result of a run; its content is in the job's
// envelope.json.
type RunnerResult struct {
	Run       int       `json:"run"`
	MessageID string    `json:"messageId"`
	State     job.State `json:"state"`
	Bytes     int64     `json:"bytes"` // of the file: above runs.MaxEnvelopeBytes a person must fetch it
}

// RunnerReported is the answer to a report.
type RunnerReported struct {
	// Taken means that the result of this run needs no runner any more: its message
	// is durable, or the run does not count. The runner then exits.
	Taken bool `json:"taken,omitempty"`
}

// RunnerOrders is the answer to a wait: all orders without an outcome, oldest
// first. The wait ends once there is one that this connection has not received yet.
type RunnerOrders struct {
	Orders []Order `json:"orders"`
}

// Order is an instruction to a run. Its id is permanent: a repeated order is
// executed only once.
type Order struct {
	ID   string    `json:"id"` // of a message: the message's own id
	Kind OrderKind `json:"kind"`

	Text string `json:"text,omitempty"` // of a message
	// For an answer: the approval, the decision, who decided and why. For a
	// passed-up approval: to whom and why.
	Approval string       `json:"approval,omitempty"`
	Decision job.Decision `json:"decision,omitempty"`
	By       string       `json:"by,omitempty"`
	Reason   string       `json:"reason,omitempty"` // also for a cancellation
	// For settings.
	Settings job.Settings `json:"settings,omitzero"`
}

// OrderKind is the kind of an order.
type OrderKind string

// The kinds of orders.
const (
	OrderMessage  OrderKind = "message"  // pass the text to the agent
	OrderAnswer   OrderKind = "answer"   // decide an approval
	OrderPassUp   OrderKind = "pass_up"  // a supervisor above is asked for an approval
	OrderGoOn     OrderKind = "go_on"    // continue after a stop, with the original limit again
	OrderCancel   OrderKind = "cancel"   // end the run
	OrderSettings OrderKind = "settings" // the title now, the rest with the next run
)

// OrderOutcome is the result of an order. Without an error it succeeded: the
// agent's CLI has the message, the answer is delivered (the approval records when
// it was applied), or the cancellation began. Conflict and NotFound mean no effect,
// as for a late answer. Unavailable means that the agent has ended, so a message is
// for the next run. Internal means that the arrival is unknown: no component
// repeats it automatically.
type OrderOutcome struct {
	ID    string        `json:"id"`
	Error *bridge.Error `json:"error,omitempty"`
}

// RunnerCalls holds the operations of a job's runner.
type RunnerCalls struct{ link Link }

// RunnerHello binds the connection to a run. It fails with NotFound for an unknown job, with
// Unauthorized for a wrong token, with Conflict for another run, and with Denied if another
// process runs the job. The type [RunnerHello] has the details.
func (c RunnerCalls) RunnerHello(ctx context.Context, args RunnerHello) (RunnerReported, error) {
	return OpRunnerHello.Call(ctx, c.link, args)
}

// RunnerReport reports changes of the run. It fails with Denied before RunnerHello, and with
// Storage if the result cannot be recorded.
func (c RunnerCalls) RunnerReport(ctx context.Context, args RunnerReport) (RunnerReported, error) {
	return OpRunnerReport.Call(ctx, c.link, args)
}

// RunnerWait waits for orders. It fails with Denied before RunnerHello, with Conflict if the
// run has a newer connection, and with Unavailable if the broker ends.
func (c RunnerCalls) RunnerWait(ctx context.Context) (RunnerOrders, error) {
	return OpRunnerWait.Call(ctx, c.link, Empty{})
}
