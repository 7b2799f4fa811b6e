package service

import (
	"context"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/testkit"
)

// desk is an account's service whose systemctl is a script of the test: it notes
// what it is asked, and answers what the test wrote. The real systemd is in the
// tests of cmd/bridge.
type desk struct {
	*testing.T
	control Control
	said    *string // what the last command said, its error too
	systemd
	dir string
}

func newDesk(t *testing.T) desk {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\necho \"$XDG_RUNTIME_DIR $*\" >> " + dir + "/calls\n" +
		"case \"$(echo \"$*\" | sed 's/--user //')\" in *\"$(cat " + dir + "/refuses)\"*) echo 'systemd says no' >&2; exit 1;; *show*) cat " + dir + "/shows;; esac\n"
	if err := testkit.WriteProgram(filepath.Join(dir, "systemctl"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("HOME", dir)
	t.Setenv("XDG_RUNTIME_DIR", "/nowhere")
	home, err := config.ResolveHome(filepath.Join(dir, "home"), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	current, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	d := desk{T: t, said: new(string), dir: dir, systemd: systemd{
		Service: Service{Name: "bridge", Program: "/opt/bridge", Home: home, Account: current.Username, Env: []string{"PATH=/bin", "BRIDGE_PORT=0"}},
		file:    filepath.Join(dir, ".config", "systemd", "user", "bridge.service"), runtime: "/run/user/7",
	}}
	d.control = Control{Service: d.Service, Manager: d.systemd, Broker: func(context.Context) (*api.Status, error) { return nil, nil }} //nolint:nilnil // nobody serves it
	d.put("refuses", "nothing")
	d.put("shows", "")
	return d
}

func (d desk) put(name, text string) {
	d.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
		d.Fatal(err)
	}
}

// asked returns what systemctl was told since the last call of it, without the
// questions for the state.
func (d desk) asked() string {
	d.Helper()
	raw, err := os.ReadFile(filepath.Join(d.dir, "calls"))
	if err != nil && !os.IsNotExist(err) {
		d.Fatal(err)
	}
	d.put("calls", "")
	var orders []string
	for line := range strings.Lines(string(raw)) {
		order, own := strings.CutPrefix(strings.TrimSpace(line), "/run/user/7 ")
		words := slices.DeleteFunc(strings.Fields(order), func(word string) bool { return word == "--user" })
		if !own || len(words) == len(strings.Fields(order)) {
			d.Errorf("systemctl is asked %q, which is not the account's own", line)
		}
		if words[0] != "show" {
			orders = append(orders, strings.Join(words, " "))
		}
	}
	return strings.Join(orders, ", ")
}

// did checks what one command came to: whether it fails, some of its words and
// what systemctl was told.
func (d desk) did(said string, err error, fails bool, words, asked string) {
	d.Helper()
	*d.said = said
	if err != nil {
		*d.said += err.Error()
	}
	if (err != nil) != fails || !strings.Contains(*d.said, words) {
		d.Errorf("it fails: %v, want %v and %q:\n%s", err != nil, fails, words, *d.said)
	}
	if orders := d.asked(); orders != asked {
		d.Errorf("systemctl was asked %q, want %q", orders, asked)
	}
}

// tells is did for a command that answers in lines, shows for one that answers
// with a report.
func (d desk) tells(do func(Control, context.Context) ([]string, error), fails bool, words, asked string) {
	d.Helper()
	lines, err := do(d.control, d.Context())
	d.did(strings.Join(lines, "\n"), err, fails, words, asked)
}

func (d desk) shows(do func(Control, context.Context) (Report, error), fails bool, words, asked string) Report {
	d.Helper()
	report, err := do(d.control, d.Context())
	said := ""
	if err == nil {
		said = d.Text(report)
	}
	d.did(said, err, fails, words, asked)
	return report
}

func (d desk) unitText() string {
	d.Helper()
	text, err := os.ReadFile(d.file)
	if err != nil {
		d.Error(err)
	}
	return string(text)
}

func TestDSK_03_InstallAndUninstallLeaveNothingBehind(t *testing.T) {
	d := newDesk(t)
	d.tells(Control.Install, false, "Wrote "+d.file, "enable bridge.service, daemon-reload")
	for _, words := range []string{"Keeps PATH, BRIDGE_PORT as", "whenever you log in", d.Command("start")} {
		if !strings.Contains(*d.said, words) {
			t.Errorf("install does not say %q:\n%s", words, *d.said)
		}
	}
	if strings.Contains(*d.said, "loginctl enable-linger "+d.Account) == d.lingers() {
		t.Errorf("the account lingers: %v, and install says\n%s", d.lingers(), *d.said)
	}
	written := d.unitText()
	if !strings.Contains(written, "\nExecStart=\"/opt/bridge\" \"service\" \"run\" \"--home\" ") {
		t.Errorf("the unit file holds\n%s", written)
	}
	d.tells(Control.Install, true, "installed already", "")
	if _, err := d.Install(t.Context()); bridge.CodeOf(err) != bridge.Conflict || d.unitText() != written {
		t.Errorf("another unit file in the place: %v", err)
	}
	d.tells(Control.Uninstall, false, "kept in "+d.Home.Dir(), "stop bridge.service, disable bridge.service, daemon-reload, reset-failed bridge.service, daemon-reload")
	if _, err := os.Lstat(d.file); !os.IsNotExist(err) {
		t.Errorf("the unit file is still there: %v", err)
	}
	missing := "not installed; `" + d.Command("install") + "`"
	d.tells(Control.Uninstall, true, missing, "")
	d.shows(Control.Start, true, missing, "")
	d.tells(Control.Stop, true, missing, "")
}

func TestDSK_03_WhatSystemdRefusesIsTakenBack(t *testing.T) {
	for refused, orders := range map[string]string{
		"daemon-reload": "enable bridge.service, daemon-reload, daemon-reload, disable bridge.service, daemon-reload",
		"enable":        "enable bridge.service, daemon-reload, enable bridge.service, disable bridge.service, daemon-reload",
	} {
		t.Run("DSK-03 "+refused, func(t *testing.T) {
			d := newDesk(t)
			d.put("refuses", refused)
			d.tells(Control.Install, true, "systemd says no", orders)
			if _, err := os.Lstat(d.file); !os.IsNotExist(err) {
				t.Errorf("the unit file is still there: %v", err)
			}
		})
	}
	t.Run("DSK-03 disable", func(t *testing.T) {
		d := newDesk(t)
		d.tells(Control.Install, false, "Wrote", "enable bridge.service, daemon-reload")
		written := d.unitText()
		for refused, orders := range map[string]string{
			"stop":    "stop bridge.service, daemon-reload, stop bridge.service",
			"disable": "stop bridge.service, disable bridge.service, daemon-reload, disable bridge.service",
		} {
			d.put("refuses", refused)
			d.tells(Control.Uninstall, true, "systemctl --user "+refused+" bridge.service: systemd says no", orders)
			if d.unitText() != written {
				t.Error("the unit file of a service that may run is gone")
			}
		}
	})
}

// systemdSays is what systemctl shows of a service and what that means.
var systemdSays = []struct {
	name, shows string
	want        Status
	words       []string
}{
	{
		"running", "ActiveState=active\nMainPID=42\nUnitFileState=enabled\n",
		Status{Automatic: true, State: Running, PID: 42},
		[]string{"starts when you log in", "running, process 42"},
	},
	{
		"between two starts", "ActiveState=activating\nMainPID=0\nUnitFileState=enabled\n",
		Status{Automatic: true, State: Restarting},
		[]string{"State    restarting\n", "shows what it said"},
	},
	{
		"given up", "ActiveState=failed\nMainPID=0\nUnitFileState=enabled\n",
		Status{Automatic: true, State: Failed},
		[]string{"State    failed\n", "journalctl --user -u bridge"},
	},
	{
		"stopped", "ActiveState=inactive\nMainPID=0\nUnitFileState=disabled\n",
		Status{State: Stopped},
		[]string{"does not start by itself", "State    stopped\n", "none serves this home"},
	},
}

func TestDSK_03_TheStateIsWhatSystemdSays(t *testing.T) {
	for _, tt := range systemdSays {
		t.Run("DSK-03 "+tt.name, func(t *testing.T) {
			d := newDesk(t)
			d.tells(Control.Install, false, "Wrote", "enable bridge.service, daemon-reload")
			d.put("shows", tt.shows)
			report := d.shows(Control.Report, false, "File     "+d.file, "")
			for _, words := range append(tt.words, "Home     "+d.Home.Dir()) {
				if !strings.Contains(*d.said, words) {
					t.Errorf("the status does not say %q:\n%s", words, *d.said)
				}
			}
			if tt.want.State == Running && strings.Contains(*d.said, "Why") {
				t.Errorf("the status excuses itself:\n%s", *d.said)
			}
			want := Report{Service: "bridge", Account: d.Account, Home: d.Home.Dir(), Status: tt.want}
			want.Installed, want.File = true, d.file
			if report != want {
				t.Errorf("the report is %+v, want %+v", report, want)
			}
		})
	}
}

func TestDSK_03_AServiceThatIsNotInstalled(t *testing.T) {
	d := newDesk(t)
	d.shows(Control.Report, false, "bridge is not installed; `"+d.Command("install")+"`", "")
	if strings.Contains(*d.said, "File") {
		t.Errorf("a file that is not there is named:\n%s", *d.said)
	}
}

func TestDSK_03_ASystemdThatDoesNotAnswer(t *testing.T) {
	d := newDesk(t)
	d.tells(Control.Install, false, "Wrote", "enable bridge.service, daemon-reload")
	d.put("refuses", "show")
	d.shows(Control.Report, true, "systemd says no", "")
	d.tells(Control.Install, true, "systemd says no", "")
	d.tells(Control.Uninstall, true, "systemd says no", "")
	d.shows(Control.Start, true, "systemd says no", "")
	d.tells(Control.Stop, true, "systemd says no", "")
}

func TestDSK_03_StartAndStopSayWhatCameOfIt(t *testing.T) {
	d := newDesk(t)
	d.tells(Control.Install, false, "Wrote", "enable bridge.service, daemon-reload")
	d.put("shows", "ActiveState=failed\n")
	d.shows(Control.Start, false, "State    failed", "start bridge.service")
	d.tells(Control.Stop, false, "bridge is stopped", "stop bridge.service")
	d.put("shows", "ActiveState=inactive\n")
	d.shows(Control.Start, false, "State    stopped", "start bridge.service")
	d.tells(Control.Stop, false, "did not run", "")
	d.put("shows", "ActiveState=failed\n")
	d.shows(Control.Restart, false, "State    failed", "restart bridge.service")
	d.put("shows", "ActiveState=active\n")
	again := func(verb string) string {
		d.put("refuses", verb+" bridge")
		return verb + " bridge.service, daemon-reload, " + verb + " bridge.service"
	}
	d.shows(Control.Start, true, "systemd says no", again("start"))
	d.tells(Control.Stop, true, "systemd says no", again("stop"))
	d.shows(Control.Restart, true, "systemd says no", again("restart"))
}

func TestDSK_03_AServiceOfTheMachineIsRootsToChange(t *testing.T) {
	own, machines := systemd{}, systemd{Service: Service{System: true}}
	if err := own.MayChange(); err != nil {
		t.Errorf("one's own service: %v", err)
	}
	if err := machines.MayChange(); (err == nil) != (os.Geteuid() == 0) {
		t.Errorf("the machine's service as account %d: %v", os.Geteuid(), err)
	}
	refused := errors.New("not yours")
	c := Control{Manager: unchangeable{refused: refused}} // any other call of it panics
	for name, do := range map[string]func(context.Context) error{
		"install":   func(ctx context.Context) error { _, err := c.Install(ctx); return err },
		"uninstall": func(ctx context.Context) error { _, err := c.Uninstall(ctx); return err },
		"start":     func(ctx context.Context) error { _, err := c.Start(ctx); return err },
		"stop":      func(ctx context.Context) error { _, err := c.Stop(ctx); return err },
		"restart":   func(ctx context.Context) error { _, err := c.Restart(ctx); return err },
	} {
		if err := do(t.Context()); err != refused { //nolint:errorlint // the very error
			t.Errorf("%s without the right: %v", name, err)
		}
	}
}

// unchangeable refuses whoever would change it.
type unchangeable struct {
	Manager
	refused error
}

func (u unchangeable) MayChange() error { return u.refused }
