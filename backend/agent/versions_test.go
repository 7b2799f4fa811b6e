package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
)

// What the tests drive is the newest version that Bridge says it was tried with.
func TestMSG_11_TheTriedVersionsAreThoseOfTheTests(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "build", "clis", "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	var pins struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	if err := json.Unmarshal(raw, &pins); err != nil {
		t.Fatal(err)
	}
	packages := map[bridge.AgentKind]string{
		bridge.Claude: "@anthropic-ai/claude-code", bridge.Codex: "@openai/codex", bridge.OpenCode: "opencode-ai",
	}
	if len(pins.Dependencies) != len(packages) || len(tried) != len(packages) {
		t.Fatalf("the tests pin %v, Bridge was tried with %v", pins.Dependencies, tried)
	}
	for kind, name := range packages {
		if got, want := tried[kind][1], pins.Dependencies[name]; got != want {
			t.Errorf("%s: the newest tried version is %s, the tests drive %s", kind, got, want)
		}
	}
}

func TestMSG_11_AVersionThatBridgeWasNotTriedWith(t *testing.T) {
	tests := []struct {
		kind    bridge.AgentKind
		version string
		says    []string // nil: nothing
		unknown bool     // nothing is written for it
	}{
		{bridge.Claude, "2.1.329", nil, false},
		{bridge.Claude, "2.1.330", []string{"claude 2.1.330", "newer than 2.1.329"}, false},
		{bridge.Claude, "2.1.99", []string{"older than 2.1.329"}, false},
		{bridge.Claude, "3.0.0", []string{"newer than 2.1.329"}, false},
		{bridge.Codex, "0.160.1", nil, false},
		{bridge.Codex, "0.165.3", nil, false},
		{bridge.Codex, "0.160.0", []string{"older than 0.160.1"}, false},
		{bridge.Codex, "1.0.0", []string{"newer than 0.169.0"}, false},
		{bridge.OpenCode, "1.18.33", nil, false},
		{bridge.OpenCode, "1.19", []string{"newer than 1.18.33"}, false},
		{bridge.OpenCode, "2.0.0", []string{"opencode 2.0.0", "1.18.33", "connected and deaf"}, true},
		{bridge.OpenCode, "10.1.1", []string{"connected and deaf"}, true},
		{bridge.OpenCode, "0.15.0", []string{"connected and deaf"}, true},
		{bridge.OpenCode, "", nil, false},
		{bridge.Antigravity, "0.1.0", nil, false},
	}
	for _, tt := range tests {
		t.Run(string(tt.kind)+" "+tt.version, func(t *testing.T) {
			got := VersionProblem(tt.kind, tt.version)
			if (got == "") != (tt.says == nil) || (UnknownLayout(tt.kind, tt.version) != "") != tt.unknown {
				t.Errorf("it says %q, its layout: %q", got, UnknownLayout(tt.kind, tt.version))
			}
			for _, words := range tt.says {
				if !strings.Contains(got, words) {
					t.Errorf("it says %q, which lacks %q", got, words)
				}
			}
		})
	}
}

func TestMSG_11_ADetectorAsksAProgramOnce(t *testing.T) {
	dir := t.TempDir()
	asked := filepath.Join(dir, "asked")
	path := program(t, filepath.Join(dir, "codex"), "echo x >> "+asked+"; echo 0.169.0")
	var d Detector
	look := func(version string, asks int) {
		t.Helper()
		found, err := d.Detect(t.Context(), bridge.Codex, Lookup{Env: func(string) string { return "" }, Configured: path})
		raw, _ := os.ReadFile(asked)
		if err != nil || found.Version != version || strings.Count(string(raw), "x") != asks {
			t.Errorf("found %+v, %v after %d questions; want %s after %d", found, err, strings.Count(string(raw), "x"), version, asks)
		}
	}
	look("0.169.0", 1)
	look("0.169.0", 1)
	program(t, path, "echo x >> "+asked+"; echo 0.170.12")
	look("0.170.12", 2)
	program(t, path, "echo x >> "+asked+"; exit 1")
	look("", 3)
	look("", 4) // it may tell the next time
}
