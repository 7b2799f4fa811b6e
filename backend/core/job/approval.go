package job

import (
	"time"
	"unicode/utf8"

	"bridge/backend/core/bridge"
)

// ApprovalState is the state of a job's question (JOB-07).
type ApprovalState string

// The states, in order. Only applied means that the agent obeyed the answer.
const (
	ApprovalAsked     ApprovalState = "asked"     // no answer yet
	ApprovalAnswered  ApprovalState = "answered"  // decided here; the runner does not have it
	ApprovalDelivered ApprovalState = "delivered" // the runner has recorded it and delivers it
	ApprovalApplied   ApprovalState = "applied"   // the step began, or the refusal reached the model
	ApprovalExpired   ApprovalState = "expired"   // no answer in time: denied
	ApprovalWithdrawn ApprovalState = "withdrawn" // the question is gone; its answer had no effect
)

// Decision is the answer to an approval.
type Decision string

// The decisions.
const (
	Allow Decision = "allow"
	Deny  Decision = "deny"
	// PassUp forwards the question to the next supervisor above (JOB-22).
	PassUp Decision = "pass_up"
)

// ParseDecision returns the decision of that name. It fails with Invalid for any other
// name, and lists the choices.
func ParseDecision(raw string) (Decision, error) {
	if decision := Decision(raw); decision == Allow || decision == Deny {
		return decision, nil
	}
	return "", bridge.Errorf(bridge.Invalid, "unknown decision %q: use allow or deny", raw)
}

func checkReason(reason string) error {
	if reason == "" {
		return nil
	}
	return bridge.CheckText("reason", reason, MaxReasonChars)
}

const (
	approvalLife     = 10 * time.Minute
	maxApprovalChars = 16_000

	// BySystem is the answerer of questions that Bridge answers itself.
	BySystem = "bridge"
	// ByRule is the prefix of the answerer's name for a standing rule of the owner; the
	// rule's id follows (NED-04). No session or job has such a name.
	ByRule = "rule:"
)

// Approval is a question of a job, as in approvals/<id>.json. Members of other programs
// in the file are kept.
type Approval struct {
	ID         string        `json:"id"`
	Job        string        `json:"job"`
	Run        int           `json:"run,omitempty"`
	Session    string        `json:"session,omitempty"`
	Agent      string        `json:"agent,omitempty"`
	By         string        `json:"owner"` // the supervisor who may answer
	Kind       string        `json:"kind,omitempty"`
	What       string        `json:"tool,omitempty"`
	Detail     string        `json:"command,omitempty"` // exact, never cut
	Chars      int           `json:"detailLength,omitempty"`
	Cwd        string        `json:"cwd,omitempty"`
	Why        string        `json:"reason,omitempty"` // from the agent, under the field's name
	State      ApprovalState `json:"state,omitempty"`
	AskedAt    Millis        `json:"askedAt"`
	ExpiresAt  Millis        `json:"deadline"`
	AnsweredAt Millis        `json:"answeredAt,omitempty"`
	AnsweredBy string        `json:"answeredBy,omitempty"`
	Decision   Decision      `json:"decision,omitempty"`
	Reason     string        `json:"answerReason,omitempty"`
	PassedUp   []string      `json:"passedUp,omitempty"` // earlier recipients
	Remote     *Remote       `json:"remote,omitempty"`   // the job on a paired PC that asks
	// LeavesSandbox reports that an allowed step may run outside the job's sandbox:
	// only the owner of this PC can allow it (SEC-03).
	LeavesSandbox bool `json:"leavesSandbox,omitempty"`

	// These fields are for a prompt of an interactive session (Job is "", Session its
	// name). They are how it ended without our answer, why it cannot be answered here,
	// and the side effects of an answer.
	Elsewhere Elsewhere `json:"elsewhere,omitempty"`
	OnlyTold  string    `json:"onlyTold,omitempty"`
	Caution   string    `json:"caution,omitempty"`
	// These are the model's own questions and the owner's answers, a list for each.
	Choices []bridge.Choice `json:"choices,omitempty"`
	Answers [][]string      `json:"answers,omitempty"`

	// This is where the field's runner receives the answer. The token stays in the file.
	PID   int    `json:"pid,omitempty"`
	Port  int    `json:"port,omitempty"`
	Token string `json:"token,omitempty"`

	rest members
}

// Elsewhere is how a prompt of an interactive session ended (package prompt).
type Elsewhere string

// OfSession reports whether an interactive session asks, not a job.
func (a *Approval) OfSession() bool { return a.Job == "" }

// NewApproval creates a question. It denies a question that is too long to show
// completely, because a partial one may not be asked.
func NewApproval(a Approval, at time.Time) Approval {
	a.State, a.AskedAt, a.ExpiresAt = ApprovalAsked, MillisOf(at), MillisOf(at.Add(approvalLife))
	a.AnsweredAt, a.AnsweredBy, a.Decision, a.Reason = 0, "", "", ""
	a.Chars = utf8.RuneCountInString(a.Detail)
	if total := a.Chars + utf8.RuneCountInString(a.What); total > maxApprovalChars {
		a.RefuseLong(at)
	}
	a.Cwd, a.Why = firstChars(a.Cwd), firstChars(a.Why)
	return a
}

// RefuseLong denies a question that is too long to show completely.
func (a *Approval) RefuseLong(at time.Time) {
	a.State, a.AnsweredAt, a.AnsweredBy, a.Decision = ApprovalAnswered, MillisOf(at), BySystem, Deny
	a.Reason = "This request has more than 16,000 characters, which is too much to be shown to anybody. Ask for less at once."
	a.Detail, a.What = "", firstChars(a.What)
}

