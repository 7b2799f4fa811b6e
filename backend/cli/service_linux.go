package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"bridge/backend/bridge"
	"bridge/backend/disk"
)

// systemd keeps the service on Linux. The units are written here and not by
// kardianos/service: its user units ask for a target that no login reaches, and
// merely importing it searches PATH and the disk at the start of every process,
// each hook's included.
type systemd struct {
	service
	file    string // the unit file
	runtime string // XDG_RUNTIME_DIR of the account, for its own manager
}

func (a *App) serviceManager(s service) (serviceManager, error) {
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		return nil, bridge.Errorf(bridge.Unsupported, "this system is not run by systemd, so it has no service manager that Bridge knows: start `bridge serve` by its own means")
	}
	if _, err := exec.LookPath("systemctl"); err != nil {
		return nil, bridge.Errorf(bridge.Unsupported, "systemctl is not on PATH, so no service can be managed")
	}
	m := systemd{service: s, file: filepath.Join("/etc/systemd/system", s.name+".service")}
	if s.system {
		return m, nil
	}
	settings := a.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(settings) {
		userHome, err := os.UserHomeDir()
		if err != nil {
			return nil, bridge.Errorf(bridge.Invalid, "there is no user home folder: set HOME")
		}
		settings = filepath.Join(userHome, ".config")
	}
	m.file = filepath.Join(settings, "systemd", "user", s.name+".service")
	m.runtime = a.Getenv("XDG_RUNTIME_DIR")
	if m.runtime == "" {
		m.runtime = "/run/user/" + strconv.Itoa(os.Geteuid()) // su and sudo do not set it
	}
	if _, err := os.Stat(filepath.Join(m.runtime, "systemd")); err != nil {
		return nil, bridge.Errorf(bridge.Unsupported, "no systemd runs for your account: log in on this machine, or run `sudo loginctl enable-linger %s` once and try again", s.account)
	}
	return m, nil
}

func (m systemd) mayChange() error {
	if !m.system || os.Geteuid() == 0 {
		return nil
	}
	return bridge.Errorf(bridge.Denied, "a service of the machine is root's to change: put sudo in front, or leave out --system for a service of your own")
}

// unit is the unit file's text. It restricts nothing: the broker starts agents,
// and whatever a unit forbids is forbidden to everything below it; they must be
// able to do what their owner can, sudo included.
func (m systemd) unit() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by `bridge service install`; `bridge service uninstall` removes it.\n[Unit]\n")
	fmt.Fprintf(&b, "Description=Bridge between coding-agent sessions (%s)\n", escapeSpecifiers(m.home.Dir()))
	fmt.Fprintf(&b, "ConditionFileIsExecutable=%s\n", escapeSpecifiers(m.program))
	b.WriteString("StartLimitIntervalSec=60\nStartLimitBurst=10\n\n[Service]\nType=exec\n")
	if m.system {
		fmt.Fprintf(&b, "User=%s\nWorkingDirectory=~\n", m.account)
	}
	fmt.Fprintf(&b, "ExecStart=%s", quoteUnit(m.program))
	for _, arg := range m.args() {
		b.WriteString(" " + strings.ReplaceAll(quoteUnit(arg), "$", "$$"))
	}
	b.WriteString("\nRestart=on-failure\nRestartSec=2\n")
	b.WriteString("# Runs and their agents go on when the broker ends or one of them is out of memory.\nKillMode=process\nOOMPolicy=continue\n")
	for _, entry := range m.env {
		fmt.Fprintf(&b, "Environment=%s\n", quoteUnit(entry))
	}
	fmt.Fprintf(&b, "\n[Install]\nWantedBy=%s\n", m.target())
	return b.String()
}

// target is what pulls the service in: every login, or a machine that is up.
func (m systemd) target() string {
	if m.system {
		return "multi-user.target"
	}
	return "default.target"
}

func escapeSpecifiers(text string) string { return strings.ReplaceAll(text, "%", "%%") }

// quoteUnit makes text one word of a unit file.
func quoteUnit(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(text) + `"`
}

