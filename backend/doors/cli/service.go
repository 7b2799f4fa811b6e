package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"bridge/backend/doors/cli/outcome"
	"bridge/backend/doors/cli/service"
	"bridge/backend/doors/cli/usage"
	"bridge/backend/doors/daemon"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// serviceCommands are the commands for one service.
type serviceCommands struct {
	*App
	system  bool
	account string
}

func serviceCommand(a *App) *cobra.Command {
	s := &serviceCommands{App: a}
	parent := &cobra.Command{
		Use: "service", Short: "Run the broker as a service, without a screen", Args: usage.None,
		Long: "The broker as a service: on Linux a systemd unit that starts when you log in, or with --system when the\n" +
			"machine starts; on macOS the same by launchd; on Windows a service of the machine that runs as your account.",
		Example: "  bridge service install\n  bridge service start\n  sudo bridge service install --system --user alice\n  bridge service uninstall",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	parent.PersistentFlags().BoolVar(&s.system, "system", runtime.GOOS == "windows", "the machine's service, which starts at boot")
	parent.PersistentFlags().StringVar(&s.account, "user", "", "with --system: the account whose broker it is (default you, or who called sudo)")
	parent.AddCommand(
		s.verb("install", "Install Bridge as a service that starts automatically", s.told(service.Control.Install)),
		s.verb("uninstall", "Stop the service and remove what install wrote; your data stays", s.told(service.Control.Uninstall)),
		s.verb("start", "Start the service now", s.started(service.Control.Start)),
		s.verb("stop", "Stop the service until the next login or boot", s.told(service.Control.Stop)),
		s.verb("restart", "End the service and start it again", s.started(service.Control.Restart)),
		s.verb("status", "Show the service and who serves the home", s.status),
		s.logs(), s.run(),
	)
	return parent
}

// verb returns a command with one action on the service.
func (s *serviceCommands) verb(name, about string, do func(context.Context, service.Control) error) *cobra.Command {
	return s.jsonFlag(&cobra.Command{
		Use: name, Short: about, Example: "  bridge service " + name, Args: usage.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			meant, err := s.meant()
			if err != nil {
				return err
			}
			manager, err := meant.Manager()
			if err != nil {
				return err
			}
			return do(cmd.Context(), service.Control{Service: meant, Manager: manager, Broker: func(ctx context.Context) (*api.Status, error) {
				return s.brokerStatus(ctx, meant.Home)
			}})
		},
	})
}

// meant returns the service that flags and environment select.
func (s *serviceCommands) meant() (service.Service, error) {
	return service.Describe(service.Request{
		Home: s.homeFlag, Getenv: s.Getenv, System: s.system, Account: s.account, Password: s.askPassword,
	})
}

// askPassword reads the account's password, without echo from a terminal, or else
// the first line of standard input.
func (s *serviceCommands) askPassword(account string) (string, error) {
	fmt.Fprintf(s.Stderr, "Windows runs the service as %s and needs that account's password: ", account)
	defer fmt.Fprintln(s.Stderr)
	if input, ok := s.Stdin.(*os.File); ok && term.IsTerminal(int(input.Fd())) {
		password, err := term.ReadPassword(int(input.Fd()))
		return string(password), err
	}
	line, err := bufio.NewReader(s.Stdin).ReadString('\n')
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return strings.TrimRight(line, "\r\n"), err
}

// brokerStatus queries the home's broker; nil if none answers.
func (s *serviceCommands) brokerStatus(ctx context.Context, home config.Home) (*api.Status, error) {
	target, err := s.targetOf(home, false)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, brokerPatience)
	defer cancel()
	client, err := ipc.Dial(ctx, target, ipc.Hello{Role: api.RoleOwner, PID: os.Getpid(), Version: s.Version})
	if err != nil {
		return nil, nil //nolint:nilnil // nobody serves the home, which is an answer
	}
	defer client.Close()
	status, err := client.Status(ctx)
	if err != nil {
		return nil, nil //nolint:nilnil // it left
	}
	return &status, nil
}

// told returns a command's function that prints its actions as lines, or the whole
// report with --json.
func (s *serviceCommands) told(do func(service.Control, context.Context) ([]string, error)) func(context.Context, service.Control) error {
	return func(ctx context.Context, c service.Control) error {
		lines, err := do(c, ctx)
		if err != nil {
			return err
		}
		if !s.json {
			return s.print(nil, strings.Join(lines, "\n")+"\n")
		}
		report, err := c.Report(ctx)
		if err != nil {
			return err
		}
		return s.print(report, "")
	}
}

// started returns a command's function that succeeds when the service runs.
func (s *serviceCommands) started(do func(service.Control, context.Context) (service.Report, error)) func(context.Context, service.Control) error {
	return func(ctx context.Context, c service.Control) error {
		report, err := do(c, ctx)
		if err != nil {
			return err
		}
		if err := s.print(report, c.Service.Text(report)); err != nil {
			return err
		}
		if report.State != service.Running {
			return &outcome.ReportedError{Code: outcome.Failed}
		}
		return nil
	}
}

// status exits with 0 if the service runs, 1 if it failed, and 4 if none is
// reachable.
func (s *serviceCommands) status(ctx context.Context, c service.Control) error {
	report, err := c.Report(ctx)
	if err != nil {
		return err
	}
	if err := s.print(report, c.Service.Text(report)); err != nil {
		return err
	}
	switch report.State {
	case service.Running:
		return nil
	case service.Failed, service.Restarting:
		return &outcome.ReportedError{Code: outcome.Failed}
	default:
		return &outcome.ReportedError{Code: outcome.NoOne}
	}
}

func (s *serviceCommands) logs() *cobra.Command {
	var count int
	cmd := s.jsonFlag(&cobra.Command{
		Use: "logs", Short: "Show the last lines of the broker's log", Example: "  bridge service logs -n 100", Args: usage.None,
		RunE: func(*cobra.Command, []string) error {
			if count < 1 {
				return &outcome.UsageError{Err: errors.New("-n must be 1 or more")}
			}
			meant, err := s.meant()
			if err != nil {
				return err
			}
			lines, err := meant.LogLines(count)
			if err != nil {
				return err
			}
			return s.print(map[string]any{"file": meant.Home.Log(), "lines": lines}, strings.Join(lines, "\n")+"\n")
		},
	})
	cmd.Flags().IntVarP(&count, "lines", "n", 50, "how many lines")
	return cmd
}

// run returns the command that the service manager runs.
func (s *serviceCommands) run() *cobra.Command {
	return &cobra.Command{
		Use: "run", Short: "Be the service; the system's service manager starts this", Hidden: true, Args: usage.None,
		Example: "  bridge service run",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return service.Run(cmd.Context(), func(ctx context.Context) error {
				return s.serve(ctx, daemon.Options{Host: service.Host})
			})
		},
	}
}
