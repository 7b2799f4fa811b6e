package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"gopkg.in/natefinch/lumberjack.v2"

	"bridge/backend/bridge"
	"bridge/backend/broker"
	"bridge/backend/cli/service"
	"bridge/backend/config"
	"bridge/backend/daemon"
	"bridge/backend/disk"
	"bridge/backend/ipc"
	"bridge/backend/ipc/api"
	"bridge/backend/maintain"
	"bridge/backend/proc"
)

// defaultIdleExit is how long a background broker stays when nothing needs it.
const defaultIdleExit = time.Minute

func (a *App) serveCommand() *cobra.Command {
	var port int
	var background, anew, yes bool
	var idleExit time.Duration
	cmd := &cobra.Command{
		Use: "serve", Short: "Run broker and dashboard in the foreground",
		Example: "  bridge serve\n  bridge serve --port 0\n  bridge serve --new-store", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options := daemon.Options{Host: "serve"}
			if cmd.Flags().Changed("port") {
				if port < 0 || port > 65535 {
					return &usageError{fmt.Errorf("--port must be 0 to 65535")}
				}
				options.Port = &port
			}
			if yes && !anew {
				return &usageError{errors.New("--yes goes with --new-store")}
			}
			if anew {
				if err := a.consentToReplace(cmd.Context(), yes); err != nil {
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
	cmd.Flags().BoolVar(&anew, "new-store", false, "begin with an empty store where an earlier one is lost; what is left of that is kept")
	cmd.Flags().BoolVar(&yes, "yes", false, "consent to --new-store without being asked")
	cmd.Flags().BoolVar(&background, "background", false, "leave when nothing needs the broker any more")
	cmd.Flags().DurationVar(&idleExit, "idle-exit", defaultIdleExit, "with --background: how long to stay unneeded")
	for _, internal := range []string{"background", "idle-exit"} {
		_ = cmd.Flags().MarkHidden(internal) // the flags exist: it cannot fail
	}
	return cmd
}

// consentToReplace asks before an empty store takes the place of a lost one. Where
// none is lost there is nothing to ask.
func (a *App) consentToReplace(ctx context.Context, yes bool) error {
	home, err := a.home()
	if err != nil {
		return err
	}
	c := maintain.Caretaker{Home: home}
	_, err = c.HasStore(ctx)
	if !errors.Is(err, maintain.ErrLost) {
		return err
	}
	fmt.Fprintf(a.Stdout, "%s.\n%s\n", oneLine(err), c.Explain(maintain.WorkReplace, ""))
	return a.consent(yes)
}

func (a *App) serve(ctx context.Context, options daemon.Options) error {
	home, err := a.home()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	log, closeLog := a.openLog(home)
	defer closeLog()
	options = a.wired(options, home, log)
	running, err := a.startBroker(ctx, options)
	if bridge.CodeOf(err) == bridge.Conflict && options.Host == broker.HostBackground {
		return &reported{exitFailed} // another was quicker, as it happens whenever several sessions start one
	}
	if err != nil && options.Host == service.Host {
		log.Error("the service cannot serve", "err", err) // its standard error is far away
	}
	if err != nil {
		return err
	}
	if running == nil {
		return nil // told to end while it waited for its turn
	}
	if options.Host != service.Host { // the key is not for the system's journal
		link, err := running.LaunchURL()
		if err != nil {
			return errors.Join(err, running.Close())
		}
		fmt.Fprintf(a.Stdout, "bridge: ready %s\n", link)
		if running.Kept() != "" {
			fmt.Fprintf(a.Stdout, "bridge: what was left of the lost store is kept in %s\n", running.Kept())
		}
	}
	log.Info("ready", "url", running.URL(), "host", options.Host, "pid", os.Getpid(), "version", a.Version)
	select {
	case <-ctx.Done():
	case <-running.Done():
	}
	log.Info("ending", "pid", os.Getpid())
	return running.Close()
}

// startBroker starts a daemon. A service does not compete with a broker that
// somebody started on purpose, nor with maintenance or a program that has the
// port: it waits until it can serve, and is nil without an error when it was
// told to end before. A lost store waits for its owner, and the service ends.
func (a *App) startBroker(ctx context.Context, options daemon.Options) (*daemon.Daemon, error) {
	told := ""
	for {
		running, err := daemon.Start(ctx, options)
		code := bridge.CodeOf(err)
		if options.Host != service.Host || code != bridge.Conflict && code != bridge.Denied || errors.Is(err, maintain.ErrLost) {
			return running, err
		}
		if told != err.Error() {
			told = err.Error()
			options.Log.Warn("the service waits", "why", told)
			fmt.Fprintf(a.Stderr, "bridge: the service waits: %s\n", told) // the log's home may be what is wrong
		}
		select {
		case <-time.After(servicePause):
		case <-ctx.Done():
			return nil, nil //nolint:nilnil // documented: told to end while it waited
		}
	}
}

// servicePause is how often a waiting service tries again.
const servicePause = time.Second

// Sizes of the rotated log.
const (
	logMegabytes = 5
	logKept      = 3
)

// openLog opens the home's rotated log. Nothing is written, and no folder made,
// before the first line.
func (a *App) openLog(home config.Home) (*slog.Logger, func()) {
	level := slog.LevelInfo
	if settings, err := home.Settings(a.Getenv); err == nil {
		level = settings.LogLevel
	}
	file := &logFile{home: home, Logger: lumberjack.Logger{Filename: home.Log(), MaxSize: logMegabytes, MaxBackups: logKept}}
	return slog.New(slog.NewTextHandler(file, &slog.HandlerOptions{Level: level})), func() { _ = file.Close() }
}

// logFile makes the log's folder for the owner alone before the library would
// make it for everyone.
type logFile struct {
	home config.Home
	made sync.Once
	lumberjack.Logger
}

func (l *logFile) Write(line []byte) (int, error) {
	l.made.Do(func() { _ = disk.MakeDir(l.home.Logs()) }) // if it fails, so does the write
	return l.Logger.Write(line)
}

// target is the address of the home's broker; the home and its token are made
// when this is the first use.
func (a *App) target(home config.Home) (ipc.Target, error) {
	if err := home.Ensure(); err != nil {
		return ipc.Target{}, err
	}
	token, err := home.Token()
	if err != nil {
		return ipc.Target{}, err
	}
	return ipc.Target{Socket: home.Socket(), Token: string(token)}, nil
}

// startBackground starts a broker that outlives this process. Where none can
// run, it says why and starts nothing.
func (a *App) startBackground(home config.Home) ipc.Starter {
	return func() (<-chan struct{}, error) {
		if err := daemon.Check(context.Background(), home, a.Getenv); err != nil {
			return nil, err
		}
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
		started, err := proc.StartDetached(proc.Command{
			Path: self, Args: []string{"serve", "--background", "--home", home.Dir()}, Dir: home.Dir(), LogFile: home.Log() + ".start",
		})
		if err != nil {
			return nil, bridge.Errorf(bridge.Storage, "a broker could not be started: %w", err)
		}
		return started.Done(), nil
	}
}

// brokerPatience bounds how long a command waits for the broker's first answer.
const brokerPatience = 5 * time.Second

// dialOwner connects to the broker as the owner. With start, one is started
// where none runs.
func (a *App) dialOwner(ctx context.Context, start bool) (*ipc.Client, config.Home, error) {
	home, err := a.home()
	if err != nil {
		return nil, home, err
	}
	target, err := a.targetOf(home, start)
	if err != nil {
		return nil, home, err
	}
	hello := ipc.Hello{Role: api.RoleOwner, PID: os.Getpid(), Version: a.Version}
	var starter ipc.Starter
	if start {
		starter = a.startBackground(home)
	}
	ctx, cancel := context.WithTimeout(ctx, brokerPatience)
	defer cancel()
	client, err := ipc.DialOrStart(ctx, target, hello, starter)
	return client, home, err
}

// targetOf makes the home only for a command that may start a broker.
func (a *App) targetOf(home config.Home, create bool) (ipc.Target, error) {
	if create {
		return a.target(home)
	}
	token, err := home.ExistingToken()
	if bridge.CodeOf(err) == bridge.NotFound {
		return ipc.Target{Socket: home.Socket()}, nil // no bridge ran here yet: nobody will answer
	}
	if err != nil {
		return ipc.Target{}, err
	}
	return ipc.Target{Socket: home.Socket(), Token: string(token)}, nil
}
