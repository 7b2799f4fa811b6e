package agent

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/config"
	"bridge/backend/testing/testkit"
)

func TestJOB_24_AnACPAgentIsWhatTheOwnerWrote(t *testing.T) {
	bin := t.TempDir()
	program := filepath.Join(bin, "goose")
	if err := testkit.WriteProgram(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	env := func(name string) string {
		return map[string]string{"PATH": bin, "GOOSE_KEY": "k", "OTHER_KEY": "o"}[name]
	}
	settings := config.Settings{Config: config.Config{ACP: map[string]config.ACPAgent{
		"goose": {Command: "goose", Args: []string{"acp"}, Env: []string{"GOOSE_KEY", "UNSET"}, Writable: []string{"/state"}, Modes: map[string]string{"ask": "approve"}},
		"gone":  {Command: "gone"}, "moved": {Command: "/no/such/program"},
	}}}
	got, err := Fit(job.Spec{Kind: job.ACP, ACP: job.ACPAgent{Name: "goose"}}, settings, Lookup{Env: env})
	if err != nil || !slices.Equal(got.Command, []string{program, "acp"}) || !slices.Equal(got.Env, []string{"GOOSE_KEY=k"}) ||
		!slices.Equal(got.ACP.Writable, []string{"/state"}) || got.ACP.Modes[job.AccessAsk] != "approve" {
		t.Errorf("%+v, %v", got, err)
	}
	for name, words := range map[string]string{
		"other": `there is no agent "other" in agents.acp`, "gone": "agents.acp.gone names gone, which is no program", "moved": "/no/such/program",
	} {
		if _, err := Fit(job.Spec{Kind: job.ACP, ACP: job.ACPAgent{Name: name}}, settings, Lookup{Env: env}); bridge.CodeOf(err) != bridge.NotFound || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", name, err, words)
		}
	}
	if _, err := Fit(job.Spec{Kind: bridge.Antigravity}, settings, Lookup{Env: env}); bridge.CodeOf(err) != bridge.NotFound || !strings.Contains(err.Error(), "agy is not on PATH") {
		t.Errorf("a kind that is not there: %v", err)
	}
}

// What is started is what a shell would start.
func TestJOB_27_AProgramIsStartedAsAShellDoesIt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there a program is known by its name")
	}
	path := filepath.Join(t.TempDir(), "opencode")
	env := func(name string) string { return map[string]string{"BRIDGE_OPENCODE_BIN": path}[name] }
	for text, want := range map[string][]string{
		"#!/bin/sh\necho 1.18.33\n": {path},
		"echo 1.18.33\n":            {"/bin/sh", path},
		"\x7fELF\x02\x01\x01\x00ab": {path},
		"":                          {path},
	} {
		if err := testkit.WriteProgram(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		got, err := Fit(job.Spec{Kind: bridge.OpenCode}, config.Settings{}, Lookup{Env: env})
		if err != nil || !slices.Equal(got.Command, want) {
			t.Errorf("%q is started by %q (%v), want %q", text, got.Command, err, want)
		}
		found, err := Detect(t.Context(), bridge.OpenCode, Lookup{Env: env})
		if tells := strings.Contains(text, "echo"); err != nil || tells != (found.Version == "1.18.33") {
			t.Errorf("%q: its version is %q (%v)", text, found.Version, err)
		}
	}
}

func TestAnAntigravityThatIsTooOldIsRefusedByItsVersion(t *testing.T) {
	for version, words := range map[string]string{
		"agy 1.1.15": "", "agy 2.0.1 (stable)": "", "agy 1.1.9": "antigravity 1.1.9 is too old for jobs", "no number": "antigravity does not tell its version",
	} {
		bin := t.TempDir()
		if err := testkit.WriteProgram(filepath.Join(bin, "agy"), []byte("#!/bin/sh\necho '"+version+"'\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		env := func(name string) string { return map[string]string{"PATH": bin}[name] }
		_, err := Fit(job.Spec{Kind: bridge.Antigravity}, config.Settings{}, Lookup{Env: env})
		if words == "" && err != nil || words != "" && (bridge.CodeOf(err) != bridge.Unsupported || !strings.HasPrefix(err.Error(), words)) {
			t.Errorf("%s: %v, want %q", version, err, words)
		}
	}
}
