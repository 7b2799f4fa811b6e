// Package service keeps a broker running by the system's own service manager
// (DSK-03): systemd, launchd or Windows' service control manager, each through
// kardianos/service. It describes the service (Describe), does with it what its
// owner asks (Control), and is the service's own process (Run).
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

// Host is the host of a broker that the system's service manager runs.
const Host = "service"

// Service is one broker as the system's service manager is to run it. A home
// has at most one for its owner's login and one for the whole machine; the
// election sees to it that only one of them serves.
type Service struct {
	Name    string // without a suffix; tells homes and, on the machine, accounts apart
	Program string // absolute path of this binary
	Home    config.Home
	System  bool // the machine's, started at boot; else the owner's, started at login
	Account string
	Env     []string // NAME=value, what the broker needs of the environment

	getenv   func(string) string
	password func(account string) (string, error)
}

// Request says which service is meant.
type Request struct {
	Home    string // --home, "" for the usual one
	Getenv  func(string) string
	System  bool
	Account string // whose broker it is, "" for the caller's, or who called sudo
	// Password asks for the account's password, where the system needs it.
	Password func(account string) (string, error)
}

// Manager is this system's way to keep programs running. Installing and
// removing answer in lines for people what was written.
type Manager interface {
	// MayChange refuses who has no right to anything but a look.
	MayChange() error
	Install(ctx context.Context) ([]string, error)
	Uninstall(ctx context.Context) ([]string, error)
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	Restart(ctx context.Context) error
	Status(ctx context.Context) (Status, error)
}

// Status is what the service manager says.
type Status struct {
	Installed bool   `json:"installed"`
	Automatic bool   `json:"automatic"` // starts by itself
	State     string `json:"state"`     // running, restarting, stopped or failed
	PID       int    `json:"pid"`       // 0 when it does not run
	File      string `json:"file"`      // the unit file; "" where there are none
}

// States of a service.
const (
	Running    = "running"
	Restarting = "restarting"
	Stopped    = "stopped"
	Failed     = "failed"
)

// plainAccount is an account name that may be part of a service's name.
var plainAccount = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

// Describe describes the service that a request means.
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
	if !r.System { // the files of the service lie below the owner's home
		if err := config.CheckOwner(owner.HomeDir); err != nil {
			return Service{}, err
		}
	}
	s := Service{
		Name: "bridge", Program: program, Home: home, System: r.System, Account: owner.Username, Env: keptEnv(os.Environ()),
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

// ownerOf is whose broker the service runs. Without a word about it that is the
// caller, and under sudo the caller's own account.
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

// keptEnv picks what a service manager would not hand on: where git is, and Bridge's own
// settings. Agents are found by the PATH of the login shell. Home and session name are of
// the moment and stay out.
func keptEnv(environ []string) []string {
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

// Args are what the program is run with.
func (s Service) Args() []string {
	args := []string{"service", "run"}
	if !s.Home.IsDefault() || runtime.GOOS == "windows" {
		args = append(args, "--home", s.Home.Dir())
	}
	return args
}

// Command is what a person types to do verb with this service.
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

// IsMine reports whether this process runs as the service's account, whose
// broker alone answers it.
func (s Service) IsMine() bool {
	current, err := user.Current()
	return err == nil && current.Username == s.Account
}
