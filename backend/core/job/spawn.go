package job

import (
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"bridge/backend/core/bridge"
)

// maxArgsBytes limits the arguments of one call: the longest prompt as the longest JSON
// escapes, and the rest.
const maxArgsBytes = 2 << 20

// SpawnArgs are the arguments of spawn_* and ask_* (JOB-01), unchecked.
type SpawnArgs struct {
	Agent      string   `json:"agent,omitempty"` // of spawn_acp only: a name in agents.acp
	Prompt     string   `json:"prompt"`
	Title      string   `json:"title,omitempty"`
	Model      string   `json:"model,omitempty"`
	Effort     string   `json:"effort,omitempty"`
	SessionID  string   `json:"session_id,omitempty"`
	Cwd        string   `json:"cwd,omitempty"`
	TimeoutSec *int     `json:"timeout_sec,omitempty"`
	Access     string   `json:"access,omitempty"`
	Worktree   bool     `json:"worktree,omitempty"`
	SendTo     []string `json:"send_to,omitempty"`
	Host       string   `json:"host,omitempty"`
	BudgetUSD  *float64 `json:"budget_usd,omitempty"`
}

// Request is a checked request for a job: each member is within its limits, and missing
// ones have defaults.
type Request struct {
	Kind      bridge.AgentKind
	Ask       bool   // a caller waits for the answer
	ACPAgent  string // of kind ACP
	Prompt    string
	Title     string
	Model     string // "" is the agent's own choice, as for Effort
	Effort    string
	SessionID string // to continue; "" is a new one
	Cwd       string // absolute; "" is the supervisor's folder
	Timeout   time.Duration
	Access    Access
	Worktree  bool
	SendTo    []string
	Host      string  // a paired PC; "" is this one
	BudgetUSD float64 // 0 is none
}

// ParseSpawn reads the arguments of spawn_<kind> or ask_<kind>. It fails with Invalid
// or TooLarge, with a sentence that names the argument.
func ParseSpawn(kind bridge.AgentKind, ask bool, data []byte) (Request, error) {
	var args SpawnArgs
	if err := bridge.DecodeStrict(data, maxArgsBytes, &args); err != nil {
		return Request{}, err
	}
	return args.Check(kind, ask)
}

// Check validates the arguments and returns a request. It fails with Invalid or
// TooLarge for the first unsuitable argument.
func (a SpawnArgs) Check(kind bridge.AgentKind, ask bool) (Request, error) {
	request := Request{
		Kind: kind, Ask: ask, ACPAgent: a.Agent, Prompt: a.Prompt, Title: a.Title, Model: a.Model, Effort: a.Effort,
		SessionID: a.SessionID, Cwd: a.Cwd, Worktree: a.Worktree, SendTo: a.SendTo, Host: a.Host,
	}
	checks := []func(*Request, SpawnArgs) error{checkKind, checkWords, checkPlace, checkTimeout, checkAccess, checkBudget}
	for _, check := range checks {
		if err := check(&request, a); err != nil {
			return Request{}, err
		}
	}
	return request, nil
}

func checkKind(r *Request, _ SpawnArgs) error {
	switch {
	case !slices.Contains(Kinds(), r.Kind):
		return bridge.Errorf(bridge.Invalid, "there are no jobs of kind %q", r.Kind)
	case r.Kind != ACP && r.ACPAgent != "":
		return bridge.Errorf(bridge.Invalid, "agent belongs to spawn_acp only")
	case r.Kind == ACP && r.ACPAgent == "":
		return bridge.Errorf(bridge.Invalid, "agent must name one of agents.acp in the configuration")
	case r.Kind == ACP:
		return bridge.CheckPlainName(r.ACPAgent)
	}
	return nil
}

func checkWords(r *Request, _ SpawnArgs) error {
	if strings.TrimSpace(r.Prompt) == "" {
		return bridge.Errorf(bridge.Invalid, "prompt must not be empty")
	}
	if err := bridge.CheckText("prompt", r.Prompt, MaxPromptChars); err != nil {
		return err
	}
	if err := checkSettings(r.Title, r.Model, r.Effort); err != nil {
		return err
	}
	if r.Title == "" {
		r.Title = titleOf(r.Prompt)
	}
	if r.SessionID != "" {
		return bridge.CheckID("session_id", r.SessionID)
	}
	return nil
}

