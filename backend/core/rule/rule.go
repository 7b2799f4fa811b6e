// Package rule has the standing rules of the owner (row NED-04): what "from now on"
// allows, for which requests of the owner's agents, and until when. A rule allows and
// never denies; other requests are asked. It does no I/O.
package rule

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// Match is how much of a request a rule specifies.
type Match string

// The matches.
const (
	Exact  Match = "exact"  // the whole command, or the tool with all its arguments
	Prefix Match = "prefix" // the first words of a plain command
)

// Limits of a rule.
const (
	// MaxLive limits the rules in force.
	MaxLive = 200
	// MinWords is the minimum length of a prefix in words: the name of a program alone
	// is too general.
	MinWords = 2
	maxWords = 20
	// maxLife limits the end time of a rule, if it has one.
	maxLife = 366 * 24 * time.Hour
)

// Rule is one standing rule. Only its uses and its end change after its creation.
type Rule struct {
	ID     string           `json:"id"`
	Agent  bridge.AgentKind `json:"agent"`
	Kind   string           `json:"kind"` // of the question: command, edit or tool
	Tool   string           `json:"tool"` // the agent's name for it
	Match  Match            `json:"match"`
	Text   string           `json:"text,omitempty"`  // the complete text of an exact one
	Words  []string         `json:"words,omitempty"` // of a prefix
	Folder string           `json:"folder"`          // "" is every folder
	Cwd    string           `json:"cwd,omitempty"`   // where the exact command of one folder runs, if its agent reports it
	Until  job.Millis       `json:"until,omitempty"` // 0 is until it is revoked
	MadeAt job.Millis       `json:"madeAt"`

	Uses      int        `json:"uses"`
	LastUse   job.Millis `json:"lastUse,omitempty"`
	LastFor   string     `json:"lastFor,omitempty"` // the job or session of the last use
	TakenBack job.Millis `json:"takenBack,omitempty"`
}

// Wish is the owner's choice in addition to "allow".
type Wish struct {
	Match  Match    `json:"match"`
	Words  []string `json:"words"`  // of a prefix, as displayed
	Folder string   `json:"folder"` // this or all
	Until  int64    `json:"until"`  // epoch milliseconds, 0 for none
}

// Request is an agent's request for permission, and the folder of its work.
type Request struct {
	Agent  bridge.AgentKind
	Kind   string
	Tool   string
	Detail string // exact and complete
	Cwd    string // "" if the agent does not report it
	Folder string // the folder for its rules: of a worktree, that of its repository
	Place  string // where the work is done, "" for Folder
}

// RequestOf returns the request of an approval for that folder, with the work done at
// that place.
func RequestOf(a job.Approval, folder, place string) Request {
	return Request{Agent: bridge.AgentKind(a.Agent), Kind: a.Kind, Tool: a.What, Detail: a.Detail, Cwd: a.Cwd, Folder: folder, Place: place}
}

// OfSession returns the request of an interactive session's prompt, for the folder that
// it runs in.
func OfSession(a job.Approval) Request { return RequestOf(a, a.Cwd, "") }

// asksChange is the name in session prompts for a job's job.QuestionEdit.
const asksChange = "change"

// New returns the rule that the owner requested for a request. The rule always allows
// the request itself. It fails with Invalid and the reason if no such rule is possible.
func New(id string, request Request, wish Wish, at time.Time) (Rule, error) {
	if err := request.checkDescription(); err != nil {
		return Rule{}, err
	}
	rule := Rule{ID: id, Agent: request.Agent, Kind: request.Kind, Tool: request.Tool, Match: wish.Match, MadeAt: job.MillisOf(at)}
	switch wish.Folder {
	case "this":
		if request.Folder == "" {
			return Rule{}, bridge.Errorf(bridge.Invalid, "it is not known which folder this is for: choose all folders")
		}
		rule.Folder = request.Folder
	case "all":
	default:
		return Rule{}, bridge.Errorf(bridge.Invalid, "folder must be this or all, not %q", wish.Folder)
	}
	if wish.Until != 0 {
		until := time.UnixMilli(wish.Until)
		if !until.After(at) || until.After(at.Add(maxLife)) {
			return Rule{}, bridge.Errorf(bridge.Invalid, "until must lie ahead, and at most a year")
		}
		rule.Until = job.Millis(wish.Until)
	}
	if err := rule.spell(request, wish); err != nil {
		return Rule{}, err
	}
	if !rule.Allows(request, at) {
		return Rule{}, bridge.Errorf(bridge.Invalid, "the rule would not allow what is asked")
	}
	return rule, nil
}

