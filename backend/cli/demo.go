package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/spf13/cobra"

	"bridge/backend/bridge"
	"bridge/backend/config"
	"bridge/backend/daemon"
	"bridge/backend/ipc"
)

func demoCommand(a *App) *cobra.Command {
	d := demo{App: a}
	cmd := &cobra.Command{
		Use: "demo", Short: "Show a live dashboard with scripted sessions in a throw-away home",
		Long:    "Start broker and dashboard in a throw-away home, with three scripted sessions that are real MCP server\nprocesses: they write to each other and pin a decision. No agent and no account is needed. Ctrl-C ends it.",
		Example: "  bridge demo\n  bridge demo --keep", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if d.rounds < 0 {
				return &usageError{errors.New("--rounds must not be negative")}
			}
			return d.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&d.keep, "keep", false, "keep the throw-away home afterwards and say where it is")
	cmd.Flags().BoolVar(&d.noOpen, "no-open", false, "only print the link")
	cmd.Flags().IntVar(&d.port, "port", 0, "dashboard port; 0 picks a free one")
	cmd.Flags().IntVar(&d.rounds, "rounds", 0, "go through the script so many times at once, then say nothing more")
	_ = cmd.Flags().MarkHidden("rounds") // a scene that stands still is for tests; the flag exists: it cannot fail
	return cmd
}

// demo is one run of `bridge demo`.
type demo struct {
	*App
	keep, noOpen bool
	port         int
	rounds       int // 0 talks on and on
}

// demoPause is the rhythm of the scripted sessions: slow enough to follow.
const demoPause = 3 * time.Second

func (d demo) run(ctx context.Context) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "bridge-demo-")
	if err != nil {
		return fmt.Errorf("make a throw-away home: %w", err)
	}
	defer func() { err = errors.Join(err, d.end(dir)) }()
	home, err := config.ResolveHome(filepath.Join(dir, "home"), d.Getenv)
	if err != nil {
		return err
	}
	log, closeLog := d.openLog(home)
	defer closeLog()
	agents := d.agents(home)
	agents.Refusal = "this is a demo whose home goes away: run `bridge install` to connect your agents to your own"
	running, err := daemon.Start(ctx, daemon.Options{
		Home: home, Getenv: d.Getenv, Host: "serve", Port: &d.port, Page: d.Page, Version: d.Version, Now: d.Now, Log: log,
		Agents: agents,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, running.Close()) }()
	actors, err := startActors(ctx, home, filepath.Join(dir, "shop"))
	defer actors.leave()
	if err != nil {
		return err
	}
	return d.show(ctx, running, actors)
}

// show lets the actors talk until ctx ends.
func (d demo) show(ctx context.Context, running *daemon.Daemon, actors actors) error {
	for round := range d.rounds {
		if err := actors.play(ctx, round, 0); err != nil {
			return err
		}
	}
	link, err := running.LaunchURL()
	if err != nil {
		return err
	}
	fmt.Fprintf(d.Stdout, "bridge: ready %s\n", link)
	if !d.noOpen && openBrowser(ctx, link) != nil {
		fmt.Fprintln(d.Stdout, "Open the link above in a browser.")
	}
	if d.rounds > 0 {
		fmt.Fprintln(d.Stdout, "Three scripted sessions have talked; Ctrl-C ends the demo.")
		<-ctx.Done()
		return nil
	}
	fmt.Fprintln(d.Stdout, "Three scripted sessions are talking; Ctrl-C ends the demo.")
	for round := 0; ctx.Err() == nil; round++ {
		if err := actors.play(ctx, round, demoPause); err != nil {
			return err
		}
	}
	return nil
}

// end clears the throw-away home, which holds nothing of the owner's.
func (d demo) end(dir string) error {
	if d.keep {
		fmt.Fprintf(d.Stdout, "The demo's home is kept in %s\n", filepath.Join(dir, "home"))
		return nil
	}
	return os.RemoveAll(dir)
}

// actor is one scripted session: a real MCP server process.
type actor struct{ *client.Client }

// actors are those who play, by name.
type actors map[string]*actor

// startActors returns those that have begun also with an error.
func startActors(ctx context.Context, home config.Home, project string) (actors, error) {
	begun := actors{}
	for name, kind := range map[string]bridge.AgentKind{"api": bridge.Claude, "web": bridge.Codex, "docs": bridge.OpenCode} {
		a, err := startActor(ctx, home, project, name, kind)
		if err != nil {
			return begun, err
		}
		begun[name] = a
	}
	return begun, nil
}

func (a actors) leave() {
	for _, one := range a {
		_ = one.Close() // the demo is over
	}
}

// play goes through the script once, with a pause before each line; rounds count
// from 0. That ctx ends is no error.
func (a actors) play(ctx context.Context, round int, pause time.Duration) error {
	for _, line := range demoScript {
		if !ipc.Pause(ctx, pause) {
			return nil
		}
		if err := line.play(ctx, a, round); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
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
	a := &actor{client.NewClient(process)}
	begin := mcp.InitializeRequest{Params: mcp.InitializeParams{
		ProtocolVersion: mcp.LATEST_LEGACY_PROTOCOL_VERSION, ClientInfo: mcp.Implementation{Name: "bridge-demo", Version: "1"},
	}}
	if _, err := a.Initialize(ctx, begin); err != nil {
		return nil, errors.Join(fmt.Errorf("begin the session %s: %w", name, err), a.Close())
	}
	return a, nil
}

// demoLine is one thing that a scripted session does.
type demoLine struct {
	who  string
	tool string
	args map[string]any
	once bool // only in the first round
}

var demoScript = []demoLine{
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

func (l demoLine) play(ctx context.Context, cast actors, round int) error {
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
