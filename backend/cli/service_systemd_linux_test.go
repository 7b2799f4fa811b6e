package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bridge/backend/bridge"
	"bridge/backend/config"
)

// desk is an account's service whose systemctl is a script of the test: it notes
// what it is asked, and answers what the test wrote. The real systemd is in the
// tests of cmd/bridge.
type desk struct {
	*testing.T
	app    *App
	output *bytes.Buffer
	systemd
	dir string
}

func newDesk(t *testing.T) desk {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\necho \"$XDG_RUNTIME_DIR $*\" >> " + dir + "/calls\n" +
		"case \"$(echo \"$*\" | sed 's/--user //')\" in *\"$(cat " + dir + "/refuses)\"*) echo 'systemd says no' >&2; exit 1;; *show*) cat " + dir + "/shows;; esac\n"
	if err := os.WriteFile(filepath.Join(dir, "systemctl"), []byte(script), 0o700); err != nil {
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
	d := desk{T: t, output: &bytes.Buffer{}, dir: dir, systemd: systemd{
		service: service{name: "bridge", program: "/opt/bridge", home: home, account: current.Username, env: []string{"PATH=/bin", "BRIDGE_PORT=0"}},
		file:    filepath.Join(dir, ".config", "systemd", "user", "bridge.service"), runtime: "/run/user/7",
	}}
	d.app = &App{Getenv: func(string) string { return "" }, Stdout: d.output}
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

// did checks one command: its exit code, some of its words and what systemctl
// was told.
func (d desk) did(do serviceDeed, code int, words, asked string) {
	d.Helper()
	d.output.Reset()
	err := do(d.Context(), d.service, d.systemd)
	said, got := d.output.String(), exitDone
	if err != nil {
		said, got = said+err.Error(), ExitCode(err)
	}
	if got != code || !strings.Contains(said, words) {
		d.Errorf("exit code %d, want %d and %q:\n%s", got, code, words, said)
	}
	if orders := d.asked(); orders != asked {
		d.Errorf("systemctl was asked %q, want %q", orders, asked)
	}
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
	d.did(d.app.serviceInstall, exitDone, "Wrote "+d.file, "enable bridge.service, daemon-reload")
	for _, words := range []string{"Keeps PATH, BRIDGE_PORT as", "whenever you log in", d.command("start")} {
		if !strings.Contains(d.output.String(), words) {
			t.Errorf("install does not say %q:\n%s", words, d.output)
		}
	}
	if strings.Contains(d.output.String(), "loginctl enable-linger "+d.account) == d.lingers() {
		t.Errorf("the account lingers: %v, and install says\n%s", d.lingers(), d.output)
	}
	written := d.unitText()
	if !strings.Contains(written, "\nExecStart=\"/opt/bridge\" \"service\" \"run\" \"--home\" ") {
		t.Errorf("the unit file holds\n%s", written)
	}
	d.did(d.app.serviceInstall, exitFailed, "installed already", "")
	if _, err := d.install(t.Context()); bridge.CodeOf(err) != bridge.Conflict || d.unitText() != written {
		t.Errorf("another unit file in the place: %v", err)
	}
	d.did(d.app.serviceUninstall, exitDone, "kept in "+d.home.Dir(), "stop bridge.service, disable bridge.service, daemon-reload, reset-failed bridge.service, daemon-reload")
	if _, err := os.Lstat(d.file); !os.IsNotExist(err) {
		t.Errorf("the unit file is still there: %v", err)
	}
	for _, do := range []serviceDeed{d.app.serviceUninstall, d.app.serviceStart, d.app.serviceStop} {
		d.did(do, exitFailed, "not installed; `"+d.command("install")+"`", "")
	}
}

func TestDSK_03_WhatSystemdRefusesIsTakenBack(t *testing.T) {
	for refused, orders := range map[string]string{
		"daemon-reload": "enable bridge.service, daemon-reload, daemon-reload, disable bridge.service, daemon-reload",
		"enable":        "enable bridge.service, daemon-reload, enable bridge.service, disable bridge.service, daemon-reload",
	} {
		t.Run("DSK-03 "+refused, func(t *testing.T) {
			d := newDesk(t)
			d.put("refuses", refused)
			d.did(d.app.serviceInstall, exitFailed, "systemd says no", orders)
			if _, err := os.Lstat(d.file); !os.IsNotExist(err) {
				t.Errorf("the unit file is still there: %v", err)
			}
		})
	}
	t.Run("DSK-03 disable", func(t *testing.T) {
		d := newDesk(t)
		d.did(d.app.serviceInstall, exitDone, "Wrote", "enable bridge.service, daemon-reload")
		written := d.unitText()
		for refused, orders := range map[string]string{
			"stop":    "stop bridge.service, daemon-reload, stop bridge.service",
			"disable": "stop bridge.service, disable bridge.service, daemon-reload, disable bridge.service",
		} {
			d.put("refuses", refused)
			d.did(d.app.serviceUninstall, exitFailed, "systemctl --user "+refused+" bridge.service: systemd says no", orders)
			if d.unitText() != written {
				t.Error("the unit file of a service that may run is gone")
			}
		}
	})
}

func TestDSK_03_TheStateIsWhatSystemdSays(t *testing.T) {
	for _, tt := range []struct {
		name, shows string
		want        serviceState
		code        int
		words       []string
	}{
		{
			"running", "ActiveState=active\nMainPID=42\nUnitFileState=enabled\n",
			serviceState{Automatic: true, State: serviceRunning, PID: 42},
			exitDone,
			[]string{"starts when you log in", "running, process 42"},
		},
		{
			"between two starts", "ActiveState=activating\nMainPID=0\nUnitFileState=enabled\n",
			serviceState{Automatic: true, State: serviceRestarting},
			exitFailed,
			[]string{"State    restarting\n", "shows what it said"},
		},
		{
			"given up", "ActiveState=failed\nMainPID=0\nUnitFileState=enabled\n",
			serviceState{Automatic: true, State: serviceFailed},
			exitFailed,
			[]string{"State    failed\n", "journalctl --user -u bridge"},
		},
		{
			"stopped", "ActiveState=inactive\nMainPID=0\nUnitFileState=disabled\n",
			serviceState{State: serviceStopped},
			exitNoOne,
			[]string{"does not start by itself", "State    stopped\n", "none serves this home"},
		},
	} {
		t.Run("DSK-03 "+tt.name, func(t *testing.T) {
			d := newDesk(t)
			d.did(d.app.serviceInstall, exitDone, "Wrote", "enable bridge.service, daemon-reload")
			d.put("shows", tt.shows)
			d.did(d.app.serviceStatus, tt.code, "File     "+d.file, "")
			for _, words := range append(tt.words, "Home     "+d.home.Dir()) {
				if !strings.Contains(d.output.String(), words) {
					t.Errorf("the status does not say %q:\n%s", words, d.output)
				}
			}
			if tt.code == exitDone && strings.Contains(d.output.String(), "Why") {
				t.Errorf("the status excuses itself:\n%s", d.output)
			}
			d.app.json = true
			d.did(d.app.serviceStatus, tt.code, "", "")
			var report serviceReport
			if err := json.Unmarshal(d.output.Bytes(), &report); err != nil {
				t.Fatalf("%v\n%s", err, d.output)
			}
			tt.want.Installed, tt.want.File = true, d.file
			if report.serviceState != tt.want || report.Service != "bridge" || report.Home != d.home.Dir() || report.Broker != nil {
				t.Errorf("the report is %+v, want the state %+v", report, tt.want)
			}
		})
	}
	t.Run("DSK-03 not installed", func(t *testing.T) {
		d := newDesk(t)
		d.did(d.app.serviceStatus, exitNoOne, "bridge is not installed; `"+d.command("install")+"`", "")
		if strings.Contains(d.output.String(), "File") {
			t.Errorf("a file that is not there is named:\n%s", d.output)
		}
	})
	t.Run("DSK-03 systemd does not answer", func(t *testing.T) {
		d := newDesk(t)
		d.did(d.app.serviceInstall, exitDone, "Wrote", "enable bridge.service, daemon-reload")
		d.put("refuses", "show")
		for _, do := range []serviceDeed{d.app.serviceStatus, d.app.serviceInstall, d.app.serviceUninstall, d.app.serviceStart, d.app.serviceStop} {
			d.did(do, exitFailed, "systemd says no", "")
		}
	})
}

func TestDSK_03_StartAndStopSayWhatCameOfIt(t *testing.T) {
	d := newDesk(t)
	d.did(d.app.serviceInstall, exitDone, "Wrote", "enable bridge.service, daemon-reload")
	d.put("shows", "ActiveState=failed\n")
	d.did(d.app.serviceStart, exitFailed, "State    failed", "start bridge.service")
	d.did(d.app.serviceStop, exitDone, "bridge is stopped", "stop bridge.service")
	d.put("shows", "ActiveState=inactive\n")
	d.did(d.app.serviceStart, exitFailed, "State    stopped", "start bridge.service")
	d.did(d.app.serviceStop, exitDone, "did not run", "")
	d.put("shows", "ActiveState=failed\n")
	d.did(d.app.serviceRestart, exitFailed, "State    failed", "restart bridge.service")
	d.put("shows", "ActiveState=active\n")
	for verb, do := range map[string]serviceDeed{"start": d.app.serviceStart, "stop": d.app.serviceStop, "restart": d.app.serviceRestart} {
		d.put("refuses", verb+" bridge")
		d.did(do, exitFailed, "systemd says no", verb+" bridge.service, daemon-reload, "+verb+" bridge.service")
	}
}

func TestDSK_03_AServiceOfTheMachineIsRootsToChange(t *testing.T) {
	own, machines := systemd{}, systemd{service: service{system: true}}
	if err := own.mayChange(); err != nil {
		t.Errorf("one's own service: %v", err)
	}
	if err := machines.mayChange(); (err == nil) != (os.Geteuid() == 0) {
		t.Errorf("the machine's service as account %d: %v", os.Geteuid(), err)
	}
	refused := fmt.Errorf("not yours")
	did := false
	deed := changes(func(context.Context, service, serviceManager) error { did = true; return nil })
	if err := deed(t.Context(), service{}, unchangeable{refused: refused}); err != refused || did { //nolint:errorlint // the very error
		t.Errorf("without the right: %v, done %v", err, did)
	}
}

// unchangeable refuses whoever would change it.
type unchangeable struct {
	serviceManager
	refused error
}

func (u unchangeable) mayChange() error { return u.refused }
