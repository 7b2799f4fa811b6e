package prove

import (
	"context"
	"strings"

	"bridge/backend/agent/prove/scripted"
	"bridge/backend/core/bridge"
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
	tool  string        // stands before the names of Bridge's tools
	shell scripted.Step // a call of its shell that changes nothing
	ready string        // on its screen once it takes prompts
	start func(ctx context.Context, home *scripted.Home, dir string) (session, error)
}

// kinds holds each of Kinds.
var kinds = map[bridge.AgentKind]kindOf{
	"claude": {
		place: func(program string) scripted.CLIs { return scripted.CLIs{Claude: program} },
		tool:  "mcp__bridge__", ready: "❯",
		shell: scripted.Call("Bash", map[string]any{"command": "true", "description": "nothing"}),
		start: func(ctx context.Context, home *scripted.Home, dir string) (session, error) {
			return inTerminal(home.Open(ctx, "claude", dir, scripted.ClaudeCommand("bridge")...))
		},
	},
	"codex": {
		place: func(program string) scripted.CLIs { return scripted.CLIs{Codex: program} },
		tool:  "mcp__bridge/", ready: "›",
		shell: scripted.Call("exec_command", map[string]any{"cmd": "true"}),
		start: func(ctx context.Context, home *scripted.Home, dir string) (session, error) {
			return inTerminal(home.Open(ctx, "codex", dir, scripted.CodexCommand()...))
		},
	},
	"opencode": {
		place: func(program string) scripted.CLIs { return scripted.CLIs{OpenCode: program} },
		tool:  "bridge_", ready: "ctrl+p commands",
		shell: scripted.Call("bash", map[string]any{"command": "true", "description": "nothing"}),
		start: func(ctx context.Context, home *scripted.Home, dir string) (session, error) {
			terminal, err := home.OpenOpenCode(ctx, "opencode", dir)
			if err != nil {
				return nil, err
			}
			return terminal, nil
		},
	},
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
