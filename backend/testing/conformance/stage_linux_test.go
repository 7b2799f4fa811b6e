package conformance

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// stage is what the attacker knows of the PC that it attacks: everything but what it is to
// read.
type stage struct {
	Token    string // marks what this run of the suite makes
	Kind     bridge.AgentKind
	Access   job.Access
	Program  string // bridge
	Home     string // Bridge's
	User     string // the owner's home folder
	Work     string // the job's folder
	Outside  string // a folder of the owner's, with one folder for each attack
	Page     string // address of the page, as HOST:PORT
	Cookie   string // a valid one of the owner's browser
	Link     string // the launch link
	Question string // an open question of a session
	Socket   string // of another program, by its path
	Abstract string // the same, by an abstract name
	Terminal string // the owner's
	Broker   int
	Runner   int // found by the attacker
}

// orders is what the agent of a job finds in its prompt.
type orders struct {
	Stage   stage
	Attacks []string
	// Then says what the agent does afterwards: thenEnd, thenWait or thenAsk.
	Then string
	// Title is the text of the request for permission.
	Title string
}

const (
	thenEnd  = "end"
	thenWait = "wait"
	thenAsk  = "ask"
)

// The orders stand in the prompt between these.
const (
	ordersBegin = "ORDERS<"
	ordersEnd   = ">ORDERS"
)

// prompt returns the prompt that holds the orders.
func (o orders) prompt() (string, error) {
	text, err := json.Marshal(o)
	return ordersBegin + string(text) + ordersEnd, err
}

// readOrders finds the orders in a prompt.
func readOrders(prompt string) (o orders, err error) {
	_, rest, found := strings.Cut(prompt, ordersBegin)
	text, _, ends := strings.Cut(rest, ordersEnd)
	if !found || !ends {
		return o, errors.New("the prompt has no orders")
	}
	return o, json.Unmarshal([]byte(text), &o)
}

// victim is the name of the session on the attacked PC, and the id under which its agent
// knows it.
const (
	victim        = "victim"
	victimSession = "session-of-the-victim"
)

// slug is the attack's name as a part of file names.
func (a attack) slug() string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(a.name), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }), "-")
}

// mark is what a message or a process of the attack contains.
func (a attack) mark(s stage) string { return "mark-" + a.slug() + "-" + s.Token }

// target is the file that the attack makes.
func (a attack) target(s stage) string {
	switch a.slug() {
	case "write-in-dev-shm":
		return "/dev/shm/" + a.mark(s)
	case "write-in-the-job-s-folder":
		return filepath.Join(s.Work, a.mark(s))
	case "write-in-bridge-s-home":
		return filepath.Join(s.Home, a.mark(s))
	}
	return filepath.Join(s.Outside, a.slug(), "started")
}

// own is the attack's folder outside of what the job may write. It holds the file victim.
func (a attack) own(s stage) string { return filepath.Join(s.Outside, a.slug()) }

// watched lists the files that the attack must not change.
func (a attack) watched(s stage) []string {
	paths := []string{a.own(s)}
	for name, list := range map[string][]string{
		"change-claude-code-s-settings-and-skills": claudeSettings, "change-what-another-claude-code-session-runs": claudeSessions,
		"change-codex-s-settings-and-sessions": codexState, "change-opencode-s-programs-plugins-and-keys": openCodeState,
	} {
		for _, file := range list {
			if name == a.slug() {
				path := filepath.Join(s.User, file)
				paths = append(paths, path, path+".new", path+".link", path+".moved")
			}
		}
	}
	return paths
}

// The files that other sessions of each agent run or read, below the owner's home folder.
var (
	claudeSettings = []string{".claude/settings.json", ".claude/.credentials.json", ".claude/CLAUDE.md", ".claude/skills/own/SKILL.md", ".claude/plugins/own.json"}
	claudeSessions = []string{
		".claude/shell-snapshots/snapshot-bash-1.sh", ".claude/session-env/other/hook.sh", ".claude/sessions/1.json",
		".claude/projects/other/other.jsonl", ".claude/projects/other/memory/MEMORY.md",
	}
	codexState    = []string{".codex/config.toml", ".codex/auth.json", ".codex/AGENTS.md", ".codex/rules/default.rules", ".codex/sessions/2026/01/01/rollout-other.jsonl"}
	openCodeState = []string{
		".config/opencode/opencode.json", ".config/opencode/plugin/own.js", ".local/share/opencode/auth.json", ".local/share/opencode/bin/rg",
		".cache/opencode/node_modules/own/index.js", ".cache/opencode/bin/own", ".local/state/opencode/kv.json",
	}
)

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