// spell sets the text or words that the rule specifies.
func (r *Rule) spell(request Request, wish Wish) error {
	switch wish.Match {
	case Exact:
		if len(wish.Words) > 0 {
			return bridge.Errorf(bridge.Invalid, "words belong to the match prefix only")
		}
		r.Text = request.Detail
		if r.Folder != "" {
			r.Cwd = request.Cwd
		}
		return nil
	case Prefix:
		tokens, err := request.plainWords()
		if err != nil {
			return err
		}
		if len(wish.Words) < MinWords || len(wish.Words) > maxWords || len(wish.Words) > len(tokens) || !slices.Equal(wish.Words, tokens[:len(wish.Words)]) {
			return bridge.Errorf(bridge.Invalid, "words must be the first %d or more words of the command, as they are", MinWords)
		}
		r.Words = slices.Clone(wish.Words)
		return nil
	}
	return bridge.Errorf(bridge.Invalid, "match must be exact or prefix, not %q", wish.Match)
}

// checkDescription fails with Invalid for a request without an exact description, for which no
// rule is possible.
func (q Request) checkDescription() error {
	unclear := bridge.Errorf(bridge.Invalid, "this agent does not say exactly what would be done, so it is asked each time")
	switch {
	case q.Agent == "" || q.Agent == job.ACP:
		return unclear
	case strings.TrimSpace(q.Detail) == "":
		return unclear
	}
	switch job.QuestionKind(q.Kind) {
	case job.QuestionCommand:
		if bridge.TraitsOf(q.Agent).Prompts.Pattern && strings.Contains(q.Detail, "*") {
			return unclear // it may be the pattern instead of the command
		}
		return nil
	case job.QuestionEdit, job.QuestionTool, asksChange:
		// The content to write or send follows the path or the name.
		if _, more, _ := strings.Cut(q.Detail, "\n"); strings.TrimSpace(more) == "" && !isObject(q.Detail) {
			return unclear
		}
		return nil
	case job.QuestionChoice:
		return bridge.Errorf(bridge.Invalid, "a question of the agent's own has one answer each time")
	}
	return unclear
}

func isObject(text string) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal([]byte(text), &members) == nil && members != nil
}

// IsLive reports whether the rule is in force.
func (r Rule) IsLive(at time.Time) bool {
	return r.TakenBack == 0 && (r.Until == 0 || job.MillisOf(at) < r.Until)
}

// Allows reports whether the rule allows the request. It refuses a request that it does
// not understand completely.
func (r Rule) Allows(request Request, at time.Time) bool {
	if !r.IsLive(at) || r.Agent != request.Agent || r.Kind != request.Kind || r.Tool != request.Tool || request.checkDescription() != nil {
		return false
	}
	if r.Folder != "" && r.Folder != request.Folder {
		return false
	}
	switch r.Match {
	case Exact:
		return r.Text != "" && r.Text == request.Detail && (r.Folder == "" || r.Cwd == request.Cwd)
	case Prefix:
		tokens, err := request.plainWords()
		if err != nil || len(r.Words) < MinWords || len(tokens) < len(r.Words) || !slices.Equal(r.Words, tokens[:len(r.Words)]) {
			return false
		}
		return !slices.ContainsFunc(tokens[len(r.Words):], func(token string) bool { return !request.isPlainOperand(token) })
	}
	return false
}

// Sentence returns one sentence that describes what the rule allows.
func (r Rule) Sentence() string {
	where := "in every folder"
	if r.Folder != "" {
		where = "in " + r.Folder
	}
	switch {
	case r.Match == Prefix:
		return fmt.Sprintf("commands that begin with %q, %s", strings.Join(r.Words, " "), where)
	case job.QuestionKind(r.Kind) == job.QuestionCommand:
		return fmt.Sprintf("exactly the command %q, %s", r.Text, where)
	}
	return fmt.Sprintf("exactly this use of %s, %s", cmp.Or(r.Tool, "the tool"), where)
}

// Text lists rules for people, each with its uses.
func Text(live []Rule) string {
	if len(live) == 0 {
		return "No rules. You are asked every time.\n"
	}
	var b strings.Builder
	for _, rule := range live {
		fmt.Fprintf(&b, "%s  %s: %s\n", rule.ID, rule.Agent, rule.Sentence())
		fmt.Fprintf(&b, "  used %s", bridge.Counted(rule.Uses, "time"))
		if rule.LastFor != "" {
			fmt.Fprintf(&b, ", last for %s", rule.LastFor)
		}
		if rule.Until != 0 {
			fmt.Fprintf(&b, "; until %s", time.UnixMilli(int64(rule.Until)).Format("2006-01-02 15:04"))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Offer is the set of rules that "from now on" may create for a request.
type Offer struct {
	Exact bool
	// Words are the words for a prefix, Least their minimum number; none if only an
	// exact rule is possible.
	Words []string
	Least int
	Why   string // why there is no rule, or no prefix
}

// OfferFor returns the offer for a request.
func OfferFor(request Request) Offer {
	if err := request.checkDescription(); err != nil {
		return Offer{Why: err.Error()}
	}
	offer := Offer{Exact: true}
	tokens, err := request.plainWords()
	if err != nil {
		offer.Why = err.Error()
		return offer
	}
	// The last words are those that a prefix leaves open: each must be a plain operand.
	least := len(tokens)
	for least > MinWords && request.isPlainOperand(tokens[least-1]) {
		least--
	}
	offer.Words, offer.Least = tokens[:min(len(tokens), maxWords)], least
	return offer
}
