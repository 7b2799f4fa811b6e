package main

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"bridge/backend/platform/pageclient"
)

// walkEnv has the tests of this file run: the command sets it.
const walkEnv = "BRIDGE_TEST_WINE"

// machine is a Windows system with the programs of Bridge in C:\bridge.
type machine struct {
	*prefix
	t *testing.T
}

// newMachine returns a machine. It skips the test unless the command runs it.
func newMachine(t *testing.T) *machine {
	t.Helper()
	if os.Getenv(walkEnv) == "" {
		t.Skip("go run ./build/wine runs it")
	}
	if err := os.Chdir(filepath.Join("..", "..")); err == nil {
		t.Cleanup(func() { _ = os.Chdir(filepath.Join("build", "wine")) })
	}
	p, err := newPrefix(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	m := &machine{p, t}
	if err := os.MkdirAll(m.c("bridge"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := p.build(t.Context(), "build", "-o", m.c("bridge")+"/", "./cmd/bridge", "./cmd/bridge-hook", "./cmd/bridge-mcp", "./cmd/bridge-worker", "./cmd/bridge-desktop"); err != nil {
		t.Fatal(err)
	}
	return m
}

// c returns the place of a path on drive C.
func (m *machine) c(parts ...string) string {
	return m.at(append([]string{"prefix", "drive_c"}, parts...)...)
}

// try runs a program and returns its output and its failure.
func (m *machine) try(program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(m.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := m.command(ctx, m.c(), program, args...)
	cmd.Env = append(cmd.Env, "BRIDGE_PORT=0", "BRIDGE_PROVE=off")
	out, err := m.run(cmd)
	return string(out), err
}

// bridge runs bridge.exe, which must succeed, and returns its output.
func (m *machine) bridge(args ...string) string {
	m.t.Helper()
	out, err := m.try(`C:\bridge\bridge.exe`, args...)
	if err != nil {
		m.t.Fatalf("bridge %q: %v\n%s", args, err, out)
	}
	return out
}

// serve starts a broker and returns its page, and what ends the broker at once.
func (m *machine) serve(home string) (page *pageclient.Client, kill func()) {
	m.t.Helper()
	cmd := m.command(m.t.Context(), m.c(), `C:\bridge\bridge.exe`, "serve", "--home", home)
	cmd.Env = append(cmd.Env, "BRIDGE_PORT=0", "BRIDGE_PROVE=off")
	read, write, err := os.Pipe()
	if err != nil {
		m.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	_ = write.Close()
	kill = func() {
		_, _ = m.try("taskkill", "/F", "/IM", "bridge.exe")
		_ = cmd.Cancel()
		_ = cmd.Wait()
	}
	m.t.Cleanup(kill)
	lines := bufio.NewScanner(read)
	for lines.Scan() {
		if link := regexp.MustCompile(`ready (http://\S+)`).FindStringSubmatch(lines.Text()); link != nil {
			page, err = pageclient.Open(m.t.Context(), link[1])
			if err != nil {
				m.t.Fatal(err)
			}
			return page, kill
		}
		m.t.Log(lines.Text())
	}
	m.t.Fatal("the broker ended before it was ready")
	return nil, nil
}

// pinned is what the page shows of decisions.
type pinned struct {
	Decisions []struct {
		Topic string `json:"topic"`
		Text  string `json:"text"`
	} `json:"decisions"`
}

// has reports whether a page shows the decision of a topic.
func (m *machine) has(page *pageclient.Client, topic string) bool {
	m.t.Helper()
	var shown pinned
	if err := page.Get(m.t.Context(), "/api/decisions", &shown); err != nil {
		m.t.Fatal(err)
	}
	for _, decision := range shown.Decisions {
		if decision.Topic == topic {
			return true
		}
	}
	return false
}

func (m *machine) pin(page *pageclient.Client, topic string) {
	m.t.Helper()
	body := map[string]any{"topic": topic, "text": "Use " + topic + ".", "scope": "all"}
	if err := page.Ask(m.t.Context(), http.MethodPost, "/api/decisions", body, nil); err != nil {
		m.t.Fatal(err)
	}
}

func TestPRF_07_ADecisionOutlivesABrokerThatIsKilled(t *testing.T) {
	m := newMachine(t)
	for _, home := range []string{`C:\users\root\.bridge`, `C:\my files\Zoë's bridge`} {
		page, kill := m.serve(home)
		m.pin(page, "database")
		kill()
		page, kill = m.serve(home)
		if !m.has(page, "database") {
			t.Errorf("%s: the decision is gone", home)
		}
		kill()
		if out := m.bridge("doctor", "--home", home); !strings.Contains(out, "healthy") {
			t.Errorf("%s: %s", home, out)
		}
	}
}

func TestPRF_07_ABackupIsTriedAndRestored(t *testing.T) {
	m := newMachine(t)
	home := `C:\users\root\.bridge`
	page, kill := m.serve(home)
	m.pin(page, "before")
	m.bridge("doctor", "--backup", "--home", home) // beside the running broker
	m.pin(page, "after")
	kill()
	if out := m.bridge("doctor", "--drill", "--home", home); !strings.Contains(out, "can be restored") && !strings.Contains(out, "restorable") {
		t.Log(out)
	}
	m.bridge("doctor", "--restore", "latest", "--yes", "--home", home)
	page, _ = m.serve(home)
	if !m.has(page, "before") || m.has(page, "after") {
		t.Errorf("after the restore: before %t, after %t", m.has(page, "before"), m.has(page, "after"))
	}
}

func TestPRF_07_BadHomesAreRefusedAndLeftAlone(t *testing.T) {
	m := newMachine(t)
	if err := os.MkdirAll(m.c("photos"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(m.c("photos", "one.png"), []byte("a picture"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, home := range []string{`C:\photos`, `C:\photos\one.png`, `Q:\nowhere`} {
		if out, err := m.try(`C:\bridge\bridge.exe`, "serve", "--home", home); err == nil || !strings.Contains(out, "bridge: ") || strings.Contains(out, "ready") {
			t.Errorf("%s: %v, %s", home, err, out)
		}
	}
	if entries, err := os.ReadDir(m.c("photos")); err != nil || len(entries) != 1 {
		t.Errorf("the folder of pictures holds %v, %v", entries, err)
	}
}

func TestPRF_07_SettingsOfAnAgentComeAndGo(t *testing.T) {
	m := newMachine(t)
	settings := m.c("users", "root", ".claude", "settings.json")
	if err := os.MkdirAll(filepath.Dir(settings), 0o700); err != nil {
		t.Fatal(err)
	}
	before := "{\r\n  \"model\": \"x\",\r\n  \"hooks\": {}\r\n}\r\n"
	if err := os.WriteFile(settings, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	claude := m.c("bridge", "claude.exe") // install asks it for its version alone
	if err := os.WriteFile(m.at("claude.go"), []byte("package main\n\nfunc main() { println(\"2.1.329 (Claude Code)\") }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.build(t.Context(), "build", "-o", claude, m.at("claude.go")); err != nil {
		t.Fatal(err)
	}
	_, kill := m.serve(`C:\users\root\.bridge`) // it makes the home
	kill()
	m.bridge("config", "set", "agents.claude.bin", `C:\bridge\claude.exe`)
	m.bridge("install", "claude", "--yes")
	after, err := os.ReadFile(settings)
	if err != nil || !strings.Contains(string(after), "bridge-hook.exe") || strings.Contains(strings.ReplaceAll(string(after), "\r\n", ""), "\n") {
		t.Errorf("installed: %v, %q", err, after)
	}
	if out := m.bridge("install", "claude", "--dry-run"); !strings.Contains(out, "nothing") && !strings.Contains(out, "is connected") && !strings.Contains(out, "already") {
		t.Errorf("a second install plans %s", out)
	}
	m.bridge("uninstall", "claude", "--yes")
	if after, err := os.ReadFile(settings); err != nil || string(after) != before {
		t.Errorf("uninstalled: %v, %q", err, after)
	}
}

func TestPRF_07_TheSetupInstallsAndRemovesBridge(t *testing.T) {
	m := newMachine(t)
	compiler, err := exec.LookPath("makensis")
	if err != nil {
		t.Skip("NOT SHOWN: makensis is missing")
	}
	args := []string{
		"-V2", "-XSetCompressor /FINAL zlib", "-DVERSION=1.2.3", "-DBUILT=" + m.c("bridge"), "-DSETUP=" + m.c("setup.exe"), "-DICON=" + m.icon(), filepath.Join("installer", "windows", "bridge.nsi"),
	}
	if out, err := exec.CommandContext(t.Context(), compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("makensis: %v\n%s", err, out)
	}
	if out, err := m.try(`C:\setup.exe`, "/S"); err != nil {
		t.Fatalf("setup: %v\n%s", err, out)
	}
	folder := m.c("users", "root", "AppData", "Local", "Programs", "Bridge")
	for _, name := range []string{"bridge.exe", "bridge-hook.exe", "bridge-mcp.exe", "bridge-worker.exe", "bridge-desktop.exe", "uninstall.exe"} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if out, err := m.try(`C:\users\root\AppData\Local\Programs\Bridge\bridge.exe`, "version"); err != nil || !strings.HasPrefix(out, "bridge ") {
		t.Errorf("version: %v, %q", err, out)
	}
	if out, err := m.try(`C:\users\root\AppData\Local\Programs\Bridge\uninstall.exe`, "/S", `_?=C:\users\root\AppData\Local\Programs\Bridge`); err != nil {
		t.Fatalf("uninstall: %v\n%s", err, out)
	}
	if entries, _ := os.ReadDir(folder); len(entries) != 1 { // with _?= it cannot remove itself
		t.Errorf("left in the folder: %v", entries)
	}
}

// icon writes an icon of one pixel and returns its path.
func (m *machine) icon() string {
	m.t.Helper()
	pixel := []byte{
		0, 0, 1, 0, 1, 0, 1, 1, 0, 0, 1, 0, 32, 0, 48, 0, 0, 0, 22, 0, 0, 0,
		40, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 32, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		1, 2, 3, 255, 0, 0, 0, 0,
	}
	path := m.at("bridge.ico")
	if err := os.WriteFile(path, pixel, 0o600); err != nil {
		m.t.Fatal(err)
	}
	return path
}

func TestPRF_07_TheServiceIsMadeServesAndIsRemoved(t *testing.T) {
	m := newMachine(t)
	if out := m.bridge("service", "install", "--system"); !strings.Contains(out, "Made the Windows service") {
		t.Errorf("install: %s", out)
	}
	// Wine's own service manager may start anew between two programs, and then knows no service for
	// a moment.
	manage := func(command, want string) (out string) {
		for end := time.Now().Add(time.Minute); time.Now().Before(end); {
			if out, _ = m.try(`C:\bridge\bridge.exe`, "service", command, "--system"); strings.Contains(out, want) {
				break
			}
		}
		return out
	}
	state := func(want string) string { return manage("status", want) }
	if got := state("stopped"); !strings.Contains(got, "stopped") {
		t.Errorf("after the install: %s", got)
	}
	// Wine starts the service outside of session 0, where Go takes no program for a service. So the
	// service control manager gets no answer, but the broker serves.
	t.Logf("NOT SHOWN by Wine: start and stop by the service control manager: %s", manage("start", "was not started"))
	log, err := os.ReadFile(m.c("users", "root", ".bridge", "logs", "bridge.log"))
	if err != nil || !regexp.MustCompile(`msg=ready .*host=service`).Match(log) {
		t.Errorf("what the manager started: %v, %s", err, log)
	}
	_, _ = m.try("taskkill", "/F", "/IM", "bridge.exe")
	if out := m.bridge("doctor"); !strings.Contains(out, "healthy") {
		t.Errorf("the home that it served: %s", out)
	}
	manage("uninstall", "emoved")
	if got := state("is not installed"); !strings.Contains(got, "is not installed") {
		t.Errorf("after the uninstall: %s", got)
	}
}
