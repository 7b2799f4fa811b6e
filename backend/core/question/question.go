// Package question has the rules of sessions' questions to their owner (row NED-03):
// valid questions, valid answers, and when a question is over. It does no I/O.
package question

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"bridge/backend/core/bridge"
)

// Limits of a question and its answer.
const (
	MaxTitleChars       = 200
	MaxContextChars     = 4_000
	MaxTopicChars       = 160
	MaxLabelChars       = 200
	MaxConsequenceChars = 1_000
	MaxAnswerChars      = 8_000
	MinOptions          = 2
	MaxOptions          = 4
	// MaxOpen limits the open questions of one session.
	MaxOpen = 5
)

// State is the state of a question.
type State string

// The states. All but the first are final.
const (
	Open       State = "open"
	Answered   State = "answered"
	Cancelled  State = "cancelled"  // the asker withdrew it
	Superseded State = "superseded" // the asker asked again on the same topic
)

// Option is one of the offered answers, and its consequence.
type Option struct {
	ID          string `json:"id"` // "1" to "4"
	Label       string `json:"label"`
	Consequence string `json:"consequence"`
}

// Args are a session's question; without options the owner answers with text.
type Args struct {
	Title    string   `json:"title"`
	Context  string   `json:"context"`
	Topic    string   `json:"topic"`
	Blocking bool     `json:"blocking"`
	Options  []Option `json:"options"`
}

// Check validates the question and numbers the options.
func (a *Args) Check() error {
	if err := checkLine("title", a.Title, MaxTitleChars); err != nil {
		return err
	}
	if a.Context != "" {
		if err := bridge.CheckText("context", a.Context, MaxContextChars); err != nil {
			return err
		}
	}
	if a.Topic != "" {
		if err := checkLine("topic", a.Topic, MaxTopicChars); err != nil {
			return err
		}
	}
	if n := len(a.Options); n != 0 && (n < MinOptions || n > MaxOptions) {
		return bridge.Errorf(bridge.Invalid, "options must hold %d to %d answers, not %d, or be left out for an answer in words", MinOptions, MaxOptions, n)
	}
	for i := range a.Options {
		option := &a.Options[i]
		if option.ID != "" {
			return bridge.Errorf(bridge.Invalid, "option %d: options are numbered by themselves, so that id must be left out", i+1)
		}
		if err := checkLine(fmt.Sprintf("the label of option %d", i+1), option.Label, MaxLabelChars); err != nil {
			return err
		}
		if err := bridge.CheckText(fmt.Sprintf("the consequence of option %d", i+1), option.Consequence, MaxConsequenceChars); err != nil {
			return err
		}
		if slices.ContainsFunc(a.Options[:i], func(o Option) bool { return o.Label == option.Label }) {
			return bridge.Errorf(bridge.Invalid, "two options are called %q: nobody could tell them apart", option.Label)
		}
	}
	for i := range a.Options {
		a.Options[i].ID = strconv.Itoa(i + 1)
	}
	return nil
}

func checkLine(what, text string, maxChars int) error {
	if strings.TrimSpace(text) == "" {
		return bridge.Errorf(bridge.Invalid, "%s must not be empty", what)
	}
	if strings.ContainsFunc(text, unicode.IsControl) {
		return bridge.Errorf(bridge.Invalid, "%s must be one line without control characters", what)
	}
	return bridge.CheckText(what, text, maxChars)
}

// Question is a session's question, as in the record of questions.db. Members of other
// programs in the record are kept.
type Question struct {
	ID       string            `json:"id"`
	Project  string            `json:"project"` // the asker's folder
	Title    string            `json:"title"`
	Context  string            `json:"context,omitempty"`
	Topic    string            `json:"topic,omitempty"`
	Options  []Option          `json:"options,omitempty"`
	Blocking bool              `json:"blocking,omitempty"`
	By       bridge.Address    `json:"by"`
	State    State             `json:"status"`
	AskedAt  bridge.UnixMillis `json:"createdAt"`
	EndedAt  bridge.UnixMillis `json:"endedAt,omitempty"`
	Answer   *Answer           `json:"answer,omitempty"`
	// Message is the id of the message with the answer for the asker. Carried reports
	// that it is sent, Via how, and Pinned that the decision of Pin is recorded.
	Message string `json:"message,omitempty"`
	Carried bool   `json:"carried,omitempty"`
	Via     string `json:"via,omitempty"`
	Pinned  bool   `json:"pinned,omitempty"`
}

