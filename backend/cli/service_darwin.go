package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	kardianos "github.com/kardianos/service"

	"bridge/backend/bridge"
)

// launchd keeps the service on macOS through kardianos/service, with a property
// list of ours: the library's own restarts a broker that was told to end, and
// collects what it prints in files that nothing rotates.
type launchd struct {
	service
	file string // the property list
}

func (a *App) serviceManager(s service) (serviceManager, error) {
	m := launchd{service: s, file: filepath.Join("/Library/LaunchDaemons", s.name+".plist")}
	if s.system {
		return m, nil
	}
	owner, err := os.UserHomeDir()
	if err != nil {
		return nil, bridge.Errorf(bridge.Invalid, "there is no user home folder: set HOME")
	}
	m.file = filepath.Join(owner, "Library", "LaunchAgents", s.name+".plist")
	return m, nil
}

func (m launchd) mayChange() error {
	if !m.system || os.Geteuid() == 0 {
		return nil
	}
	return bridge.Errorf(bridge.Denied, "a service of the machine is root's to change: put sudo in front, or leave out --system for a service of your own")
}

// launchdTemplate is the property list in the template language of
// kardianos/service.
const launchdTemplate = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- Written by "bridge service install"; "bridge service uninstall" removes it. -->
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>{{Name | html}}</string>
	<key>ProgramArguments</key>
	<array>
		<string>{{Path | html}}</string>
{{range Arguments}}		<string>{{. | html}}</string>
{{end}}	</array>
	<key>RunAtLoad</key>
	<true/>
	<key>KeepAlive</key>
	<dict>
		<key>SuccessfulExit</key>
		<false/>
	</dict>
{{if UserName}}	<key>UserName</key>
	<string>{{UserName | html}}</string>
{{end}}	<key>EnvironmentVariables</key>
	<dict>
{{range EnvVars}}{{.}}
{{end}}	</dict>
</dict>
</plist>
`

func (m launchd) manager() (kardianos.Service, error) {
	config := &kardianos.Config{
		Name: m.name, Executable: m.program, Arguments: m.args(), EnvVars: map[string]string{},
		Option: kardianos.KeyValue{"UserService": !m.system, "LaunchdConfig": launchdTemplate},
	}
	for _, entry := range m.env {
		name, value, _ := strings.Cut(entry, "=")
		config.EnvVars[name] = value
	}
	if m.system {
		config.UserName = m.account
	}
	return kardianos.New(&serviceProgram{}, config)
}

func (m launchd) install(context.Context) ([]string, error) {
	manager, err := m.manager()
	if err != nil {
		return nil, err
	}
	if err := manager.Install(); err != nil {
		return nil, bridge.Errorf(bridge.Storage, "the service was not installed: %w", err)
	}
	when := "whenever you log in"
	if m.system {
		when = "whenever the machine starts, as " + m.account
	}
	return []string{"Wrote " + m.file, "Runs  " + m.program + " " + strings.Join(m.args(), " "), "launchd starts it " + when + "."}, nil
}

func (m launchd) uninstall(context.Context) ([]string, error) {
	manager, err := m.manager()
	if err != nil {
		return nil, err
	}
	if err := manager.Uninstall(); err != nil { // it stops the service first
		return nil, bridge.Errorf(bridge.Storage, "the service was not removed: %w", err)
	}
	return []string{"Stopped " + m.name + ".", "Removed " + m.file}, nil
}

func (m launchd) start(context.Context) error { return m.order("started", kardianos.Service.Start) }
func (m launchd) stop(context.Context) error  { return m.order("stopped", kardianos.Service.Stop) }
func (m launchd) restart(context.Context) error {
	return m.order("restarted", kardianos.Service.Restart)
}

func (m launchd) order(done string, do func(kardianos.Service) error) error {
	manager, err := m.manager()
	if err != nil {
		return err
	}
	if err := do(manager); err != nil {
		return bridge.Errorf(bridge.Internal, "the service was not %s: %w", done, err)
	}
	return nil
}

// state is as much as the library tells; it names no process.
func (m launchd) state(context.Context) (serviceState, error) {
	state := serviceState{State: serviceStopped, File: m.file}
	manager, err := m.manager()
	if err != nil {
		return state, err
	}
	status, err := manager.Status()
	if errors.Is(err, kardianos.ErrNotInstalled) {
		return state, nil
	}
	if err != nil {
		return state, err
	}
	state.Installed, state.Automatic = true, true
	if status == kardianos.StatusRunning {
		state.State = serviceRunning
	}
	return state, nil
}

// journal is where macOS keeps what it saw of the service.
func (service) journal() string { return "the Console app" }
