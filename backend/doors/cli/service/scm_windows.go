package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unsafe"

	kardianos "github.com/kardianos/service"
	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"

	"bridge/backend/core/bridge"
)

// windowsService is a service of the machine that runs as its owner's account. The
// broker's pipe answers only one account, so a service that ran as the system could
// serve no session.
type windowsService struct {
	Service
}

// Manager returns the service control manager. It fails with Invalid for a service of the
// account.
func (s Service) Manager() (Manager, error) {
	if !s.System {
		return nil, bridge.Errorf(bridge.Invalid, "on Windows a service is always the machine's; to start Bridge at login, let the desktop app do it")
	}
	return windowsService{s}, nil
}

// MayChange never fails: Windows decides, because it has several ways to grant it.
func (windowsService) MayChange() error { return nil }

func (m windowsService) config(password string) *kardianos.Config {
	return &kardianos.Config{
		Name: m.Name, DisplayName: "Bridge (" + m.Account + ")", Description: "Bridge between coding-agent sessions, " + m.Home.Dir(),
		Executable: m.Program, Arguments: m.Args(), UserName: m.Account, EnvVars: environment(m.Env),
		Option: kardianos.KeyValue{"Password": password, kardianos.OnFailure: kardianos.OnFailureRestart, kardianos.OnFailureDelayDuration: "2s"},
	}
}

// environment omits PATH: Windows gives a service its account's own.
func environment(entries []string) map[string]string {
	named := map[string]string{}
	for _, entry := range entries {
		if name, value, _ := strings.Cut(entry, "="); name != "PATH" {
			named[name] = value
		}
	}
	return named
}

func (m windowsService) manager(password string) (kardianos.Service, error) {
	return kardianos.New(&program{}, m.config(password))
}

// Install fails if the password cannot be read, with Denied without an administrator's rights,
// and otherwise with Internal.
func (m windowsService) Install(context.Context) ([]string, error) {
	password, err := m.password(m.Account)
	if err != nil {
		return nil, fmt.Errorf("read the password: %w", err)
	}
	manager, err := m.manager(password)
	if err != nil {
		return nil, err
	}
	if err := manager.Install(); err != nil {
		return nil, m.explain("installed", err)
	}
	return []string{
		"Made the Windows service " + m.Name + ", which starts with the machine as " + m.Account + ".",
		"Runs  " + m.Program + " " + strings.Join(m.Args(), " "),
		`The account must have the right "Log on as a service" (Local Security Policy, User Rights Assignment).`,
	}, nil
}

// Uninstall fails as Stop does, also if the service cannot be removed.
func (m windowsService) Uninstall(ctx context.Context) ([]string, error) {
	if state, err := m.Status(ctx); err == nil && state.State != Stopped {
		if err := m.Stop(ctx); err != nil {
			return nil, err
		}
	}
	manager, err := m.manager("")
	if err != nil {
		return nil, err
	}
	if err := manager.Uninstall(); err != nil {
		return nil, m.explain("removed", err)
	}
	return []string{"Stopped and removed the Windows service " + m.Name + "."}, nil
}

// Start fails with Denied without an administrator's rights or if Windows cannot log on as the
// account, and otherwise with Internal. A service that runs is no error.
func (m windowsService) Start(context.Context) error {
	manager, err := m.manager("")
	if err != nil {
		return err
	}
	err = manager.Start()
	if errors.Is(err, windows.ERROR_SERVICE_ALREADY_RUNNING) {
		return nil
	}
	return m.explain("started", err)
}

// Restart fails as Start does.
func (m windowsService) Restart(context.Context) error {
	manager, err := m.manager("")
	if err != nil {
		return err
	}
	return m.explain("restarted", manager.Restart())
}

// Stop fails with Denied without an administrator's rights, and otherwise with Internal.
func (m windowsService) Stop(context.Context) error {
	manager, err := m.manager("")
	if err != nil {
		return err
	}
	return m.explain("stopped", manager.Stop())
}

// explain makes the two common refusals readable.
func (m windowsService) explain(done string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, windows.ERROR_ACCESS_DENIED):
		return bridge.Errorf(bridge.Denied, "the service was not %s: that needs a terminal that was opened with \"Run as administrator\"", done)
	case errors.Is(err, windows.ERROR_SERVICE_LOGON_FAILED):
		return bridge.Errorf(bridge.Denied, "Windows could not log on as %s: either the password is wrong (uninstall and install again), or the account lacks the right \"Log on as a service\"", m.Account)
	default:
		return bridge.Errorf(bridge.Internal, "the service was not %s: %w", done, err)
	}
}

// Status queries with the rights that every user has. It fails if the service control manager
// refuses the query. A service that is not installed is no error.
func (m windowsService) Status(context.Context) (Status, error) {
	state := Status{State: Stopped}
	scm, err := windows.OpenSCManager(nil, nil, windows.SC_MANAGER_CONNECT)
	if err != nil {
		return state, m.explain("found", err)
	}
	connection := mgr.Mgr{Handle: scm}
	defer connection.Disconnect() //nolint:errcheck // nothing was changed
	name, err := windows.UTF16PtrFromString(m.Name)
	if err != nil {
		return state, bridge.Errorf(bridge.Invalid, "%q cannot name a service", m.Name)
	}
	handle, err := windows.OpenService(scm, name, windows.SERVICE_QUERY_CONFIG|windows.SERVICE_QUERY_STATUS)
	if errors.Is(err, windows.ERROR_SERVICE_DOES_NOT_EXIST) {
		return state, nil
	}
	if err != nil {
		return state, m.explain("found", err)
	}
	found := mgr.Service{Handle: handle, Name: m.Name}
	defer found.Close() //nolint:errcheck // nothing was changed
	state.Installed = true
	state.Automatic = startsByItself(handle)
	status, err := found.Query()
	if err != nil {
		return state, m.explain("asked", err)
	}
	state.PID = int(status.ProcessId)
	switch {
	case status.State == svc.Running:
		state.State = Running
	case status.State == svc.StartPending:
		state.State = Restarting
	case status.State == svc.Stopped && status.Win32ExitCode != 0 && status.Win32ExitCode != uint32(windows.ERROR_SERVICE_NEVER_STARTED):
		state.State = Failed
	}
	return state, nil
}

// startsByItself reads the part of the settings that every user may see.
func startsByItself(handle windows.Handle) bool {
	const most = 8 << 10 // Windows documents this maximum
	var answer [most / 8]uint64
	settings := (*windows.QUERY_SERVICE_CONFIG)(unsafe.Pointer(&answer[0])) //nolint:gosec // the call fills it in this layout
	var needed uint32
	err := windows.QueryServiceConfig(handle, settings, most, &needed)
	return err == nil && settings.StartType == windows.SERVICE_AUTO_START
}

// Journal returns the place of Windows' records of the service.
func (Service) Journal() string { return "the Windows event viewer" }
