package service

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

	kardianos "github.com/kardianos/service"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// systemd runs the service on Linux through kardianos/service, with Bridge's own
// unit. This code adds what that package lacks: a unit that a login starts and that
// quotes every path; systemd's error messages; automatic start and process id; a
// user manager missing in the environment or with another unit folder; and the
// removal of a partly failed installation.
type systemd struct {
	Service
	file    string // the unit file
	link    string // where an account's manager searches it; "" for the file itself
	runtime string // XDG_RUNTIME_DIR of the account, for its own manager
}

// Manager returns systemd, for the machine or for the account. It fails with Unsupported if
// systemd does not run here or for the account, and with Invalid without a home folder of the
// user.
func (s Service) Manager() (Manager, error) {
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		return nil, bridge.Errorf(bridge.Unsupported, "this system does not use systemd: start `bridge serve` another way, for example from your shell profile or as the entry point of a container")
	}
	if _, err := exec.LookPath("systemctl"); err != nil {
		return nil, bridge.Errorf(bridge.Unsupported, "systemctl is not on PATH, so no service can be managed")
	}
	m := systemd{Service: s, file: filepath.Join("/etc/systemd/system", s.Name+".service")}
	if s.System {
		return m, nil
	}
	userHome, err := os.UserHomeDir()
	if err != nil {
		return nil, bridge.Errorf(bridge.Invalid, "there is no user home folder: set HOME")
	}
	m.file = filepath.Join(userHome, ".config", "systemd", "user", s.Name+".service")
	if settings := s.getenv("XDG_CONFIG_HOME"); filepath.IsAbs(settings) {
		m.link = filepath.Join(settings, "systemd", "user", s.Name+".service")
	}
	if m.link == m.file {
		m.link = ""
	}
	m.runtime = s.getenv("XDG_RUNTIME_DIR")
	if m.runtime == "" {
		m.runtime = "/run/user/" + strconv.Itoa(os.Geteuid()) // su and sudo do not set it
	}
	if _, err := os.Stat(filepath.Join(m.runtime, "systemd")); err != nil {
		return nil, bridge.Errorf(bridge.Unsupported, "no systemd runs for your account: log in on this machine, or run `sudo loginctl enable-linger %s` once and try again", s.Account)
	}
	return m, nil
}

// MayChange fails with Denied for a service of the machine if the caller is not root.
func (m systemd) MayChange() error {
	if !m.System || os.Geteuid() == 0 {
		return nil
	}
	return bridge.Errorf(bridge.Denied, "a service of the machine is root's to change: put sudo in front, or leave out --system for a service of your own")
}

// unitTemplate is the unit file in the template language of kardianos/service. Its
// Arguments are one complete, quoted command line. It has no restrictions: they
// would also apply to the agents that the broker starts, which must have all of
// their owner's rights, including sudo.
const unitTemplate = "# Written by `bridge service install`; `bridge service uninstall` removes it." + `
[Unit]
Description={{Description}}
{{range Dependencies}}{{.}}
{{end}}StartLimitIntervalSec=60
StartLimitBurst=10

[Service]
Type=exec
{{if UserName}}User={{UserName}}
WorkingDirectory=~
{{end}}{{range Arguments}}ExecStart={{.}}
{{end}}Restart=on-failure
RestartSec=2
# It is refused, as with a lost store: trying again would not help.
RestartPreventExitStatus=3
# Runs and their agents go on when the broker ends or one of them is out of memory.
KillMode=process
OOMPolicy=continue
{{range EnvVars}}{{.}}
{{end}}
[Install]
WantedBy={{if UserName}}multi-user.target{{else}}default.target{{end}}
`

