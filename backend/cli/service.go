package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bridge/backend/bridge"
	"bridge/backend/broker"
	"bridge/backend/config"
	"bridge/backend/daemon"
	"bridge/backend/ipc"
	"bridge/backend/ipc/api"
	"bridge/backend/maintain"
)

// hostService is the host of a broker that the system's service manager runs
// (DSK-03).
const hostService = "service"

// service is one broker as the system's service manager is to run it. A home
// has at most one for its owner's login and one for the whole machine; the
// election sees to it that only one of them serves.
type service struct {
	name    string // without a suffix; tells homes and, on the machine, accounts apart
	program string // absolute path of this binary
	home    config.Home
	system  bool // the machine's, started at boot; else the owner's, started at login
	account string
	env     []string // NAME=value, what the broker needs of the environment
}

// args are what program is run with.
func (s service) args() []string {
	args := []string{"service", "run"}
	if !s.home.IsDefault() || runtime.GOOS == "windows" {
		args = append(args, "--home", s.home.Dir())
	}
	return args
}

// States of a service.
const (
	serviceRunning    = "running"
	serviceRestarting = "restarting"
	serviceStopped    = "stopped"
	serviceFailed     = "failed"
)

// serviceState is what the service manager says.
type serviceState struct {
	Installed bool   `json:"installed"`
	Automatic bool   `json:"automatic"` // starts by itself
	State     string `json:"state"`     // running, restarting, stopped or failed
	PID       int    `json:"pid"`       // 0 when it does not run
	File      string `json:"file"`      // the unit file; "" where there are none
}

// serviceManager is this system's way to keep programs running. Installing and
// removing answer in lines for people what was written.
type serviceManager interface {
	// mayChange refuses who has no right to anything but a look.
	mayChange() error
	install(ctx context.Context) ([]string, error)
	uninstall(ctx context.Context) ([]string, error)
	start(ctx context.Context) error
	stop(ctx context.Context) error
	restart(ctx context.Context) error
	state(ctx context.Context) (serviceState, error)
}

// serviceReport is what the service commands print with --json.
type serviceReport struct {
	Service string `json:"service"`
	System  bool   `json:"system"`
	Account string `json:"account"`
	Home    string `json:"home"`
	serviceState
	// Broker is who serves the home now; nil when nobody does, or when it belongs
	// to another account, whose broker answers nobody else.
	Broker *api.Status `json:"broker"`
}

// serves reports whether the service's own process is the home's broker.
func (r serviceReport) serves() bool { return r.Broker != nil && r.Broker.Host == hostService }

// waits reports whether the service runs and lets another broker, one that
// somebody started on purpose, go first.
func (r serviceReport) waits() bool {
	return r.State == serviceRunning && r.Broker != nil && r.Broker.Host != hostService && r.Broker.Host != broker.HostBackground
}

// serviceFlags are what every service command takes.
type serviceFlags struct {
	system  bool
	account string
}

func (a *App) serviceCommand() *cobra.Command {
	flags := &serviceFlags{}
	parent := &cobra.Command{
		Use: "service", Short: "Run the broker as a service, without a screen", Args: noArgs,
		Long: "The broker as a service: on Linux a systemd unit that starts when you log in, or with --system when the\n" +
			"machine starts; on macOS the same by launchd; on Windows a service of the machine that runs as your account.",
		Example: "  bridge service install\n  bridge service start\n  sudo bridge service install --system --user alice\n  bridge service uninstall",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	parent.PersistentFlags().BoolVar(&flags.system, "system", runtime.GOOS == "windows", "the machine's service, which starts at boot")
	parent.PersistentFlags().StringVar(&flags.account, "user", "", "with --system: the account whose broker it is (default you, or who called sudo)")
	parent.AddCommand(
		a.serviceVerb(flags, "install", "Write the service and have it start by itself", changes(a.serviceInstall)),
		a.serviceVerb(flags, "uninstall", "Stop the service and remove what install wrote; your data stays", changes(a.serviceUninstall)),
		a.serviceVerb(flags, "start", "Start the service now", changes(a.serviceStart)),
		a.serviceVerb(flags, "stop", "Stop the service until the next login or boot", changes(a.serviceStop)),
		a.serviceVerb(flags, "restart", "End the service and start it again", changes(a.serviceRestart)),
		a.serviceVerb(flags, "status", "Show the service and who serves the home", a.serviceStatus),
		a.serviceLogsCommand(flags), a.serviceRunCommand(),
	)
	return parent
}

// serviceVerb is a command that does one thing with the service.
func (a *App) serviceVerb(flags *serviceFlags, verb, about string, do serviceDeed) *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use: verb, Short: about, Example: "  bridge service " + verb, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.service(*flags)
			if err != nil {
				return err
			}
			manager, err := a.serviceManager(s)
			if err != nil {
				return err
			}
			return do(cmd.Context(), s, manager)
		},
	})
}

