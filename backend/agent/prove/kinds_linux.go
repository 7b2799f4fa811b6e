package prove

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"bridge/backend/agent"
	"bridge/backend/agent/appserver"
	"bridge/backend/agent/prove/scripted"
	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
)

// session is the agent in its terminal.
type session interface {
	Prompt(ctx context.Context, line string) error
	Until(ctx context.Context, what string, fits func(screen string) bool) error
	Screen() string
	Ended() bool
}

// kindOf is how one kind of agent is driven.
type kindOf struct {
	place func(program string) scripted.CLIs
	// prepare has the agent ask before it makes a file.
	prepare func(home *scripted.Home) error
	tool    string // stands before the names of Bridge's tools
	run     func(command string) scripted.Step
	asks    func(command string) scripted.Step // a run that needs a permission
	ready   string                             // on its screen once it takes prompts
	start   func(ctx context.Context, home *scripted.Home, dir string) (session, error)
	// alone starts the agent without its background server, nil if it has none. hasServer
	// reports whether that runs, and withoutServer is notOffered if it does not.
	alone         func(ctx context.Context, home *scripted.Home, dir string) (session, error)
	hasServer     func(home *scripted.Home) bool
	withoutServer map[Route]string
	child         scripted.Step // starts a sub-agent that plays the script child
	// label stands before the owner's words in a prompt of its user, nil if they come as
	// mail.
	label      *string
	labelSince string           // the first version that has it, "" for all
	mod        bool             // Bridge's mod in the session enters them
	notOffered map[Route]string // why not
}

// fit adapts to the version of the agent: an older claude gets the owner's words as mail.
func (k *kindOf) fit(version string) {
	if version != "" && k.labelSince != "" && agent.CompareVersions(version, k.labelSince) < 0 {
		k.label = nil
	}
}

// claudeModSince is the first version of claude that runs Bridge's mod.
const claudeModSince = "2.1.287"

// aloneFlag is the flag that a codex names if it cannot start its background server, as one
// that is a single file.
const aloneFlag = "--no-daemon"

// The labels of the owner's words.
var noLabel, queueLabel = "", chat.OwnerLabel

// kinds holds each of Kinds.
var kinds = map[bridge.AgentKind]kindOf{
	"claude": {
		place:   func(program string) scripted.CLIs { return scripted.CLIs{Claude: program} },
		prepare: func(*scripted.Home) error { return nil }, // its command line says it
		tool:    "mcp__bridge__", ready: "❯",
		run: describedShell("Bash"), asks: describedShell("Bash"),
		start: func(ctx context.Context, home *scripted.Home, dir string) (session, error) {
			return inTerminal(home.Open(ctx, "claude", dir, "claude", "--permission-mode", "manual", "--allowedTools", "Bash(true),Task,mcp__bridge"))
		},
		label: &noLabel, labelSince: claudeModSince, mod: true,
		notOffered: map[Route]string{ToChild: noChildInput("Claude Code")},
	},
	"codex": {
		place:   func(program string) scripted.CLIs { return scripted.CLIs{Codex: program} },
		prepare: func(home *scripted.Home) error { return errors.Join(home.CodexAsks(), home.UseCodexDaemon()) },
		tool:    "mcp__bridge/", ready: "›",
		run: func(command string) scripted.Step {
			return scripted.Call("exec_command", map[string]any{"cmd": command})
		},
		asks: func(command string) scripted.Step {
			return scripted.Call("exec_command", map[string]any{"cmd": command, "sandbox_permissions": "require_escalated", "justification": "May I?"})
		},
		start: func(ctx context.Context, home *scripted.Home, dir string) (session, error) {
			return inTerminal(home.Open(ctx, "codex", dir, "codex"))
		},
		alone: func(ctx context.Context, home *scripted.Home, dir string) (session, error) {
			return inTerminal(home.Open(ctx, "codex-alone", dir, scripted.CodexCommand()...))
		},
		hasServer: func(home *scripted.Home) bool {
			_, err := os.Stat(appserver.Socket(filepath.Join(home.Dir, ".codex")))
			return err == nil
		},
		withoutServer: map[Route]string{
			ToChild:          "this codex runs no background server, so its sub-agents take no words",
			PermissionPrompt: "this codex runs no background server, so only its terminal answers its prompts",
		},
		child: scripted.Call("multi_agent_v1/spawn_agent", map[string]any{"message": "play script:child"}),
		label: &queueLabel,
	},
	"opencode": {
		place: func(program string) scripted.CLIs { return scripted.CLIs{OpenCode: program} },
		prepare: func(home *scripted.Home) error {
			return home.Edit(".config/opencode/opencode.json", func(settings map[string]any) {
				settings["permission"] = map[string]any{"bash": map[string]any{"*": "allow", "touch *": "ask"}}
			})
		},
		tool: "bridge_", ready: "ctrl+p commands",
		run: describedShell("bash"), asks: describedShell("bash"),
		start: func(ctx context.Context, home *scripted.Home, dir string) (session, error) {
			terminal, err := home.OpenOpenCode(ctx, "opencode", dir)
			if err != nil {
				return nil, err
			}
			return terminal, nil
		},
		notOffered: map[Route]string{ToChild: noChildInput("opencode")},
	},
}

// describedShell returns how a shell tool with a description is called.
func describedShell(tool string) func(command string) scripted.Step {
	return func(command string) scripted.Step {
		return scripted.Call(tool, map[string]any{"command": command, "description": "try it"})
	}
}

// noChildInput returns why an agent has no route to its sub-agents.
func noChildInput(name string) string {
	return "a sub-agent of " + name + " takes no input. Bridge offers a note to its session"
}

// inTerminal returns the terminal as a session, which is nil with an error.
func inTerminal(terminal *scripted.Terminal, err error) (session, error) {
	if err != nil {
		return nil, err
	}
	return terminal, nil
}

// mostLines and mostRunes bound a text of evidence.
const mostLines, mostRunes = 12, 1500

// lastLines returns the end of a text.
func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	text = strings.Join(lines[max(0, len(lines)-mostLines):], "\n")
	if runes := []rune(text); len(runes) > mostRunes {
		text = "…" + string(runes[len(runes)-mostRunes:])
	}
	return text
}