// manager returns the library's object of this service.
func (m systemd) manager() (kardianos.Service, error) {
	command := quoteUnit(m.Program)
	for _, arg := range m.Args() {
		command += " " + strings.ReplaceAll(quoteUnit(arg), "$", "$$")
	}
	config := &kardianos.Config{
		Name: m.Name, Description: "Bridge between coding-agent sessions (" + escapeSpecifiers(m.Home.Dir()) + ")",
		Executable: m.Program, Arguments: []string{command},
		Dependencies: []string{"ConditionFileIsExecutable=" + escapeSpecifiers(m.Program)},
		EnvVars:      map[string]string{},
		Option:       kardianos.KeyValue{"UserService": !m.System, "SystemdScript": unitTemplate},
	}
	for _, entry := range m.Env {
		name, value, _ := strings.Cut(entry, "=")
		config.EnvVars[name] = quoteUnit(value)
	}
	if m.System {
		config.UserName = m.Account
	}
	if m.runtime != "" { // su and sudo do not set it, and the library's systemctl needs it
		if err := os.Setenv("XDG_RUNTIME_DIR", m.runtime); err != nil {
			return nil, err
		}
	}
	for _, system := range kardianos.AvailableSystems() { // the library's own choice may be another one
		if system.String() == "linux-systemd" {
			return system.New(&program{}, config)
		}
	}
	return nil, bridge.Errorf(bridge.Unsupported, "this program was built without systemd")
}

func escapeSpecifiers(text string) string { return strings.ReplaceAll(text, "%", "%%") }

// quoteUnit quotes text as one argument in a unit file.
func quoteUnit(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(text) + `"`
}

// Install fails with Invalid for a control character in a path, with Conflict if the unit file
// exists, and with Storage if it cannot be written.
func (m systemd) Install(ctx context.Context) ([]string, error) {
	if strings.ContainsFunc(m.Program+m.Home.Dir(), isControl) {
		return nil, bridge.Errorf(bridge.Invalid, "the path of the program or of the home holds a control character, which no unit file can")
	}
	for _, file := range m.files() {
		if _, err := os.Lstat(file); err == nil {
			return nil, bridge.Errorf(bridge.Conflict, "%s is there already and was left alone", file)
		}
		if err := disk.MakeDir(filepath.Dir(file)); err != nil {
			return nil, bridge.Errorf(bridge.Storage, "%w", err)
		}
	}
	manager, err := m.manager()
	if err != nil {
		return nil, err
	}
	if m.link != "" {
		if err := os.Symlink(m.file, m.link); err != nil {
			return nil, bridge.Errorf(bridge.Storage, "the unit file cannot be linked: %w", err)
		}
	}
	if err := m.explain(ctx, manager.Install(), "enable", m.unitName()); err != nil {
		_, _ = m.ctl(ctx, "disable", m.unitName()) // as far as it got
		return nil, errors.Join(err, m.dropUnit(), m.reload(ctx))
	}
	if err := m.syncUnit(); err != nil {
		return nil, bridge.Errorf(bridge.Storage, "the unit file is written but not safe on the disk: %w", err)
	}
	lines := []string{"Wrote " + m.file, "Runs  " + m.Program + " " + strings.Join(m.Args(), " ")}
	if len(m.Env) > 0 {
		lines = append(lines, "Keeps "+strings.Join(names(m.Env), ", ")+" as they are here and now")
	}
	lines = append(lines, "Had systemd start it "+m.when()+".")
	if !m.System && !m.lingers() {
		lines = append(lines, "It ends when you log out. To have it run without a login: sudo loginctl enable-linger "+m.Account)
	}
	return lines, nil
}

// files returns the unit file and its link, if there is one.
func (m systemd) files() []string {
	if m.link == "" {
		return []string{m.file}
	}
	return []string{m.file, m.link}
}

// explain replaces the library's bare exit status by systemd's message. It repeats
// the systemctl call, which is always safe. If that succeeds, it returns nil. It
// keeps other errors.
func (m systemd) explain(ctx context.Context, err error, verb ...string) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if err := m.reload(ctx); err != nil {
		return err
	}
	_, err = m.ctl(ctx, verb...)
	return err
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
	if m.System {
		return "whenever the machine starts, as " + m.Account
	}
	return "whenever you log in"
}

