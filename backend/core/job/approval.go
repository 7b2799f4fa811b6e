package job

import (
	"time"
	"unicode/utf8"

	"bridge/backend/core/bridge"
)

// ApprovalState is where a question of a job is (JOB-07).
type ApprovalState string

// The states, in their order. Only applied means that the agent did as it was told.
const (
	ApprovalAsked     ApprovalState = "asked"     // nobody has answered
	ApprovalAnswered  ApprovalState = "answered"  // decided here; the runner does not have it
	ApprovalDelivered ApprovalState = "delivered" // the runner has written it down and hands it on
	ApprovalApplied   ApprovalState = "applied"   // the step began, or the refusal reached the model
	ApprovalExpired   ApprovalState = "expired"   // nobody answered in time: denied
	ApprovalWithdrawn ApprovalState = "withdrawn" // the question is gone; whatever was decided did nothing
)

// Decision is the answer to an approval.
type Decision string

// The decisions.
const (
	Allow Decision = "allow"
	Deny  Decision = "deny"
	// PassUp is no answer: whoever is above the supervisor is asked (JOB-22).
	PassUp Decision = "pass_up"
)

// ParseDecision returns the decision of that name. The error names the choices.
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

	// BySystem answers what nobody is asked.
	BySystem = "bridge"
	// ByRule begins the name of whoever answered where that was a standing rule of the
	// owner's: its id follows (NED-04). No session and no job has such a name.
	ByRule = "rule:"
)

// Approval is a question of a job, as it stands in approvals/<id>.json. What others
// wrote into the file survives.
type Approval struct {
	ID         string        `json:"id"`
	Job        string        `json:"job"`
	Run        int           `json:"run,omitempty"`
	Session    string        `json:"session,omitempty"`
	Agent      string        `json:"agent,omitempty"`
	By         string        `json:"owner"` // the supervisor whom it is put to
	Kind       string        `json:"kind,omitempty"`
	What       string        `json:"tool,omitempty"`
	Detail     string        `json:"command,omitempty"` // exact, never cut
	Chars      int           `json:"detailLength,omitempty"`
	Cwd        string        `json:"cwd,omitempty"`
	Why        string        `json:"reason,omitempty"` // of the agent, as the field has it
	State      ApprovalState `json:"state,omitempty"`
	AskedAt    Millis        `json:"askedAt"`
	ExpiresAt  Millis        `json:"deadline"`
	AnsweredAt Millis        `json:"answeredAt,omitempty"`
	AnsweredBy string        `json:"answeredBy,omitempty"`
	Decision   Decision      `json:"decision,omitempty"`
	Reason     string        `json:"answerReason,omitempty"`
	PassedUp   []string      `json:"passedUp,omitempty"` // who had it before
	Remote     *Remote       `json:"remote,omitempty"`   // which job on a paired PC asks
	// LeavesSandbox says that the step may be done outside of the job's sandbox once it is
	// allowed: only the owner of this PC can allow it (SEC-03).
	LeavesSandbox bool `json:"leavesSandbox,omitempty"`

	// Of the permission prompt of an interactive session, whose Job is "" and whose
	// Session is its name: how it ended without an answer from here, why it cannot be
	// answered here, and what an answer does besides.
	Elsewhere Elsewhere `json:"elsewhere,omitempty"`
	OnlyTold  string    `json:"onlyTold,omitempty"`
	Caution   string    `json:"caution,omitempty"`
	// What its model asks in its own words, and what the owner chose, a list for each.
	Choices []bridge.Choice `json:"choices,omitempty"`
	Answers [][]string      `json:"answers,omitempty"`

	// Where the field's runner takes the answer. The token never leaves the file.
	PID   int    `json:"pid,omitempty"`
	Port  int    `json:"port,omitempty"`
	Token string `json:"token,omitempty"`

	rest members
}

// Elsewhere is how a prompt of an interactive session ended (package prompt).
type Elsewhere string

// OfSession reports whether an interactive session asks, and no job.
func (a *Approval) OfSession() bool { return a.Job == "" }

// NewApproval asks a question. What is too long to be shown whole is refused by
// itself, for nobody may be asked about a part.
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

// RefuseLong refuses what is too long to be shown to anybody whole.
func (a *Approval) RefuseLong(at time.Time) {
	a.State, a.AnsweredAt, a.AnsweredBy, a.Decision = ApprovalAnswered, MillisOf(at), BySystem, Deny
	a.Reason = "This request has more than 16,000 characters, which is too much to be shown to anybody. Ask for less at once."
	a.Detail, a.What = "", firstChars(a.What)
}

// firstChars is as much of what an agent says beside its question as is kept.
func firstChars(text string) string {
	if len(text) <= maxApprovalChars {
		return text
	}
	return string([]rune(text)[:min(maxApprovalChars, utf8.RuneCountInString(text))])
}

