package job

import (
	"strings"

	"bridge/backend/core/bridge"
)

// MessageArgs are the arguments of message_subagent.
type MessageArgs struct {
	Job        string `json:"job"`
	Message    string `json:"message,omitempty"`
	Title      string `json:"title,omitempty"`
	Model      string `json:"model,omitempty"`
	Effort     string `json:"effort,omitempty"`
	Access     string `json:"access,omitempty"`
	ApprovalID string `json:"approval_id,omitempty"`
	Decision   string `json:"decision,omitempty"`
	Reason     string `json:"reason,omitempty"`
}

// Settings are the settings that may change for a job's next turn; "" keeps the value.
type Settings struct {
	Title  string `json:"title,omitempty"`
	Model  string `json:"model,omitempty"`
	Effort string `json:"effort,omitempty"`
	Access Access `json:"access,omitempty"`
}

// Control is a request of message_subagent: an answer to an approval, or a message, or
// settings, or a message with settings.
type Control struct {
	Job        string
	Message    string
	Settings   Settings
	ApprovalID string
	Decision   Decision
	Reason     string
	By         string // the name of the message's author, "" if it is not known
}

// GoOn is the message of a call that only names its job: the agent shall finish the
// interrupted task.
const GoOn = "Go on where you stopped and finish the task."

// ParseMessage reads the arguments of message_subagent (JOB-05, JOB-07). It fails with
// Invalid or TooLarge for the first unsuitable argument.
func ParseMessage(data []byte) (Control, error) {
	var args MessageArgs
	if err := bridge.DecodeStrict(data, maxArgsBytes, &args); err != nil {
		return Control{}, err
	}
	return args.Check()
}

// Check validates the arguments and returns their request. It fails with Invalid or
// TooLarge for the first unsuitable argument.
func (a MessageArgs) Check() (Control, error) {
	if err := CheckTarget(a.Job); err != nil {
		return Control{}, err
	}
	if a.ApprovalID != "" || a.Decision != "" || a.Reason != "" {
		return a.checkAnswer()
	}
	control := Control{Job: a.Job, Message: a.Message, Settings: Settings{Title: a.Title, Model: a.Model, Effort: a.Effort}}
	if err := checkSettings(a.Title, a.Model, a.Effort); err != nil {
		return Control{}, err
	}
	if a.Access != "" {
		access, err := ParseAccess(a.Access)
		if err != nil {
			return Control{}, err
		}
		control.Settings.Access = access
	}
	if a.Message == "" && control.Settings == (Settings{}) {
		control.Message = GoOn
	}
	if control.Message == "" {
		return control, nil
	}
	if strings.TrimSpace(control.Message) == "" {
		return Control{}, bridge.Errorf(bridge.Invalid, "message must not be empty")
	}
	return control, bridge.CheckText("message", control.Message, MaxPromptChars)
}

// checkAnswer validates an answer. A plain message is never an answer, and an answer
// never contains a message.
func (a MessageArgs) checkAnswer() (Control, error) {
	switch {
	case a.ApprovalID == "":
		return Control{}, bridge.Errorf(bridge.Invalid, "decision and reason answer an approval: name it by approval_id")
	case a.Message != "" || a.Title != "" || a.Model != "" || a.Effort != "" || a.Access != "":
		return Control{}, bridge.Errorf(bridge.Invalid, "answer the approval by itself: give approval_id, decision and reason only")
	}
	if err := bridge.CheckID("approval_id", a.ApprovalID); err != nil {
		return Control{}, err
	}
	decision := Decision(a.Decision)
	if decision != PassUp {
		var err error
		if decision, err = ParseDecision(a.Decision); err != nil {
			return Control{}, err
		}
	}
	if err := checkReason(a.Reason); err != nil {
		return Control{}, err
	}
	return Control{Job: a.Job, ApprovalID: a.ApprovalID, Decision: decision, Reason: a.Reason}, nil
}

// CheckTarget fails with Invalid unless target can name a job: its name, or
// `<host>/<name>` for one on a paired PC (RMT-10).
func CheckTarget(target string) error {
	host, name, remote := strings.Cut(target, "/")
	if !remote {
		host, name = "", target
	}
	if !IsName(name) || remote && bridge.CheckPlainName(host) != nil {
		return bridge.Errorf(bridge.Invalid, "%q names no job: use its name, such as codex-job-0a1b2c3d", target)
	}
	return nil
}

// HandoffArgs are the arguments of handoff_subagents (JOB-23).
type HandoffArgs struct {
	To   string `json:"to"`
	Jobs any    `json:"jobs"` // names, or "all"
	Note string `json:"note,omitempty"`
}

// Handoff is a requested change of supervisor.
type Handoff struct {
	To   string   `json:"to"`
	All  bool     `json:"all,omitempty"`
	Jobs []string `json:"jobs,omitempty"` // when not All
	Note string   `json:"note,omitempty"`
}

// ParseHandoff reads the arguments of handoff_subagents. It fails with Invalid for an
// unsuitable name or without jobs, and with TooLarge beyond MaxHandoff jobs.
func ParseHandoff(data []byte) (Handoff, error) {
	var args HandoffArgs
	if err := bridge.DecodeStrict(data, maxArgsBytes, &args); err != nil {
		return Handoff{}, err
	}
	handoff := Handoff{To: bridge.NormalizeName(args.To), Note: args.Note}
	if err := bridge.CheckName(args.To); err != nil {
		return Handoff{}, err
	}
	if args.Note != "" {
		if err := bridge.CheckText("note", args.Note, MaxReasonChars); err != nil {
			return Handoff{}, err
		}
	}
	switch jobs := args.Jobs.(type) {
	case string:
		handoff.All = jobs == "all"
	case []any:
		for _, job := range jobs {
			name, isText := job.(string)
			if !isText || CheckTarget(name) != nil {
				return Handoff{}, bridge.Errorf(bridge.Invalid, "jobs must hold names of jobs, or be \"all\"")
			}
			handoff.Jobs = append(handoff.Jobs, name)
		}
	}
	if !handoff.All && len(handoff.Jobs) == 0 {
		return Handoff{}, bridge.Errorf(bridge.Invalid, "jobs must name at least one job, or be \"all\"")
	}
	if len(handoff.Jobs) > MaxHandoff {
		return Handoff{}, bridge.Errorf(bridge.TooLarge, "jobs names %d: at most %d are allowed", len(handoff.Jobs), MaxHandoff)
	}
	return handoff, nil
}