// firstChars returns the kept part of an agent's additional text.
func firstChars(text string) string {
	if len(text) <= maxApprovalChars {
		return text
	}
	return string([]rune(text)[:min(maxApprovalChars, utf8.RuneCountInString(text))])
}

// Answer decides an open question; the first answer wins. It fails with Conflict if the
// question is not open. Then the approval is unchanged, unless it has expired. An
// invalid decision or reason is an error too.
func (a *Approval) Answer(answerer string, decision Decision, reason string, at time.Time) error {
	if _, err := ParseDecision(string(decision)); err != nil {
		return err
	}
	if err := checkReason(reason); err != nil {
		return err
	}
	a.Expire(at)
	switch a.State {
	case ApprovalAsked:
		a.State, a.AnsweredAt, a.AnsweredBy, a.Decision, a.Reason = ApprovalAnswered, MillisOf(at), answerer, decision, reason
		return nil
	case ApprovalExpired:
		return bridge.Errorf(bridge.Conflict, "nobody answered in ten minutes: it was denied, and this answer did nothing")
	case ApprovalWithdrawn:
		return bridge.Errorf(bridge.Conflict, "the question is gone: this answer did nothing")
	default:
		return bridge.Errorf(bridge.Conflict, "it was answered already: %s by %s", a.Decision, a.AnsweredBy)
	}
}

// CheckDecision fails with Denied if a job as supervisor allows a step, because that
// could exceed its own access. It may deny or pass up.
func CheckDecision(byJob bool, decision Decision) error {
	if byJob && decision == Allow {
		return bridge.Errorf(bridge.Denied, "a job cannot allow what another job asks: deny it, or pass it up")
	}
	return nil
}

// PassUp forwards an open question to the next supervisor or the owner. Its deadline
// stays. It fails with Conflict if the question is not open, and with Invalid if the recipient
// has it already.
func (a *Approval) PassUp(recipient string, at time.Time) error {
	a.Expire(at)
	if a.State != ApprovalAsked {
		return bridge.Errorf(bridge.Conflict, "it is %s: there is nothing to be passed up", a.State)
	}
	if recipient == a.By || recipient == a.Job {
		return bridge.Errorf(bridge.Invalid, "%s has it already", recipient)
	}
	a.PassedUp, a.By = append(a.PassedUp, a.By), recipient
	return nil
}

// Expire denies a question that is past its ten minutes, and reports whether it did.
func (a *Approval) Expire(at time.Time) bool {
	if a.State != ApprovalAsked || a.OfSession() || MillisOf(at) < a.ExpiresAt {
		return false
	}
	a.State, a.AnsweredAt, a.AnsweredBy, a.Decision = ApprovalExpired, MillisOf(at), BySystem, Deny
	a.Reason = "Nobody answered in ten minutes, so it is denied."
	return true
}

// AskAgain revokes an answer that no runner has received. The question is open again,
// and its deadline stays. It fails with Conflict in any other state.
func (a *Approval) AskAgain() error {
	if err := a.move(ApprovalAsked, ApprovalAnswered); err != nil {
		return err
	}
	a.AnsweredAt, a.AnsweredBy, a.Decision, a.Reason = 0, "", "", ""
	return nil
}

// Deliver records that the runner has recorded the answer. A repeat is no error. It
// fails with Conflict unless the question was answered.
func (a *Approval) Deliver() error { return a.move(ApprovalDelivered, ApprovalAnswered) }

// Apply records that the agent obeyed the answer. A repeat is no error. It fails with
// Conflict unless the answer was delivered.
func (a *Approval) Apply() error { return a.move(ApprovalApplied, ApprovalDelivered) }

// Withdraw records that the question is gone before the agent obeyed: the agent
// withdrew it, or the runner is gone. A repeat is no error. It fails with Conflict if
// the answer was applied or the question has expired.
func (a *Approval) Withdraw() error {
	return a.move(ApprovalWithdrawn, ApprovalAsked, ApprovalAnswered, ApprovalDelivered)
}

func (a *Approval) move(approvalState ApprovalState, from ...ApprovalState) error {
	if a.State == approvalState {
		return nil
	}
	for _, state := range from {
		if a.State == state {
			a.State = approvalState
			return nil
		}
	}
	return bridge.Errorf(bridge.Conflict, "the approval is %s: it cannot be %s", a.State, approvalState)
}

// Public returns the approval without the fields of its answer's address.
func (a Approval) Public() Approval {
	a.PID, a.Port, a.Token = 0, 0, ""
	return a
}

// CheckAnswer fails with Denied if anyone but the owner of this PC allows a step that
// may leave the sandbox (SEC-03).
func (a Approval) CheckAnswer(isOwner bool, decision Decision) error {
	if a.LeavesSandbox && decision == Allow && !isOwner {
		return bridge.Errorf(bridge.Denied, "this step may leave the job's sandbox: only the owner of the PC that runs %s can allow it, on the page or with `bridge approve`", a.Job)
	}
	return nil
}

// IsSettled reports whether the state is final.
func (a *Approval) IsSettled() bool {
	return a.State == ApprovalApplied || a.State == ApprovalExpired || a.State == ApprovalWithdrawn
}

// IsOpen reports whether the question still needs an answer.
func (a *Approval) IsOpen(at time.Time) bool {
	return a.State == ApprovalAsked && (a.OfSession() || MillisOf(at) < a.ExpiresAt)
}
