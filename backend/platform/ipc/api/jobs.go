package api

import (
	"context"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
)

// RunnerHello is a runner's first word on each connection: which run it drives, the
// job's secret as proof, and where it is. It binds the connection to the run. The
// codes of a refusal: NotFound for a job that nobody knows, Unauthorized for another
// token, Conflict for a run that is not the job's present one.
type RunnerHello struct {
	Job   string `json:"job"`
	Run   int    `json:"run"`
	Token string `json:"token"`
	// Report is all that the run has to tell, whoever heard it before.
	Report RunnerReport `json:"report"`
}

// RunnerReport is what is new of a run. What is left out is as it was. Each may come
// twice.
type RunnerReport struct {
	State *runs.StateFile `json:"state,omitempty"`
	// Approvals are questions as they stand in approvals/<id>.json, which the runner
	// alone writes while it lives.
	Approvals []job.Approval `json:"approvals,omitempty"`
	// Outcomes say what became of orders. The broker gives those again that it has
	// no outcome of.
	Outcomes []OrderOutcome `json:"outcomes,omitempty"`
	// Result says that envelope.json is complete and durable.
	Result *RunnerResult `json:"result,omitempty"`
}

// RunnerResult names the result of a run; what it says stands in the job's
// envelope.json.
type RunnerResult struct {
	Run       int       `json:"run"`
	MessageID string    `json:"messageId"`
	State     job.State `json:"state"`
	Bytes     int64     `json:"bytes"` // of the file: over runs.MaxEnvelopeBytes it is a person's to fetch
}

// RunnerReported answers a report.
type RunnerReported struct {
	// Taken says that the result of this run needs no runner any more: its message is
	// durable, or the run does not count. The runner leaves then.
	Taken bool `json:"taken,omitempty"`
}

// RunnerOrders answers a wait: all orders that the broker has no outcome of, oldest
// first, as soon as there is one that this connection was not given yet.
type RunnerOrders struct {
	Orders []Order `json:"orders"`
}

// Order is something that a run is to do. Its id names it for good: an order that
// comes twice is carried out once.
type Order struct {
	ID   string    `json:"id"` // of a message: the message's own
	Kind OrderKind `json:"kind"`

	Text string `json:"text,omitempty"` // of a message
	// Of an answer: which approval, what was decided, by whom and why; where it is
	// passed up, to whom and why.
	Approval string       `json:"approval,omitempty"`
	Decision job.Decision `json:"decision,omitempty"`
	By       string       `json:"by,omitempty"`
	Reason   string       `json:"reason,omitempty"` // also of a cancellation
	// Of settings.
	Settings job.Settings `json:"settings,omitzero"`
}

// OrderKind tells what an order asks for.
type OrderKind string

// The kinds of orders.
const (
	OrderMessage  OrderKind = "message"  // hand the text to the agent
	OrderAnswer   OrderKind = "answer"   // decide an approval
	OrderPassUp   OrderKind = "pass_up"  // somebody above is asked an approval
	OrderGoOn     OrderKind = "go_on"    // go on after a stop: as much again as was given
	OrderCancel   OrderKind = "cancel"   // end the run
	OrderSettings OrderKind = "settings" // the title at once, the rest with the next run
)

// OrderOutcome is what became of an order. Without an error it is done: a message is
// with the agent's CLI, an answer is delivered (the approval says when it was
// applied), a cancellation began. Conflict and NotFound mean that it did nothing, as
// for an answer that came too late; Unavailable that the agent has ended, so that a
// message is one for the next run; Internal that it is not known whether a message
// or answer arrived: nobody repeats it by himself.
type OrderOutcome struct {
	ID    string        `json:"id"`
	Error *bridge.Error `json:"error,omitempty"`
}

// RunnerCalls are the operations of a job's runner.
type RunnerCalls struct{ link Link }

// RunnerHello binds the connection to a run.
func (c RunnerCalls) RunnerHello(ctx context.Context, args RunnerHello) (RunnerReported, error) {
	return OpRunnerHello.Call(ctx, c.link, args)
}

// RunnerReport tells what is new.
func (c RunnerCalls) RunnerReport(ctx context.Context, args RunnerReport) (RunnerReported, error) {
	return OpRunnerReport.Call(ctx, c.link, args)
}

// RunnerWait waits for orders.
func (c RunnerCalls) RunnerWait(ctx context.Context) (RunnerOrders, error) {
	return OpRunnerWait.Call(ctx, c.link, Empty{})
}