// checkSettings checks the settings of a turn; "" is missing.
func checkSettings(title, model, effort string) error {
	if title != "" {
		if err := checkLine("title", title, MaxTitleChars); err != nil {
			return err
		}
	}
	if model != "" {
		if err := checkLine("model", model, MaxModelChars); err != nil {
			return err
		}
		if strings.HasPrefix(model, "-") {
			return bridge.Errorf(bridge.Invalid, "model must not begin with '-'")
		}
	}
	if effort != "" && !isEffort(effort) {
		return bridge.Errorf(bridge.Invalid, "effort must be 1 to 20 of letters, digits, '_' and '-', and not begin with '-'")
	}
	return nil
}

// checkLine fails with Invalid unless the text is one line that is not empty.
func checkLine(what, text string, maxChars int) error {
	if strings.TrimSpace(text) == "" {
		return bridge.Errorf(bridge.Invalid, "%s must not be empty", what)
	}
	if strings.ContainsFunc(text, unicode.IsControl) {
		return bridge.Errorf(bridge.Invalid, "%s must be one line without control characters", what)
	}
	return bridge.CheckText(what, text, maxChars)
}

func isEffort(text string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	return len(text) <= 20 && text[0] != '-' && strings.Trim(text, allowed) == ""
}

// titleChars limits a title from a prompt.
const titleChars = 80

// titleOf returns the first line of a prompt with text, or "untitled".
func titleOf(prompt string) string {
	for line := range strings.Lines(prompt) {
		line = strings.TrimSpace(strings.Map(printable, line))
		if line == "" {
			continue
		}
		if utf8.RuneCountInString(line) > titleChars {
			line = strings.TrimSpace(string([]rune(line)[:titleChars-1])) + "…"
		}
		return line
	}
	return "untitled"
}

func printable(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}

func checkPlace(r *Request, _ SpawnArgs) error {
	if r.Cwd != "" && !IsAbsolute(r.Cwd) {
		return bridge.Errorf(bridge.Invalid, "cwd must be an absolute path")
	}
	if r.Cwd != "" {
		if err := checkLine("cwd", r.Cwd, bridge.MaxPathChars); err != nil {
			return err
		}
	}
	if r.Host == "" {
		return checkGrants(r.SendTo)
	}
	if err := bridge.CheckPlainName(r.Host); err != nil {
		return err
	}
	if r.Cwd == "" {
		return bridge.Errorf(bridge.Invalid, "a job on another PC needs cwd, an absolute path on that PC")
	}
	if len(r.SendTo) > 0 {
		return bridge.Errorf(bridge.Invalid, "send_to is for jobs on this PC only")
	}
	return nil
}

// IsAbsolute recognizes absolute paths of every system, because another PC may use another system.
func IsAbsolute(path string) bool {
	letter := len(path) >= 3 && path[1] == ':' && (path[2] == '\\' || path[2] == '/')
	return strings.HasPrefix(path, "/") || strings.HasPrefix(path, `\\`) || letter && unicode.IsLetter(rune(path[0]))
}

func checkTimeout(r *Request, a SpawnArgs) error {
	r.Timeout = MaxTimeout
	if a.TimeoutSec == nil {
		return nil
	}
	if *a.TimeoutSec < 10 || *a.TimeoutSec > 86_400 {
		return bridge.Errorf(bridge.Invalid, "timeout_sec must be 10 to 86400, not %d", *a.TimeoutSec)
	}
	r.Timeout = time.Duration(*a.TimeoutSec) * time.Second
	return nil
}

// checkAccess sets the level. The default is read, or edit for a worktree.
func checkAccess(r *Request, a SpawnArgs) (err error) {
	switch {
	case a.Access == "" && a.Worktree:
		r.Access = AccessEdit
	case a.Access == "":
		r.Access = AccessRead
	default:
		r.Access, err = ParseAccess(a.Access)
	}
	if err == nil && r.Access == AccessRead && a.Worktree {
		return bridge.Errorf(bridge.Invalid, "a worktree is for a job that changes files: use access edit or ask")
	}
	return err
}

// maxBudgetUSD rejects a budget that is probably a typing error.
const maxBudgetUSD = 10_000

func checkBudget(r *Request, a SpawnArgs) error {
	if a.BudgetUSD == nil {
		return nil
	}
	budget := *a.BudgetUSD
	if math.IsNaN(budget) || budget <= 0 || budget > maxBudgetUSD {
		return bridge.Errorf(bridge.Invalid, "budget_usd must be more than 0 and at most %d", maxBudgetUSD)
	}
	r.BudgetUSD = budget
	return nil
}