type serviceDeed func(context.Context, service, serviceManager) error

// changes is do for those who may.
func changes(do serviceDeed) serviceDeed {
	return func(ctx context.Context, s service, m serviceManager) error {
		if err := m.mayChange(); err != nil {
			return err
		}
		return do(ctx, s, m)
	}
}

// plainAccount is an account name that may be part of a service's name.
var plainAccount = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

// service describes the service that flags and environment mean.
func (a *App) service(flags serviceFlags) (service, error) {
	program, err := os.Executable()
	if err != nil {
		return service{}, fmt.Errorf("find this program: %w", err)
	}
	owner, err := a.serviceOwner(flags)
	if err != nil {
		return service{}, err
	}
	home, err := config.ResolveHome(a.homeFlag, func(name string) string {
		if name == "HOME" || name == "USERPROFILE" {
			return owner.HomeDir
		}
		return a.Getenv(name)
	})
	if err != nil {
		return service{}, err
	}
	s := service{name: "bridge", program: program, home: home, system: flags.system, account: owner.Username, env: serviceEnv(os.Environ())}
	if s.system {
		_, short, isDomain := strings.Cut(owner.Username, `\`)
		if !isDomain {
			short = owner.Username
		}
		if !plainAccount.MatchString(short) {
			return service{}, bridge.Errorf(bridge.Unsupported, "an account named %q cannot have a service of the machine", owner.Username)
		}
		s.name += "-" + short
	}
	if !home.IsDefault() {
		s.name += "-" + home.Key()
	}
	return s, nil
}

// serviceOwner is whose broker the service runs. Without a word about it that
// is the caller, and under sudo the caller's own account.
func (a *App) serviceOwner(flags serviceFlags) (*user.User, error) {
	if flags.account != "" && !flags.system {
		return nil, &usageError{errors.New("--user goes with --system; without it the service is your own")}
	}
	name := flags.account
	if name == "" && flags.system && os.Geteuid() == 0 {
		name = a.Getenv("SUDO_USER")
	}
	if name != "" {
		owner, err := user.Lookup(name)
		if err != nil {
			return nil, bridge.Errorf(bridge.NotFound, "there is no account %q on this machine", name)
		}
		return owner, nil
	}
	owner, err := user.Current()
	if err != nil {
		return nil, fmt.Errorf("find the current account: %w", err)
	}
	if dir, err := os.UserHomeDir(); err == nil {
		owner.HomeDir = dir
	}
	return owner, nil
}

// serviceEnv picks what a service manager would not hand on: where programs
// are, for the broker starts agents, and Bridge's own settings. Home and
// session name are of the moment and stay out.
func serviceEnv(environ []string) []string {
	var picked []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		ours := strings.HasPrefix(name, "BRIDGE_") && name != "BRIDGE_HOME" && name != "BRIDGE_NAME"
		if (name == "PATH" || ours) && !strings.ContainsFunc(entry, isControl) {
			picked = append(picked, entry)
		}
	}
	return picked
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

func (a *App) serviceInstall(ctx context.Context, s service, m serviceManager) error {
	state, err := m.state(ctx)
	if err != nil {
		return err
	}
	if state.Installed {
		return bridge.Errorf(bridge.Conflict, "the service %s is installed already; `bridge service uninstall` removes it", s.name)
	}
	lines, err := m.install(ctx)
	if err != nil {
		return err
	}
	return a.printService(ctx, s, m, append(lines, "Start it now with `"+s.command("start")+"`."))
}

// command is what a person types to do verb with this service.
func (s service) command(verb string) string {
	line := "bridge service " + verb
	if s.system && runtime.GOOS != "windows" {
		line = "sudo " + line + " --system --user " + s.account
	}
	if !s.home.IsDefault() {
		line += ` --home "` + s.home.Dir() + `"`
	}
	return line
}

func (a *App) serviceUninstall(ctx context.Context, s service, m serviceManager) error {
	if _, err := installedState(ctx, s, m); err != nil {
		return err
	}
	lines, err := m.uninstall(ctx)
	if err != nil {
		return err
	}
	return a.printService(ctx, s, m, append(lines, "Your messages and decisions are kept in "+s.home.Dir()+"."))
}

// installedState is the state of a service that must be there.
func installedState(ctx context.Context, s service, m serviceManager) (serviceState, error) {
	state, err := m.state(ctx)
	if err == nil && !state.Installed {
		err = bridge.Errorf(bridge.NotFound, "the service %s is not installed; `%s` does that", s.name, s.command("install"))
	}
	return state, err
}

func (a *App) serviceStart(ctx context.Context, s service, m serviceManager) error {
	return a.bringUp(ctx, s, m, m.start)
}

func (a *App) serviceRestart(ctx context.Context, s service, m serviceManager) error {
	return a.bringUp(ctx, s, m, m.restart)
}

// bringUp has the service manager start an installed service and says what came
// of it.
func (a *App) bringUp(ctx context.Context, s service, m serviceManager, start func(context.Context) error) error {
	if _, err := installedState(ctx, s, m); err != nil {
		return err
	}
	if s.isMine() {
		if _, err := (maintain.Caretaker{Home: s.home}).HasStore(ctx); errors.Is(err, maintain.ErrLost) {
			return err
		}
	}
	if err := start(ctx); err != nil {
		return err
	}
	report, err := a.awaitService(ctx, s, m)
	if err != nil {
		return err
	}
	if err := a.print(report, serviceText(s, report)); err != nil {
		return err
	}
	if report.State != serviceRunning {
		return &reported{exitFailed}
	}
	return nil
}

// startPatience is how long start watches what becomes of the service.
const startPatience = 30 * time.Second

// awaitService waits until the service serves, waits for another broker, or has
// failed. Of another account's service only the manager's word is to be had.
func (a *App) awaitService(ctx context.Context, s service, m serviceManager) (serviceReport, error) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	pause := startPause
	if !s.isMine() {
		pause = foreignPause
	}
	for {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		report, err := a.serviceReport(context.WithoutCancel(ctx), s, m)
		settled := report.serves() || report.waits() || report.State == serviceFailed || report.State == serviceStopped || !s.isMine()
		if err != nil || settled || ctx.Err() != nil {
			return report, err
		}
	}
}

// How often start looks at its own account's service, and how long it gives
// another's to fail.
const (
	startPause   = 100 * time.Millisecond
	foreignPause = 2 * time.Second
)

// isMine reports whether this process runs as the service's account, whose
// broker alone answers it.
func (s service) isMine() bool {
	current, err := user.Current()
	return err == nil && current.Username == s.account
}

func (a *App) serviceStop(ctx context.Context, s service, m serviceManager) error {
	state, err := installedState(ctx, s, m)
	if err != nil {
		return err
	}
	if state.State == serviceStopped {
		return a.printService(ctx, s, m, []string{"The service " + s.name + " did not run."})
	}
	if err := m.stop(ctx); err != nil {
		return err
	}
	return a.printService(ctx, s, m, []string{"The service " + s.name + " is stopped. A session that needs a broker starts one in the background."})
}

// serviceStatus ends with 0 when the service runs, 1 when it failed, and 4 when
// there is none to talk to.
func (a *App) serviceStatus(ctx context.Context, s service, m serviceManager) error {
	report, err := a.serviceReport(ctx, s, m)
	if err != nil {
		return err
	}
	if err := a.print(report, serviceText(s, report)); err != nil {
		return err
	}
	switch report.State {
	case serviceRunning:
		return nil
	case serviceFailed, serviceRestarting:
		return &reported{exitFailed}
	default:
		return &reported{exitNoOne}
	}
}

func (a *App) serviceReport(ctx context.Context, s service, m serviceManager) (serviceReport, error) {
	state, err := m.state(ctx)
	report := serviceReport{Service: s.name, System: s.system, Account: s.account, Home: s.home.Dir(), serviceState: state}
	if err != nil || !s.isMine() {
		return report, err
	}
	target, err := a.targetOf(s.home, false)
	if err != nil {
		return report, err
	}
	ctx, cancel := context.WithTimeout(ctx, brokerPatience)
	defer cancel()
	client, err := ipc.Dial(ctx, target, ipc.Hello{Role: api.RoleOwner, PID: os.Getpid(), Version: a.Version})
	if err != nil {
		return report, nil // nobody serves the home, which is an answer
	}
	defer client.Close()
	if status, err := client.Status(ctx); err == nil {
		report.Broker = &status
	}
	return report, nil
}

// printService prints lines, or the whole report with --json.
func (a *App) printService(ctx context.Context, s service, m serviceManager, lines []string) error {
	if !a.json {
		return a.print(nil, strings.Join(lines, "\n")+"\n")
	}
	report, err := a.serviceReport(ctx, s, m)
	if err != nil {
		return err
	}
	return a.print(report, "")
}

func serviceText(s service, r serviceReport) string {
	var b strings.Builder
	if !r.Installed {
		fmt.Fprintf(&b, "Service  %s is not installed; `%s` does that\n", s.name, s.command("install"))
	} else {
		starts := "does not start by itself"
		switch {
		case r.Automatic && s.system:
			starts = "starts with the machine"
		case r.Automatic:
			starts = "starts when you log in"
		}
		fmt.Fprintf(&b, "Service  %s, account %s, %s\n", s.name, s.account, starts)
		state := r.State
		if r.PID > 0 {
			state += fmt.Sprintf(", process %d", r.PID)
		}
		fmt.Fprintf(&b, "State    %s\n", state)
	}
	fmt.Fprintf(&b, "Broker   %s\n", serviceBroker(s, r))
	fmt.Fprintf(&b, "Home     %s\n", r.Home)
	if r.File != "" && r.Installed {
		fmt.Fprintf(&b, "File     %s\n", r.File)
	}
	if r.Installed && r.State != serviceRunning {
		fmt.Fprintf(&b, "Why      `%s` shows what it said, %s what the system saw\n", s.command("logs"), s.journal())
	}
	return b.String()
}

// serviceBroker says who serves the home.
func serviceBroker(s service, r serviceReport) string {
	switch {
	case !s.isMine():
		return "only " + s.account + " may ask it: run this as that account"
	case r.Broker == nil:
		return "none serves this home"
	case r.serves():
		return fmt.Sprintf("this service, version %s, %s", r.Broker.Version, r.Broker.URL)
	case r.waits():
		return fmt.Sprintf("process %d (%s) serves this home; the service waits and takes over when that one ends", r.Broker.PID, r.Broker.Host)
	default:
		return fmt.Sprintf("process %d (%s) serves this home", r.Broker.PID, r.Broker.Host)
	}
}

func (a *App) serviceLogsCommand(flags *serviceFlags) *cobra.Command {
	var count int
	cmd := a.jsonFlag(&cobra.Command{
		Use: "logs", Short: "Show the last lines of the broker's log", Example: "  bridge service logs -n 100", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if count < 1 {
				return &usageError{errors.New("-n must be 1 or more")}
			}
			s, err := a.service(*flags)
			if err != nil {
				return err
			}
			lines, err := lastLines(s.home.Log(), count)
			if errors.Is(err, fs.ErrNotExist) {
				if _, err := a.serviceManager(s); err != nil {
					return bridge.Errorf(bridge.NotFound, "no broker has written %s yet", s.home.Log())
				}
				return bridge.Errorf(bridge.NotFound, "no broker has written %s yet; %s may know why", s.home.Log(), s.journal())
			}
			if err != nil {
				return fmt.Errorf("read the log: %w", err)
			}
			return a.print(map[string]any{"file": s.home.Log(), "lines": lines}, strings.Join(lines, "\n")+"\n")
		},
	})
	cmd.Flags().IntVarP(&count, "lines", "n", 50, "how many lines")
	return cmd
}

// lastLines returns the last lines of a log, which rotation keeps small.
func lastLines(path string, count int) ([]string, error) {
	raw, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(bytes.TrimRight(raw, "\n")), "\n")
	return lines[max(0, len(lines)-count):], nil
}

// serviceRunCommand is what the service manager runs.
func (a *App) serviceRunCommand() *cobra.Command {
	return &cobra.Command{
		Use: "run", Short: "Be the service; the system's service manager starts this", Hidden: true, Args: noArgs,
		Example: "  bridge service run",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runAsService(cmd.Context(), func(ctx context.Context) error {
				return a.serve(ctx, daemon.Options{Host: hostService})
			})
		},
	}
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
		if options.Host != hostService || code != bridge.Conflict && code != bridge.Denied || errors.Is(err, maintain.ErrLost) {
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
