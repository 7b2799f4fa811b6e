// Package demo is the cast of `bridge demo`: scripted sessions, each a real MCP
// server process in the demo's temporary home.
package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
)

// actor is one scripted session: a real MCP server process.
type actor struct {
	*client.Client
	// hook reports an event to Bridge, as its kind's own hook does; nil without hooks.
	hook func(ctx context.Context, event string) error
}

// The events of a turn, with Claude Code's and codex's names.
const turnBegins, turnEnds = "UserPromptSubmit", "Stop"

// Cast holds the actors by name.
type Cast map[string]*actor

// Begin starts the sessions in the home, working in the folder project, which it
// creates. With an error it returns the sessions that have started.
func Begin(ctx context.Context, home config.Home, project string) (Cast, error) {
	cast := Cast{}
	for name, kind := range map[string]bridge.AgentKind{"api": bridge.Claude, "web": bridge.Codex, "docs": bridge.OpenCode} {
		a, err := startActor(ctx, home, project, name, kind)
		if err != nil {
			return cast, err
		}
		cast[name] = a
	}
	return cast, nil
}

// Leave ends the sessions.
func (c Cast) Leave() {
	for _, actor := range c {
		_ = actor.Close() // the demo has ended
	}
}

// Play runs the script once, with a pause before each line; rounds count from 0.
// The end of ctx is not an error.
func (c Cast) Play(ctx context.Context, round int, pause time.Duration) error {
	for _, line := range script {
		if !ipc.Pause(ctx, pause/3) {
			return nil
		}
		var err error
		if pause > 0 {
			err = c.turn(ctx, line, round, pause)
		} else {
			err = line.play(ctx, c, round)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// turn plays a line within a visible turn of its session.
func (c Cast) turn(ctx context.Context, l line, round int, pause time.Duration) error {
	hook := c[l.who].hook
	if hook == nil {
		return l.play(ctx, c, round)
	}
	if err := hook(ctx, turnBegins); err != nil {
		return err
	}
	ipc.Pause(ctx, pause/3)
	if err := l.play(ctx, c, round); err != nil {
		return err
	}
	ipc.Pause(ctx, pause/3)
	return hook(ctx, turnEnds)
}

func startActor(ctx context.Context, home config.Home, project, name string, kind bridge.AgentKind) (*actor, error) {
	if err := os.MkdirAll(project, 0o700); err != nil {
		return nil, fmt.Errorf("make the demo's project: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	process := transport.NewStdio(self, nil, "mcp", "--home", home.Dir(), "--agent", string(kind), "--name", name, "--cwd", project, "--session", "demo-"+name)
	if err := process.Start(ctx); err != nil {
		return nil, fmt.Errorf("start the session %s: %w", name, err)
	}
	a, err := connect(ctx, process)
	if err != nil {
		return nil, fmt.Errorf("begin the session %s: %w", name, err)
	}
	item := &actor{Client: a}
	if kind == bridge.Claude || kind == bridge.Codex {
		item.hook = func(ctx context.Context, event string) error {
			call := fmt.Sprintf(`{"hook_event_name":%q,"session_id":%q,"cwd":%q,"prompt":"go on"}`, event, "demo-"+name, project)
			cmd := exec.CommandContext(ctx, self, "hook", string(kind), event, "--home", home.Dir())
			cmd.Stdin = strings.NewReader(call)
			if output, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("the hook %s of %s: %w: %s", event, name, err, output)
			}
			return nil
		}
	}
	return item, nil
}

// connect opens a client of a running MCP server.
func connect(ctx context.Context, process *transport.Stdio) (*client.Client, error) {
	c := client.NewClient(process)
	begin := mcp.InitializeRequest{Params: mcp.InitializeParams{
		ProtocolVersion: mcp.LATEST_LEGACY_PROTOCOL_VERSION, ClientInfo: mcp.Implementation{Name: "bridge-demo", Version: "1"},
	}}
	if _, err := c.Initialize(ctx, begin); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// line is one action of a scripted session.
type line struct {
	who  string
	tool string
	args map[string]any
	once bool // only in the first round
}

var script = []line{
	{who: "api", tool: "send", args: map[string]any{"to": "web", "message": "The order endpoint now answers **409** when the cart changed meanwhile. Can you show that?"}},
	{who: "web", tool: "inbox", args: map[string]any{}},
	{who: "web", tool: "send", args: map[string]any{"to": "api", "message": "Yes: I reload the cart and tell the shopper what changed. What is the body of the 409?"}},
	{who: "api", tool: "decide", args: map[string]any{"topic": "error format", "text": "Every endpoint answers errors as {\"error\": \"<sentence>\"}; status codes carry the meaning."}, once: true},
	{who: "api", tool: "inbox", args: map[string]any{}},
	{who: "docs", tool: "inbox", args: map[string]any{}},
	{who: "docs", tool: "send", args: map[string]any{"to": "*", "message": "The API guide has a page about errors now. Please look whether it matches what you built."}},
	{who: "web", tool: "inbox", args: map[string]any{}},
	{who: "web", tool: "decide", args: map[string]any{"topic": "error format", "text": "Every endpoint answers errors as {\"error\": \"<sentence>\", \"code\": \"<word>\"}: the page chooses by the code, people read the sentence."}, once: true},
}

func (l line) play(ctx context.Context, cast Cast, round int) error {
	if l.once && round > 0 {
		return nil
	}
	result, err := cast[l.who].CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: l.tool, Arguments: l.args}})
	if err != nil {
		return fmt.Errorf("%s calls %s: %w", l.who, l.tool, err)
	}
	if result.IsError {
		return fmt.Errorf("%s calls %s: %v", l.who, l.tool, result.Content)
	}
	return nil
}
