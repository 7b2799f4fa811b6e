// Package service keeps a broker running by the system's service manager (DSK-03):
// systemd, launchd or Windows' service control manager, each through
// kardianos/service. It describes the service (Describe), executes its owner's
// actions (Control), and is the service's own process (Run).
package service

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"regexp"
	"runtime"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
)

// Host is the Host value of a broker that the system's service manager runs.
const Host = "service"

// Service is one broker for the system's service manager. A home has at most one
// for its owner's login and one for the whole machine; the election lets only one
// of them serve.
type Service struct {
	Name    string // without a suffix; distinguishes homes and, on the machine, accounts
	Program string // absolute path of this binary
	Home    config.Home
	System  bool // the machine's, started at boot; or else the owner's, started at login
	Account string
	Env     []string // NAME=value: the environment that the broker needs

	getenv   func(string) string
	password func(account string) (string, error)
}

// Request selects a service.
type Request struct {
	Home    string // --home; "" for the default one
	Getenv  func(string) string
	System  bool
	Account string // the broker's account; "" for the caller's, or the user of sudo
	// Password asks for the account's password, if the system needs it.
	Password func(account string) (string, error)
}

// Manager is this system's service manager. Install and Uninstall return
// descriptions of their changes.
type Manager interface {
	// MayChange fails if the user may only read the status.
	MayChange() error
	Install(ctx context.Context) ([]string, error)
	Uninstall(ctx context.Context) ([]string, error)
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	Restart(ctx context.Context) error
	Status(ctx context.Context) (Status, error)
}

// Status is the service manager's report.
type Status struct {
	Installed bool   `json:"installed"`
	Automatic bool   `json:"automatic"` // starts automatically
	State     string `json:"state"`     // running, restarting, stopped or failed
	PID       int    `json:"pid"`       // 0 if it does not run
	File      string `json:"file"`      // the unit file; "" without one
}

// The states of a service.
const (
	Running    = "running"
	Restarting = "restarting"
	Stopped    = "stopped"
	Failed     = "failed"
)

// plainAccount matches an account name that may be part of a service's name.
var plainAccount = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

// Describe returns the service that a request selects. It fails for an invalid request.
func Describe(r Request) (Service, error) {
	program, err := os.Executable()
	if err != nil {
		return Service{}, fmt.Errorf("find this program: %w", err)
	}
	owner, err := ownerOf(r)
	if err != nil {
		return Service{}, err
	}
	home, err := config.ResolveHome(r.Home, func(name string) string {
		if name == "HOME" || name == "USERPROFILE" {
			return owner.HomeDir
		}
		return r.Getenv(name)
	})
	if err == nil {
		err = config.CheckContents(home)
	}
	if err != nil {
		return Service{}, err
	}
	if !r.System { // the service's files are below the owner's home
		if err := config.CheckOwner(owner.HomeDir); err != nil {
			return Service{}, err
		}
	}
	s := Service{
		Name: "bridge", Program: program, Home: home, System: r.System, Account: owner.Username, Env: serviceEnv(os.Environ()),
		getenv: r.Getenv, password: r.Password,
	}
	if s.System {
		_, short, isDomain := strings.Cut(owner.Username, `\`)
		if !isDomain {
			short = owner.Username
		}
		if !plainAccount.MatchString(short) {
			return Service{}, bridge.Errorf(bridge.Unsupported, "an account named %q cannot have a service of the machine", owner.Username)
		}
		s.Name += "-" + short
	}
	if !home.IsDefault() {
		s.Name += "-" + home.Key()
	}
	return s, nil
}

// ownerOf returns the account of the service's broker. By default that is the
// caller, and under sudo the account that called sudo.
func ownerOf(r Request) (*user.User, error) {
	if r.Account != "" && !r.System {
		return nil, bridge.Errorf(bridge.Invalid, "--user goes with --system; without it the service is your own")
	}
	name := r.Account
	if name == "" && r.System && os.Geteuid() == 0 {
		name = r.Getenv("SUDO_USER")
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

// serviceEnv returns the variables that a service manager would not pass on: the
// location of git, and Bridge's own settings. Agents are found by the login shell's
// PATH. It omits the home and the session name, which vary by call.
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

// Args returns the arguments of the program.
func (s Service) Args() []string {
	args := []string{"service", "run"}
	if !s.Home.IsDefault() || runtime.GOOS == "windows" {
		args = append(args, "--home", s.Home.Dir())
	}
	return args
}

// Command returns the command that a person types for an action on this service.
func (s Service) Command(verb string) string {
	line := "bridge service " + verb
	if s.System && runtime.GOOS != "windows" {
		line = "sudo " + line + " --system --user " + s.Account
	}
	if !s.Home.IsDefault() {
		line += ` --home "` + s.Home.Dir() + `"`
	}
	return line
}

// IsMine reports whether this process runs as the service's account, because its
// broker answers only that account.
func (s Service) IsMine() bool {
	current, err := user.Current()
	return err == nil && current.Username == s.Account
}