// lingers reports whether the account's manager runs without a login.
func (m systemd) lingers() bool {
	_, err := os.Stat(filepath.Join("/var/lib/systemd/linger", m.Account))
	return err == nil
}

func (m systemd) reload(ctx context.Context) error {
	_, err := m.ctl(ctx, "daemon-reload")
	return err
}

func (m systemd) unitName() string { return m.Name + ".service" }

// syncUnit makes the library's files survive a power loss.
func (m systemd) syncUnit() error {
	unit, err := os.OpenFile(m.file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = errors.Join(unit.Sync(), unit.Close())
	for _, file := range m.files() {
		err = errors.Join(err, disk.SyncDir(filepath.Dir(file)))
	}
	return err
}

// dropUnit removes the unit file, which holds only Install's content.
func (m systemd) dropUnit() error {
	for _, file := range m.files() {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the unit file: %w", err)
		}
		if err := disk.SyncDir(filepath.Dir(file)); err != nil {
			return err
		}
	}
	return nil
}

// Uninstall fails if systemctl cannot stop or disable the service, or if a file cannot be
// removed.
func (m systemd) Uninstall(ctx context.Context) ([]string, error) {
	if err := m.Stop(ctx); err != nil {
		return nil, err
	}
	manager, err := m.manager()
	if err != nil {
		return nil, err
	}
	if err := m.explain(ctx, manager.Uninstall(), "disable", m.unitName()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := m.dropUnit(); err != nil { // the link, and files that the library left
		return nil, err
	}
	_, _ = m.ctl(ctx, "reset-failed", m.unitName()) // systemd may have forgotten it already
	return []string{"Stopped " + m.unitName() + " and had systemd forget it.", "Removed " + m.file}, m.reload(ctx)
}

// Start fails with Internal and systemctl's message if systemctl fails.
func (m systemd) Start(ctx context.Context) error {
	return m.order(ctx, "start", kardianos.Service.Start)
}

// Stop fails as Start does.
func (m systemd) Stop(ctx context.Context) error {
	return m.order(ctx, "stop", kardianos.Service.Stop)
}

// Restart fails as Start does.
func (m systemd) Restart(ctx context.Context) error {
	return m.order(ctx, "restart", kardianos.Service.Restart)
}

// order executes one action on the installed service.
func (m systemd) order(ctx context.Context, verb string, do func(kardianos.Service) error) error {
	manager, err := m.manager()
	if err != nil {
		return err
	}
	return m.explain(ctx, do(manager), verb, m.unitName())
}

// Status fails if systemctl fails. A missing unit file is no error: Installed is then false.
func (m systemd) Status(ctx context.Context) (Status, error) {
	state := Status{File: m.file, State: Stopped}
	for _, file := range m.files() { // an earlier version wrote the unit to the link's path
		_, err := os.Stat(file)
		state.Installed = state.Installed || err == nil
	}
	if !state.Installed {
		return state, nil
	}
	output, err := m.ctl(ctx, "show", "--property=ActiveState,MainPID,UnitFileState", m.unitName())
	if err != nil {
		return state, err
	}
	properties := map[string]string{}
	for line := range strings.Lines(output) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		properties[name] = value
	}
	state.Automatic = properties["UnitFileState"] == "enabled"
	state.PID, _ = strconv.Atoi(properties["MainPID"]) // 0 if unknown
	switch properties["ActiveState"] {
	case "active":
		state.State = Running
	case "activating": // the first start or a restart
		state.State = Restarting
	case "failed":
		state.State = Failed
	}
	return state, nil
}

// Journal returns the place of systemd's records of the service.
func (s Service) Journal() string {
	if s.System {
		return "`journalctl -u " + s.Name + "`"
	}
	return "`journalctl --user -u " + s.Name + "`"
}

// ctl runs systemctl and returns its output. Its error holds systemctl's message.
func (m systemd) ctl(ctx context.Context, args ...string) (string, error) {
	if !m.System {
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
