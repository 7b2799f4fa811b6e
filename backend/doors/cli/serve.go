package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"bridge/backend/broker"
	"bridge/backend/core/bridge"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/doors/cli/service"
	"bridge/backend/doors/cli/usage"
	"bridge/backend/doors/daemon"
	"bridge/backend/doors/worker"
	"bridge/backend/platform/config"
	"bridge/backend/storage/maintain"
	"bridge/backend/storage/maintain/check"
)

// defaultIdleExit is how long an unused background broker stays.
const defaultIdleExit = time.Minute

func serveCommand(a *App) *cobra.Command {
	var port int
	var background, anew, yes bool
	var idleExit time.Duration
	cmd := &cobra.Command{
		Use: "serve", Short: "Run broker and dashboard in the foreground",
		Example: "  bridge serve\n  bridge serve --port 0\n  bridge serve --new-store", Args: usage.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options := daemon.Options{Host: "serve"}
			if cmd.Flags().Changed("port") {
				if port < 0 || port > 65535 {
					return &outcome.UsageError{Err: fmt.Errorf("--port must be 0 to 65535")}
				}
				options.Port = &port
			}
			if yes && !anew {
				return &outcome.UsageError{Err: errors.New("--yes goes with --new-store")}
			}
			if anew {
				if err := consentToReplace(cmd.Context(), a, yes); err != nil {
					return err
				}
				options.Replace = true
			}
			if background {
				options.Host, options.IdleExit = broker.HostBackground, idleExit
			}
			return a.serve(cmd.Context(), options)
		},
	}
	cmd.Flags().IntVar(&port, "port", config.DefaultPort, "dashboard port on 127.0.0.1; 0 picks a free one")
	cmd.Flags().BoolVar(&anew, "new-store", false, "start with an empty store after the earlier one was lost; remains are kept")
	cmd.Flags().BoolVar(&yes, "yes", false, "consent to --new-store without being asked")
	cmd.Flags().BoolVar(&background, "background", false, "leave when nothing needs the broker any more")
	cmd.Flags().DurationVar(&idleExit, "idle-exit", defaultIdleExit, "with --background: how long to stay unneeded")
	for _, internal := range []string{"background", "idle-exit"} {
		_ = cmd.Flags().MarkHidden(internal) // the flags exist: it cannot fail
	}
	return cmd
}

// consentToReplace asks before an empty store replaces a lost one. Without a lost
// store it asks nothing.
func consentToReplace(ctx context.Context, a *App, yes bool) error {
	home, err := a.home()
	if err != nil {
		return err
	}
	c := maintain.New(home, "bridge serve", config.Settings{}, a.Now)
	_, err = check.HasStore(ctx, home)
	if !errors.Is(err, check.ErrLost) {
		return err
	}
	fmt.Fprintf(a.Stdout, "%s.\n%s\n", outcome.Sentence(err), c.Explain(maintain.TaskReplace, ""))
	return a.consent(yes)
}

func (a *App) serve(ctx context.Context, options daemon.Options) error {
	home, err := a.home()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	log, closeLog := worker.OpenLog(home, a.Getenv)
	defer closeLog()
	options = a.wired(options, home, log)
	running, err := a.startBroker(ctx, options)
	if bridge.CodeOf(err) == bridge.Conflict && options.Host == broker.HostBackground {
		return &outcome.ReportedError{Code: outcome.Failed} // another broker was faster, as usual when several sessions start one
	}
	if err != nil && options.Host == service.Host {
		log.Error("the service cannot serve", "err", err) // the user does not see its standard error
	}
	if err != nil {
		return err
	}
	if running == nil {
		return nil // it was asked to end while it waited
	}
	if options.Host != service.Host { // the key must not be in the system's journal
		link, err := running.LaunchURL()
		if err != nil {
			return errors.Join(err, running.Close())
		}
		fmt.Fprintf(a.Stdout, "bridge: ready %s\n", link)
		if running.RemainsPath() != "" {
			fmt.Fprintf(a.Stdout, "bridge: what was left of the lost store is kept in %s\n", running.RemainsPath())
		}
	}
	for _, sentence := range append(config.MisspeltVariables(os.Environ()), config.InvalidVariables(os.Environ())...) {
		log.Warn(sentence)
	}
	log.Info("ready", "url", running.URL(), "host", options.Host, "pid", os.Getpid(), "version", a.Version)
	select {
	case <-ctx.Done():
	case <-running.Done():
	}
	log.Info("ending", "pid", os.Getpid())
	return running.Close()
}

// startBroker starts a daemon. A service does not compete with a broker that a
// person started, with maintenance, or with a program that has the port. It waits
// until it can serve, and returns nil without an error if it was asked to end
// before. A lost store waits for its owner, and the service ends.
func (a *App) startBroker(ctx context.Context, options daemon.Options) (*daemon.Daemon, error) {
	notice := ""
	for {
		running, err := daemon.Start(ctx, options)
		code := bridge.CodeOf(err)
		if options.Host != service.Host || code != bridge.Conflict && code != bridge.Denied || errors.Is(err, check.ErrLost) {
			return running, err
		}
		if notice != err.Error() {
			notice = err.Error()
			options.Log.Warn("the service waits", "why", notice)
			fmt.Fprintf(a.Stderr, "bridge: the service waits: %s\n", notice) // the log's home may be the problem
		}
		select {
		case <-time.After(servicePause):
		case <-ctx.Done():
			return nil, nil //nolint:nilnil // documented: told to end while it waited
		}
	}
}

// servicePause is the interval of a waiting service's attempts.
const servicePause = time.Second
