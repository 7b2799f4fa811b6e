package hooks

import (
	"path/filepath"
	"slices"
	"testing"

	"bridge/backend/core/bridge"
)

func TestCHT_10_WhereTheStoresAre(t *testing.T) {
	env := map[string]string{}
	get := func(name string) string { return env[name] }
	home := t.TempDir()
	want := []string{filepath.Join(home, ".claude"), filepath.Join(home, ".codex"), filepath.Join(home, ".local", "share", "opencode"), ""}
	kinds := []bridge.AgentKind{bridge.Claude, bridge.Codex, bridge.OpenCode, bridge.Antigravity}
	folders := func() (all []string) {
		for _, kind := range kinds {
			all = append(all, CLIDataDir(kind, home, get))
		}
		return all
	}
	if got := folders(); !slices.Equal(got, want) {
		t.Errorf("stores in %v, want %v", got, want)
	}
	moved := t.TempDir()
	env = map[string]string{"CLAUDE_CONFIG_DIR": moved, "CODEX_HOME": "relative", "XDG_DATA_HOME": moved}
	want[0], want[2] = moved, filepath.Join(moved, "opencode")
	if got := folders(); !slices.Equal(got, want) {
		t.Errorf("stores in %v, want %v", got, want)
	}
}
