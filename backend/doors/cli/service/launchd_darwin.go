package service

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	kardianos "github.com/kardianos/service"

	"bridge/backend/core/bridge"
)

// launchd runs the service on macOS through kardianos/service, with Bridge's own
// property list. The library's list restarts a broker that was asked to end, and
// writes its output to files without rotation.
type launchd struct {
	Service
	file string // the property list
}

// Manager returns launchd, for the machine or for the account. It fails with Invalid without a
// home folder of the user.
func (s Service) Manager() (Manager, error) {
	m := launchd{Service: s, file: filepath.Join("/Library/LaunchDaemons", s.Name+".plist")}
	if s.System {
		return m, nil
	}
	owner, err := os.UserHomeDir()
	if err != nil {
		return nil, bridge.Errorf(bridge.Invalid, "there is no user home folder: set HOME")
	}
	m.file = filepath.Join(owner, "Library", "LaunchAgents", s.Name+".plist")
	return m, nil
}

// MayChange fails with Denied for a service of the machine if the caller is not root.
func (m launchd) MayChange() error {
	if !m.System || os.Geteuid() == 0 {
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
		Name: m.Name, Executable: m.Program, Arguments: m.Args(), EnvVars: map[string]string{},
		Option: kardianos.KeyValue{"UserService": !m.System, "LaunchdConfig": launchdTemplate},
	}
	for _, entry := range m.Env {
		name, value, _ := strings.Cut(entry, "=")
		config.EnvVars[name] = value
	}
	if m.System {
		config.UserName = m.Account
	}
	return kardianos.New(&program{}, config)
}

// Install fails with Storage if the property list cannot be written.
func (m launchd) Install(context.Context) ([]string, error) {
	manager, err := m.manager()
	if err != nil {
		return nil, err
	}
	if err := manager.Install(); err != nil {
		return nil, bridge.Errorf(bridge.Storage, "the service was not installed: %w", err)
	}
	when := "whenever you log in"
	if m.System {
		when = "whenever the machine starts, as " + m.Account
	}
	return []string{"Wrote " + m.file, "Runs  " + m.Program + " " + strings.Join(m.Args(), " "), "launchd starts it " + when + "."}, nil
}

// Uninstall fails with Storage if the service cannot be stopped or its property list removed.
func (m launchd) Uninstall(context.Context) ([]string, error) {
	manager, err := m.manager()
	if err != nil {
		return nil, err
	}
	if err := manager.Uninstall(); err != nil { // it stops the service first
		return nil, bridge.Errorf(bridge.Storage, "the service was not removed: %w", err)
	}
	return []string{"Stopped " + m.Name + ".", "Removed " + m.file}, nil
}

// Start fails with Internal if launchctl fails.
func (m launchd) Start(context.Context) error { return m.order("started", kardianos.Service.Start) }

// Stop fails as Start does.
func (m launchd) Stop(context.Context) error { return m.order("stopped", kardianos.Service.Stop) }

// Restart fails as Start does.
func (m launchd) Restart(context.Context) error {
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

// Status returns only the library's information; it has no process id. It fails if launchctl
// fails. A service that is not installed is no error.
func (m launchd) Status(context.Context) (Status, error) {
	state := Status{State: Stopped, File: m.file}
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
		state.State = Running
	}
	return state, nil
}

// Journal returns the place of macOS's records of the service.
func (Service) Journal() string { return "the Console app" }
