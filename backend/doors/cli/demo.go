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

	"github.com/spf13/cobra"

	"bridge/backend/doors/cli/demo"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/doors/cli/usage"
	"bridge/backend/doors/daemon"
	"bridge/backend/doors/worker"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
)

func demoCommand(a *App) *cobra.Command {
	d := demoRun{App: a}
	cmd := &cobra.Command{
		Use: "demo", Short: "Show a live dashboard with scripted sessions in a throw-away home",
		Long:    "Start broker and dashboard in a throw-away home, with three scripted sessions that are real MCP server\nprocesses: they write to each other, pin a decision, ask you something and hand out jobs to a script that plays\nan agent, in checkouts of a small git repository. No agent and no account is needed. Ctrl-C ends it.",
		Example: "  bridge demo\n  bridge demo --keep", Args: usage.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if d.rounds < 0 {
				return &outcome.UsageError{Err: errors.New("--rounds must not be negative")}
			}
			if d.port < 0 || d.port > 65535 {
				return &outcome.UsageError{Err: errors.New("--port must be 0 to 65535")}
			}
			return d.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&d.keep, "keep", false, "keep the throw-away home afterwards and say where it is")
	cmd.Flags().BoolVar(&d.noOpen, "no-open", false, "only print the link")
	cmd.Flags().IntVar(&d.port, "port", 0, "dashboard port; 0 picks a free one")
	cmd.Flags().IntVar(&d.rounds, "rounds", 0, "go through the script so many times at once, then say nothing more")
	_ = cmd.Flags().MarkHidden("rounds") // a static scene is for tests; the flag exists, so this cannot fail
	return cmd
}

// demoAgentCommand is the agent of the demo's jobs.
func demoAgentCommand(a *App) *cobra.Command {
	return &cobra.Command{
		Use: demo.Command, Short: "Play the agent of the demo's jobs, over the Agent Client Protocol", Hidden: true, Args: usage.None,
		Example: "  bridge " + demo.Command,
		RunE:    func(cmd *cobra.Command, _ []string) error { return demo.Agent(cmd.Context(), a.Stdin, a.Stdout) },
	}
}

// demoRun is one run of `bridge demo`.
type demoRun struct {
	*App
	keep, noOpen bool
	port         int
	rounds       int // 0 continues forever
}

// demoPause is the pause of the scripted sessions, slow enough to follow.
const demoPause = 3 * time.Second

// ended returns the signals that end a demo. A closed terminal also ends it,
// because its home would otherwise remain.
func ended() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

func (d demoRun) run(ctx context.Context) (err error) {
	ctx, stop := signal.NotifyContext(ctx, ended()...)
	defer stop()
	signal.Ignore(syscall.SIGPIPE) // an unread print then fails, and the demo ends in order
	dir, err := os.MkdirTemp("", "bridge-demo-")
	if err != nil {
		return fmt.Errorf("make a throw-away home: %w", err)
	}
	defer func() { err = errors.Join(err, d.end(dir)) }()
	home, err := config.ResolveHome(filepath.Join(dir, "home"), d.Getenv)
	if err != nil {
		return err
	}
	if err := demo.Prepare(home); err != nil {
		return err
	}
	return d.serve(ctx, home, filepath.Join(dir, "shop"))
}

// serve runs the demo in its home until ctx ends.
func (d demoRun) serve(ctx context.Context, home config.Home, project string) (err error) {
	jobs := false
	if d.rounds == 0 {
		if jobs, err = demo.PrepareJobs(ctx, home, project); err != nil {
			return unlessEnded(ctx, err)
		}
	}
	log, closeLog := worker.OpenLog(home, d.Getenv)
	defer closeLog()
	agents := d.agents(home)
	agents.Refusal = "this is a demo whose home goes away: run `bridge install` to connect your agents to your own"
	var started demo.Runners
	running, err := daemon.Start(ctx, daemon.Options{
		Home: home, Getenv: d.Getenv, Host: "serve", Port: &d.port, Page: d.Page, Version: d.Version, Now: d.Now, Log: log,
		Agents: agents, Sandbox: d.floor(), RunJob: func(folder string) (int, error) { return started.Add(d.startRunner(home, folder, nil)) },
	})
	if err != nil {
		return unlessEnded(ctx, err)
	}
	defer func() { err = errors.Join(err, d.close(running, &started)) }()
	cast, err := demo.Begin(ctx, home, project)
	defer cast.Leave()
	if err == nil {
		err = d.show(ctx, running, cast, jobs)
	}
	return unlessEnded(ctx, err)
}

