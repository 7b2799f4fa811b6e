package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bridge/backend/testing/testkit"
)

// hubAccount makes the hub's account, as its package does, and a home for it that
// is this machine's own.
const hubAccount = `
mount -t tmpfs none /var/lib && mkdir -p /run/hub
cp /etc/passwd /run/passwd && echo "bridge-hub:x:4343:4343::/var/lib/bridge-hub:/usr/sbin/nologin" >> /run/passwd && mount --bind /run/passwd /etc/passwd
cp /etc/group /run/group && echo "bridge-hub:x:4343:" >> /run/group && mount --bind /run/group /etc/group
`

// hubProgram says where the program and its flags are, here. The rest of the unit is
// the package's.
const hubProgram = `[Service]
EnvironmentFile=/run/hub/flags
ExecStart=
ExecStart=/run/hub/bridge-hub serve $BRIDGE_HUB_FLAGS
`

// The package's unit leaves the hub what it needs: it serves, a PC joins and writes,
// it comes back after a crash with everything, and ends when it is told to.
func TestHUB_01_TheHubRunsAsItsUnitConfinesIt(t *testing.T) {
	if os.Getenv(insideSystemd) == "hub" {
		hubService{served{t, os.Getenv("BRIDGE_TEST_DIR")}}.test()
		return
	}
	needSystemd(t)
	dir := installation(t, os.Geteuid())
	for from, to := range map[string]string{"bridge-hub.service": "bridge-hub.service", "bridge-hub.default": "flags"} {
		text, err := os.ReadFile(filepath.Join("../../installer/linux", from))
		if err := errors.Join(err, os.WriteFile(filepath.Join(dir, to), text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	underFirstProcess(t, "hub", hubAccount, dir)
}

type hubService struct{ served }

func (s hubService) test() {
	const units = "/etc/systemd/system"
	self, err := os.ReadFile(filepath.Join(s.dir, "bridge"))
	if err != nil {
		s.Fatal(err)
	}
	unit, err := os.ReadFile(filepath.Join(s.dir, "bridge-hub.service"))
	flags, failed := os.ReadFile(filepath.Join(s.dir, "flags"))
	if err := errors.Join(err, failed,
		os.WriteFile("/run/hub/flags", flags, 0o600),
		testkit.WriteProgram("/run/hub/bridge-hub", self, 0o755), //nolint:gosec // another account runs it
		os.WriteFile(units+"/bridge-hub.service", unit, 0o600),
		os.Mkdir(units+"/bridge-hub.service.d", 0o700),
		os.WriteFile(units+"/bridge-hub.service.d/program.conf", []byte(hubProgram), 0o600),
	); err != nil {
		s.Fatal(err)
	}
	awaitSystemd(s.T)
	s.systemctl("daemon-reload")
	s.systemctl("start", "bridge-hub")
	s.shows("0 of 0 PCs")
	first := s.pid()
	var process syscall.Stat_t
	if err := syscall.Stat("/proc/"+first, &process); err != nil || process.Uid != 4343 {
		s.Errorf("process %s belongs to %d (%v), want the hub's account", first, process.Uid, err)
	}

	s.join()
	s.session("decide", `{"topic":"Licence","text":"Everything is MIT.","scope":"all"}`)
	s.shows("1 decision")
	if said := s.hub("backup", "/var/lib/bridge-hub/copy"); !strings.Contains(said, "copy") {
		s.Errorf("backup: %s", said)
	}

	s.systemctl("kill", "--signal=KILL", "--kill-whom=main", "bridge-hub")
	s.shows("1 decision")
	s.shows("1 of 1 PCs")
	if again := s.pid(); again == first {
		s.Errorf("after the crash it is process %s still", again)
	}
	s.systemctl("restart", "bridge-hub")
	s.shows("1 of 1 PCs")
	s.systemctl("stop", "bridge-hub")
	if result := s.systemctl("show", "--property=Result", "--value", "bridge-hub"); strings.TrimSpace(result) != "success" {
		s.Errorf("it ended as %s", result)
	}
	if state, err := os.Stat("/var/lib/bridge-hub"); err != nil || state.Mode().Perm() != 0o700 {
		s.Errorf("what it keeps: %v, %v; want it closed to others", state, err)
	}
	s.run(0, "retire")
}

// join has this machine join the team by a code, and share its decisions.
func (s hubService) join() {
	s.Helper()
	home := filepath.Join(s.dir, "home", ".bridge")
	const config = `{"network": {"enabled": true, "port": 0, "name": "laptop", "decisions": {"allowPeers": ["@team"]}}}`
	if err := errors.Join(os.MkdirAll(home, 0o700), os.WriteFile(filepath.Join(home, "config.json"), []byte(config), 0o600)); err != nil {
		s.Fatal(err)
	}
	invite := s.asHub("invite", "--json")
	output, err := invite.StdoutPipe()
	if err := errors.Join(err, invite.Start()); err != nil {
		s.Fatal(err)
	}
	var shown struct{ Code string }
	if err := json.NewDecoder(output).Decode(&shown); err != nil {
		s.Fatalf("invite: %v", err)
	}
	join := exec.CommandContext(s.Context(), filepath.Join(s.dir, "bridge"), "join", "127.0.0.1", "--code-stdin")
	join.Stdin = strings.NewReader(shown.Code + "\n")
	if output, err := join.CombinedOutput(); err != nil {
		s.Fatalf("join: %v\n%s", err, output)
	}
	if err := invite.Wait(); err != nil {
		s.Errorf("invite: %v", err)
	}
}

// asHub is a command of the hub's account, as its owner is told to run it.
func (s hubService) asHub(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(s.Context(), "/run/hub/bridge-hub", args...)
	cmd.Env = []string{"HOME=/var/lib/bridge-hub", "PATH=" + os.Getenv("PATH")}
	cmd.Dir = "/var/lib/bridge-hub"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 4343, Gid: 4343}}
	return cmd
}

func (s hubService) hub(args ...string) string {
	s.Helper()
	output, err := s.asHub(args...).CombinedOutput()
	if err != nil {
		s.Fatalf("bridge-hub %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return string(output)
}

// shows waits until the hub's status holds a text.
func (s hubService) shows(text string) {
	s.Helper()
	for deadline := time.Now().Add(testkit.Patience); ; <-time.After(50 * time.Millisecond) {
		output, _ := s.asHub("status").CombinedOutput() // it may not be up yet
		if strings.Contains(string(output), text) {
			return
		}
		if time.Now().After(deadline) {
			state, _ := exec.Command("systemctl", "status", "--no-pager", "bridge-hub").CombinedOutput()
			s.Fatalf("the hub does not show %q, but %s\n%s", text, output, state)
		}
	}
}

func (s hubService) pid() string {
	s.Helper()
	return strings.TrimSpace(s.systemctl("show", "--property=MainPID", "--value", "bridge-hub"))
}

func (s hubService) systemctl(args ...string) string {
	s.Helper()
	output, err := exec.CommandContext(s.Context(), "systemctl", args...).CombinedOutput()
	if err != nil {
		state, _ := exec.Command("systemctl", "status", "--no-pager", "bridge-hub").CombinedOutput()
		s.Fatalf("systemctl %s: %v\n%s\n%s", strings.Join(args, " "), err, output, state)
	}
	return string(output)
}
