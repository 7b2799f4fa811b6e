package service

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
)

func TestDSK_03_TheUnitNamesProgramAndHomeWhateverTheyAreCalled(t *testing.T) {
	d := newDesk(t)
	home, err := config.ResolveHome(d.dir+`/100% of {{$HOME}} "x"`, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	d.Home, d.Program, d.Env = home, `/opt/my {{tools}}/bri"dge$1%`, []string{"PATH=/a b:/c%d", `BRIDGE_X="`}
	if _, err := d.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	unit := d.unitText()
	for _, line := range []string{
		`ExecStart="/opt/my {{tools}}/bri\"dge$1%%" "service" "run" "--home" "` + d.dir + `/100%% of {{$$HOME}} \"x\""`,
		`ConditionFileIsExecutable=/opt/my {{tools}}/bri"dge$1%%`,
		`Environment=PATH="/a b:/c%%d"`,
		`Environment=BRIDGE_X="\""`,
		"WantedBy=default.target",
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

// TestDSK_03_AUserManagerWithAFolderOfItsOwnFindsTheUnit: the library writes to
// the usual folder only.
func TestDSK_03_AUserManagerWithAFolderOfItsOwnFindsTheUnit(t *testing.T) {
	d := newDesk(t)
	d.link = filepath.Join(d.dir, "settings", "systemd", "user", "bridge.service")
	if _, err := d.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	linked, err := os.ReadFile(d.link)
	if err != nil || string(linked) != d.unitText() {
		t.Errorf("where that manager looks stands %q, %v", linked, err)
	}
	d.removes(t)
	if err := os.WriteFile(d.link, nil, 0o600); err != nil { // as an earlier version left it
		t.Fatal(err)
	}
	if state, err := d.Status(t.Context()); err != nil || !state.Installed {
		t.Errorf("the state is %+v, %v", state, err)
	}
	d.removes(t)
}

// removes uninstalls the service and looks for what is left.
func (d desk) removes(t *testing.T) {
	t.Helper()
	if _, err := d.Uninstall(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, gone := range d.files() {
		if _, err := os.Lstat(gone); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", gone, err)
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
	m := systemd{Service: Service{Name: "bridge", Program: "/opt/a\nExecStartPre=/bin/x"}, file: file}
	if _, err := m.Install(t.Context()); bridge.CodeOf(err) != bridge.Invalid {
		t.Errorf("install = %v", err)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("a unit was written: %v", err)
	}
}

func TestDSK_03_NoJournalIsNamedWhereNoneIsKept(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // no systemctl
	s, err := Describe(Request{Getenv: func(string) string { return "" }, Home: filepath.Join(t.TempDir(), "h")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.LogLines(50)
	if bridge.CodeOf(err) != bridge.NotFound || strings.Contains(err.Error(), "journalctl") {
		t.Errorf("logs = %v", err)
	}
}