func (m systemd) install(ctx context.Context) ([]string, error) {
	if strings.ContainsFunc(m.program+m.home.Dir(), isControl) {
		return nil, bridge.Errorf(bridge.Invalid, "the path of the program or of the home holds a control character, which no unit file can")
	}
	if err := disk.MakeDir(filepath.Dir(m.file)); err != nil {
		return nil, bridge.Errorf(bridge.Storage, "%w", err)
	}
	err := disk.WriteNew(m.file, []byte(m.unit()), 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, bridge.Errorf(bridge.Conflict, "%s is there already and was left alone", m.file)
	}
	if err != nil {
		return nil, bridge.Errorf(bridge.Storage, "the unit file cannot be written: %w", err)
	}
	if err := m.register(ctx); err != nil {
		return nil, errors.Join(err, m.dropUnit(), m.reload(ctx))
	}
	lines := []string{"Wrote " + m.file, "Runs  " + m.program + " " + strings.Join(m.args(), " ")}
	if len(m.env) > 0 {
		lines = append(lines, "Keeps "+strings.Join(names(m.env), ", ")+" as they are here and now")
	}
	lines = append(lines, "Had systemd start it "+m.when()+".")
	if !m.system && !m.lingers() {
		lines = append(lines, "It ends when you log out. To have it run without a login: sudo loginctl enable-linger "+m.account)
	}
	return lines, nil
}

func names(environ []string) []string {
	var names []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		names = append(names, name)
	}
	return names
}

func (m systemd) when() string {
	if m.system {
		return "whenever the machine starts, as " + m.account
	}
	return "whenever you log in"
}

// lingers reports whether the account's manager runs without a login.
func (m systemd) lingers() bool {
	_, err := os.Stat(filepath.Join("/var/lib/systemd/linger", m.account))
	return err == nil
}

func (m systemd) register(ctx context.Context) error {
	if err := m.reload(ctx); err != nil {
		return err
	}
	_, err := m.ctl(ctx, "enable", m.unitName())
	return err
}

func (m systemd) reload(ctx context.Context) error {
	_, err := m.ctl(ctx, "daemon-reload")
	return err
}

func (m systemd) unitName() string { return m.name + ".service" }

// dropUnit removes the unit file, which holds only what install wrote.
func (m systemd) dropUnit() error {
	if err := os.Remove(m.file); err != nil {
		return fmt.Errorf("remove the unit file: %w", err)
	}
	return disk.SyncDir(filepath.Dir(m.file))
}

func (m systemd) uninstall(ctx context.Context) ([]string, error) {
	if _, err := m.ctl(ctx, "disable", "--now", m.unitName()); err != nil {
		return nil, err
	}
	if err := m.dropUnit(); err != nil {
		return nil, err
	}
	_, _ = m.ctl(ctx, "reset-failed", m.unitName()) // systemd may have forgotten it already
	return []string{"Stopped " + m.unitName() + " and had systemd forget it.", "Removed " + m.file}, m.reload(ctx)
}

func (m systemd) start(ctx context.Context) error {
	_, err := m.ctl(ctx, "start", m.unitName())
	return err
}

func (m systemd) stop(ctx context.Context) error {
	_, err := m.ctl(ctx, "stop", m.unitName())
	return err
}

func (m systemd) state(ctx context.Context) (serviceState, error) {
	state := serviceState{File: m.file, State: serviceStopped}
	if _, err := os.Stat(m.file); errors.Is(err, fs.ErrNotExist) {
		return state, nil
	}
	state.Installed = true
	shown, err := m.ctl(ctx, "show", "--property=ActiveState,MainPID,UnitFileState", m.unitName())
	if err != nil {
		return state, err
	}
	properties := map[string]string{}
	for line := range strings.Lines(shown) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		properties[name] = value
	}
	state.Automatic = properties["UnitFileState"] == "enabled"
	state.PID, _ = strconv.Atoi(properties["MainPID"]) // 0 when it is not told
	switch properties["ActiveState"] {
	case "active":
		state.State = serviceRunning
	case "activating": // for the first time, or again
		state.State = serviceRestarting
	case "failed":
		state.State = serviceFailed
	}
	return state, nil
}

// journal is where systemd keeps what it saw of the service.
func (s service) journal() string {
	if s.system {
		return "`journalctl -u " + s.name + "`"
	}
	return "`journalctl --user -u " + s.name + "`"
}

// ctl runs systemctl and returns what it prints. Its complaint is the error.
func (m systemd) ctl(ctx context.Context, args ...string) (string, error) {
	if !m.system {
		args = append([]string{"--user"}, args...)
	}
	cmd := exec.CommandContext(ctx, "systemctl", args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	if m.runtime != "" {
		cmd.Env = append(cmd.Env, "XDG_RUNTIME_DIR="+m.runtime)
	}
	output, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return "", bridge.Errorf(bridge.Internal, "systemctl %s: %s", strings.Join(args, " "), strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("systemctl %s: %w", strings.Join(args, " "), err)
	}
	return string(output), nil
}

// runAsService runs the broker in the foreground, as systemd wants it.
func runAsService(ctx context.Context, run func(context.Context) error) error { return run(ctx) }
