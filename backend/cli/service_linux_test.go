package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/bridge"
	"bridge/backend/config"
)

func TestDSK_03_TheUnitNamesProgramAndHomeWhateverTheyAreCalled(t *testing.T) {
	nowhere := func(string) string { return "" }
	home, err := config.ResolveHome(t.TempDir()+`/100% of $HOME "x"`, nowhere)
	if err != nil {
		t.Fatal(err)
	}
	unit := systemd{service: service{
		name: "bridge", program: `/opt/my tools/bri"dge$1%`, home: home, system: true, account: "alice", env: []string{"PATH=/a b:/c%d"},
	}}.unit()
	for _, line := range []string{
		`ExecStart="/opt/my tools/bri\"dge$1%%" "service" "run" "--home" "` + strings.TrimSuffix(home.Dir(), `100% of $HOME "x"`) + `100%% of $$HOME \"x\""`,
		`ConditionFileIsExecutable=/opt/my tools/bri"dge$1%%`,
		`Environment="PATH=/a b:/c%%d"`,
		"User=alice",
		"WantedBy=multi-user.target",
		"KillMode=process",
		"[Unit]",
		"Description=Bridge between coding-agent sessions (" + strings.ReplaceAll(home.Dir(), "%", "%%") + ")",
		"StartLimitBurst=10",
		"[Service]",
		"Type=exec",
		"Restart=on-failure",
		"[Install]",
	} {
		if !strings.Contains(unit, "\n"+line+"\n") {
			t.Errorf("no line %s in\n%s", line, unit)
		}
	}
}

func TestDSK_03_TheServiceKeepsWhatTheBrokerNeedsOfTheEnvironment(t *testing.T) {
	got := serviceEnv([]string{"PATH=/bin", "HOME=/root", "BRIDGE_PORT=0", "BRIDGE_HOME=/x", "BRIDGE_NAME=me", "SECRET=1", "BRIDGE_LOG_LEVEL=a\nb"})
	if want := "PATH=/bin BRIDGE_PORT=0"; strings.Join(got, " ") != want {
		t.Errorf("kept %q, want %q", got, want)
	}
}

func TestDSK_03_APathThatNoUnitCanHoldIsRefusedAndNothingIsWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bridge.service")
	m := systemd{service: service{name: "bridge", program: "/opt/a\nExecStartPre=/bin/x"}, file: file}
	if _, err := m.install(t.Context()); bridge.CodeOf(err) != bridge.Invalid {
		t.Errorf("install = %v", err)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("a unit was written: %v", err)
	}
}

func TestDSK_03_AUnitStartsWithTheLoginOrTheMachine(t *testing.T) {
	for system, want := range map[bool]string{false: "WantedBy=default.target\n", true: "WantedBy=multi-user.target\n"} {
		m := systemd{service: service{name: "bridge", program: "/opt/bridge", system: system, account: "alice"}}
		if unit := m.unit(); !strings.HasSuffix(unit, want) || strings.Contains(unit, "User=alice\n") != system {
			t.Errorf("system %v:\n%s", system, unit)
		}
	}
}

func TestDSK_03_NoJournalIsNamedWhereNoneIsKept(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // no systemctl
	a := &App{Getenv: func(string) string { return "" }, homeFlag: filepath.Join(t.TempDir(), "h")}
	logs := a.serviceLogsCommand(&serviceFlags{})
	err := logs.RunE(logs, nil)
	if bridge.CodeOf(err) != bridge.NotFound || strings.Contains(err.Error(), "journalctl") {
		t.Errorf("logs = %v", err)
	}
}