// Answer decides an open question; the first answer wins. The error is Conflict when
// it is not open any more, and the approval is as it was, but that it may have
// expired.
func (a *Approval) Answer(by string, decision Decision, reason string, at time.Time) error {
	if _, err := ParseDecision(string(decision)); err != nil {
		return err
	}
	if err := checkReason(reason); err != nil {
		return err
	}
	a.Expire(at)
	switch a.State {
	case ApprovalAsked:
		a.State, a.AnsweredAt, a.AnsweredBy, a.Decision, a.Reason = ApprovalAnswered, MillisOf(at), by, decision, reason
		return nil
	case ApprovalExpired:
		return bridge.Errorf(bridge.Conflict, "nobody answered in ten minutes: it was denied, and this answer did nothing")
	case ApprovalWithdrawn:
		return bridge.Errorf(bridge.Conflict, "the question is gone: this answer did nothing")
	default:
		return bridge.Errorf(bridge.Conflict, "it was answered already: %s by %s", a.Decision, a.AnsweredBy)
	}
}

// CheckDecision refuses what a supervisor that is itself a job may not decide: what it
// allowed would reach beyond its own access. It refuses, or passes up.
func CheckDecision(byJob bool, decision Decision) error {
	if byJob && decision == Allow {
		return bridge.Errorf(bridge.Denied, "a job cannot allow what another job asks: deny it, or pass it up")
	}
	return nil
}

// PassUp puts an open question to the supervisor's own supervisor, or to the owner.
// Its time goes on.
func (a *Approval) PassUp(to string, at time.Time) error {
	a.Expire(at)
	if a.State != ApprovalAsked {
		return bridge.Errorf(bridge.Conflict, "it is %s: there is nothing to be passed up", a.State)
	}
	if to == a.By || to == a.Job {
		return bridge.Errorf(bridge.Invalid, "%s has it already", to)
	}
	a.PassedUp, a.By = append(a.PassedUp, a.By), to
	return nil
}

// Expire denies a question that was not answered in ten minutes, and reports
// whether it did.
func (a *Approval) Expire(at time.Time) bool {
	if a.State != ApprovalAsked || a.OfSession() || MillisOf(at) < a.ExpiresAt {
		return false
	}
	a.State, a.AnsweredAt, a.AnsweredBy, a.Decision = ApprovalExpired, MillisOf(at), BySystem, Deny
	a.Reason = "Nobody answered in ten minutes, so it is denied."
	return true
}

// AskAgain takes an answer back that nobody has taken up: the question is open again,
// and its time goes on.
func (a *Approval) AskAgain() error {
	if err := a.move(ApprovalAsked, ApprovalAnswered); err != nil {
		return err
	}
	a.AnsweredAt, a.AnsweredBy, a.Decision, a.Reason = 0, "", "", ""
	return nil
}

// Deliver says that the runner has written the answer down. Again it is no error.
func (a *Approval) Deliver() error { return a.move(ApprovalDelivered, ApprovalAnswered) }

// Apply says that the agent did as it was told. Again it is no error.
func (a *Approval) Apply() error { return a.move(ApprovalApplied, ApprovalDelivered) }

// Withdraw says that the question is gone before the agent did as it was told: the
// agent took it back, or the runner is gone. Again it is no error; what expired has
// its answer and stays so.
func (a *Approval) Withdraw() error {
	return a.move(ApprovalWithdrawn, ApprovalAsked, ApprovalAnswered, ApprovalDelivered)
}

func (a *Approval) move(to ApprovalState, from ...ApprovalState) error {
	if a.State == to {
		return nil
	}
	for _, state := range from {
		if a.State == state {
			a.State = to
			return nil
		}
	}
	return bridge.Errorf(bridge.Conflict, "the approval is %s: it cannot be %s", a.State, to)
}

// Public is the approval without where its answer is taken.
func (a Approval) Public() Approval {
	a.PID, a.Port, a.Token = 0, 0, ""
	return a
}

// CheckAnswer refuses to have a step that may leave the sandbox allowed by anybody but the
// owner of this PC (SEC-03). It fails with Denied.
func (a Approval) CheckAnswer(isOwner bool, decision Decision) error {
	if a.LeavesSandbox && decision == Allow && !isOwner {
		return bridge.Errorf(bridge.Denied, "this step may leave the job's sandbox: only the owner of the PC that runs %s can allow it, on the page or with `bridge approve`", a.Job)
	}
	return nil
}

// IsSettled reports whether nothing more comes of it.
func (a *Approval) IsSettled() bool {
	return a.State == ApprovalApplied || a.State == ApprovalExpired || a.State == ApprovalWithdrawn
}

// IsOpen reports whether somebody still has to answer.
func (a *Approval) IsOpen(at time.Time) bool {
	return a.State == ApprovalAsked && (a.OfSession() || MillisOf(at) < a.ExpiresAt)
}