// endedSoon is how long a failure waits for the demo's own signal.
const endedSoon = time.Second

// unlessEnded returns nil for an error caused by the demo's end. A terminal's Ctrl-C
// also reaches the demo's commands, and their failure may arrive before the signal.
func unlessEnded(ctx context.Context, err error) error {
	if err != nil {
		ipc.Pause(ctx, endedSoon)
	}
	if ctx.Err() == nil {
		return err
	}
	return nil // it was asked to end
}

// endPatience is how long the demo waits for its jobs at its end. A busy PC needs
// several seconds to end a job's processes.
const endPatience = 30 * time.Second

// close ends the demo's jobs, which would outlive their broker and their home.
func (d demoRun) close(running *daemon.Daemon, started *demo.Runners) error {
	ctx, cancel := context.WithTimeout(context.Background(), endPatience)
	defer cancel()
	err := errors.Join(daemon.EndJobs(ctx, running), started.Wait(ctx))
	if err != nil {
		err = fmt.Errorf("end the jobs of the demo: %w", err)
	}
	cancel() // jobs requested at the last moment are not awaited
	return errors.Join(err, running.Close(), started.Wait(ctx))
}

// show runs the cast's script until ctx ends.
func (d demoRun) show(ctx context.Context, running *daemon.Daemon, cast demo.Cast, jobs bool) error {
	for round := range d.rounds {
		if err := cast.Play(ctx, round, 0); err != nil {
			return err
		}
	}
	link, err := running.LaunchURL()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(d.Stdout, "bridge: ready %s\n", link); err != nil {
		return fmt.Errorf("the output of the demo is closed: %w", err)
	}
	if !d.noOpen && d.browse(ctx, running) != nil {
		fmt.Fprintln(d.Stdout, "Open the link above in a browser.")
	}
	if d.rounds > 0 {
		fmt.Fprintln(d.Stdout, "Three scripted sessions have talked; Ctrl-C ends the demo.")
		<-ctx.Done()
		return nil
	}
	after := "all of it goes"
	if d.keep {
		after = "its home is kept"
	}
	fmt.Fprintf(d.Stdout, "Three scripted sessions are talking; Ctrl-C ends the demo, and %s.\n", after)
	if jobs {
		fmt.Fprintln(d.Stdout, "To try: in some seconds a job asks to commit. Allow it under Needs you; then review what it changed,\ncomment on a line, and apply it.")
	} else {
		fmt.Fprintln(d.Stdout, "git is not on this PC: no job is shown.")
	}
	if err := cast.Work(ctx, jobs); err != nil {
		return err
	}
	for round := 0; ctx.Err() == nil; round++ {
		if err := cast.Play(ctx, round, demoPause); err != nil {
			return err
		}
	}
	return nil
}

// end removes the temporary home, which holds no data of the owner. It renames the
// home first, so that another program never finds a partial home.
func (d demoRun) end(dir string) error {
	if d.keep {
		home := filepath.Join(dir, "home")
		fmt.Fprintf(d.Stdout, "The demo's home is kept in %s\n", home)
		return demo.Keep(home)
	}
	if err := os.Rename(dir, dir+"-ended"); err == nil {
		dir += "-ended"
	}
	var err error
	for range 50 { // a command of a job may still write
		if err = os.RemoveAll(dir); err == nil {
			return nil
		}
		ipc.Pause(context.Background(), 100*time.Millisecond)
	}
	return err
}

// browse opens the demo's page in the browser.
func (d demoRun) browse(ctx context.Context, running *daemon.Daemon) error {
	entry, err := running.EntryURL()
	if err != nil {
		return err
	}
	return openBrowser(ctx, entry)
}
