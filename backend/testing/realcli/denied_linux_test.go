package realcli_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/agent/prove/scripted"
	"bridge/backend/testing/testkit"
)

// deniedSession is a kind's session without a terminal that runs every command, and what its
// model reads of one that the CLI's own rules deny.
var deniedSession = map[string]struct {
	run      func(w *world) func(ctx context.Context, dir, prompt string, args ...string) (string, error)
	args     []string
	shell    func(line string) scripted.Step
	denied   string
	settings string
}{
	"claude": {
		run: func(w *world) func(ctx context.Context, dir, prompt string, args ...string) (string, error) {
			return w.home.Claude
		},
		args: []string{"--permission-mode", "acceptEdits", "--allowedTools", "Bash,Read,Edit,Write"},
		shell: func(line string) scripted.Step {
			return scripted.Call("Bash", map[string]any{"command": line, "description": "try"})
		},
		denied:   "has been denied",
		settings: ".claude/settings.json",
	},
	"codex": {
		run: func(w *world) func(ctx context.Context, dir, prompt string, args ...string) (string, error) {
			return w.home.Codex
		},
		shell:    func(line string) scripted.Step { return scripted.Call("exec_command", map[string]any{"cmd": line}) },
		denied:   "Only your user runs this command of Bridge",
		settings: ".codex/rules/bridge.rules",
	},
	"opencode": {
		run: func(w *world) func(ctx context.Context, dir, prompt string, args ...string) (string, error) {
			return w.home.OpenCode
		},
		shell: func(line string) scripted.Step {
			return scripted.Call("bash", map[string]any{"command": line, "description": "try"})
		},
		denied:   "specified a rule which prevents",
		settings: ".config/opencode/opencode.json",
	},
}

// try is a step of a model, and whether the CLI's own rules deny it.
type try struct {
	name   string
	step   scripted.Step
	denied bool
	reads  string // what its model reads, where that is known
}

// try plays the steps in one session of the kind.
func (w *world) try(kind, script string, tries []try) {
	w.Helper()
	how := deniedSession[kind]
	var steps []scripted.Step
	for _, try := range tries {
		steps = append(steps, try.step)
	}
	w.model.Script(script, append(steps, scripted.Say("said"))...)
	out, err := how.run(w)(soon(w.T), w.home.Project("p"), "play script:"+script, how.args...)
	if err != nil {
		w.Fatalf("%v\n%s", err, out)
	}
	for i, try := range tries {
		told := last(w.request("the answer to "+try.name, asks(script, i+1)))
		isDenied := strings.Contains(told, how.denied) || strings.Contains(told, "denied by your permission settings")
		if isDenied != try.denied || !strings.Contains(told, try.reads) {
			w.Errorf("%s: denied: %v, want %v; its model reads %s", try.name, isDenied, try.denied, told)
		}
	}
}

// commands are the command lines that are tried of each kind.
func (w *world) commands(kind string, denied bool) (tries []try) {
	shell := deniedSession[kind].shell
	for _, line := range []string{"bridge approve x", "bridgectl answer x --text y", filepath.Join(w.home.Bin, "bridge") + " finish x --apply", "true && bridge rules", "bridge needs --away on", "bridge install --deny-owner-commands=false --yes"} {
		if !denied && strings.Contains(line, "install") {
			continue // it would be carried out
		}
		tries = append(tries, try{name: line, step: shell(line), denied: denied})
	}
	for line, reads := range map[string]string{"bridge status": "Dashboard", "bridge send nobody hello": "nobody", "bridge needs": "only the owner is told what needs him"} {
		tries = append(tries, try{name: line, step: shell(line), reads: reads})
	}
	return tries
}

// deny connects one CLI with the rules, or takes them out.
func (w *world) deny(kind string, want bool) {
	w.Helper()
	w.Logf("%s", w.bridge("install", kind, fmt.Sprintf("--deny-owner-commands=%v", want), "--yes"))
}

// A claude that may run every command runs none of the owner's and reads no key of
// Bridge's; other commands and the folder in which jobs work stay open.
func TestSEC_07_ARealClaudeDeniesTheOwnersCommands(t *testing.T) {
	w := newWorld(t, "p")
	w.install("claude")
	bridge := filepath.Join(w.home.Dir, ".bridge")
	work := filepath.Join(bridge, "worktrees", "a", "code.txt")
	must(t, os.MkdirAll(filepath.Dir(work), 0o700))
	must(t, os.WriteFile(work, []byte("before\n"), 0o600))
	secret := strings.TrimSpace(content(t, filepath.Join(bridge, "token")))
	before := content(t, filepath.Join(w.home.Dir, deniedSession["claude"].settings))
	w.deny("claude", true)
	read := func(path string) scripted.Step { return scripted.Call("Read", map[string]any{"file_path": path}) }
	w.try("claude", "denied", append(w.commands("claude", true),
		try{name: "read the token", step: read(filepath.Join(bridge, "token")), denied: true},
		try{name: "read the token by a command", step: deniedSession["claude"].shell("cat ~/.bridge/token"), denied: true},
		try{name: "read a key of the network", step: read(filepath.Join(bridge, "network", "identity.pem")), denied: true},
		try{name: "write the settings", step: scripted.Call("Write", map[string]any{"file_path": filepath.Join(bridge, "config.json"), "content": "{}"}), denied: true},
		try{name: "read where a job works", step: read(work), reads: "before"},
		try{name: "write where a job works", step: scripted.Call("Edit", map[string]any{"file_path": work, "old_string": "before", "new_string": "after"})},
		try{name: "a tool of Bridge", step: scripted.Call(claudeTool+"peers", map[string]any{})},
	))
	if got := content(t, work); got != "after\n" {
		t.Errorf("where a job works there is %q", got)
	}
	for _, r := range w.model.Requests() {
		if secret != "" && strings.Contains(r.Text(), secret) {
			t.Errorf("the model has read the token: %v", r)
		}
	}
	w.deny("claude", false)
	if after := content(t, filepath.Join(w.home.Dir, deniedSession["claude"].settings)); after != before {
		t.Errorf("taken back, the settings are\n%s\nand were\n%s", after, before)
	}
}

// The same of codex and opencode, whose rules are for commands alone; taken back, the commands
// run, and Bridge itself refuses them.
func TestSEC_07_RealAgentsDenyTheOwnersCommands(t *testing.T) {
	testkit.Long(t, "each CLI is started twice")
	for _, kind := range []string{"codex", "opencode"} {
		t.Run("SEC-07 "+kind, func(t *testing.T) {
			w := newWorld(t, "p")
			w.install(kind)
			w.deny(kind, true)
			w.try(kind, "denied", w.commands(kind, true))
			w.deny(kind, false)
			w.try(kind, "open", w.commands(kind, false))
		})
	}
}