// Answer is the owner's answer.
type Answer struct {
	Option string `json:"option,omitempty"` // the id of one, "" for text alone
	Label  string `json:"label,omitempty"`  // of that option
	Text   string `json:"text,omitempty"`
	Pin    bool   `json:"pin,omitempty"` // it becomes a decision
}

// Words returns the answer as text.
func (a Answer) Words() string {
	switch {
	case a.Label == "":
		return a.Text
	case a.Text == "":
		return a.Label
	}
	return a.Label + ". " + a.Text
}

// Key returns the key of questions that replace each other: of one session, topic and
// project.
func (q Question) Key() string {
	if q.Topic == "" {
		return q.ID
	}
	return strings.Join([]string{q.Project, strings.ToLower(strings.TrimSpace(q.Topic)), q.By.ID}, "\x00")
}

// Ask adds a question to the open ones of its session. It returns the id of the one
// that it replaces, or "". It fails with Conflict if too many are open.
func Ask(q Question, open []Question) (replaces string, err error) {
	for _, other := range open {
		if other.Key() == q.Key() {
			return other.ID, nil
		}
	}
	if len(open) >= MaxOpen {
		return "", bridge.Errorf(bridge.Conflict, "%d questions of yours are open: wait for an answer, or withdraw one", MaxOpen)
	}
	return "", nil
}

// Decide answers an open question; the first answer wins. It fails with Conflict if the
// question is not open, and with Invalid for an unsuitable answer.
func (q *Question) Decide(answer Answer, at int64) error {
	if q.State != Open {
		return q.over()
	}
	at1 := slices.IndexFunc(q.Options, func(o Option) bool { return o.ID == answer.Option })
	switch {
	case answer.Option != "" && len(q.Options) == 0:
		return bridge.Errorf(bridge.Invalid, "this question offers no options: answer it with text")
	case answer.Option != "" && at1 < 0:
		return bridge.Errorf(bridge.Invalid, "there is no option %q: use 1 to %d", answer.Option, len(q.Options))
	case answer.Option == "" && strings.TrimSpace(answer.Text) == "":
		return bridge.Errorf(bridge.Invalid, "an answer needs an option or text")
	}
	if answer.Text != "" {
		if err := bridge.CheckText("text", answer.Text, MaxAnswerChars); err != nil {
			return err
		}
	}
	answer.Label = ""
	if at1 >= 0 {
		answer.Label = q.Options[at1].Label
	}
	q.State, q.EndedAt, q.Answer = Answered, at, &answer
	return nil
}

// End closes an open question without an answer.
func (q *Question) End(state State, at int64) error {
	if q.State != Open {
		return q.over()
	}
	q.State, q.EndedAt = state, at
	return nil
}

func (q *Question) over() error {
	switch q.State {
	case Answered:
		return bridge.Errorf(bridge.Conflict, "it was answered already: %s", q.Answer.Words())
	case Cancelled:
		return bridge.Errorf(bridge.Conflict, "its asker has taken it back: this did nothing")
	default:
		return bridge.Errorf(bridge.Conflict, "its asker has asked anew: this did nothing")
	}
}

// Body returns the text for the asker: the question and the owner's answer.
func (q Question) Body() string {
	return fmt.Sprintf("You asked (%s): %s\n\n%s", q.ID, q.Title, q.Answer.Words())
}

// Conversation returns the thread of a question's answer.
func Conversation(id string) string { return "question-" + id }

// MessageID returns the id of the message with the answer: a repeat has the same id.
func MessageID(id string) string { return "question-answer-" + id }
