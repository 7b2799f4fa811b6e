package setup

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"bridge/backend/agent"
	"bridge/backend/core/bridge"
	"bridge/backend/testing/testkit"
)

// program writes a shell script that stands in for a CLI.
func program(t *testing.T, path, script string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no shell scripts")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := testkit.WriteProgram(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// A codex that cannot be asked is connected all the same, and the person is told
// what is left to do.
func TestMSG_11_CodexThatCannotTellItsHooksChecksums(t *testing.T) {
	for name, script := range map[string]string{
		"ends at once":   "exit 1",
		"refuses":        `read x; echo '{"id":1,"error":{"code":-1,"message":"not today"}}'; read y`,
		"knows no hooks": `read x; echo '{"id":1,"result":{}}'; read y; read z; echo '{"id":2,"result":{"data":[]}}'`,
		"talks nonsense": `read x; echo hello; echo '{"method":"note"}'`,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPerson(t, nil)
			p.in.CLI = agent.Found{Path: program(t, filepath.Join(t.TempDir(), "codex"), script), Version: "0.169.0"}
			plan := p.install(bridge.Codex)
			if len(plan.Notes) != 1 || !strings.Contains(plan.Notes[0], "/hooks") {
				t.Errorf("notes %q", plan.Notes)
			}
			if config := p.get(".codex/config.toml"); !strings.Contains(config, "[mcp_servers.bridge]") || strings.Contains(config, "trusted_hash") {
				t.Errorf("config.toml:\n%s", config)
			}
		})
	}
}

// Only the checksums of our own hooks are trusted, at their real place.
func TestMSG_11_CodexTrustIsForOurHooksAlone(t *testing.T) {
	p := newPerson(t, map[string]string{".codex/hooks.json": settled[".codex/hooks.json"]})
	// Codex names the file that it was shown; the stand-in takes it from its home.
	script := `read x; echo '{"id":1,"result":{}}'; read y; read z
line() { printf '{"key":"%s/hooks.json:stop:%s:0","command":"%s","currentHash":"sha256:%s"}' "$CODEX_HOME" "$1" "$2" "$3"; }
printf '{"id":2,"result":{"data":[{"hooks":[%s,%s]}]}}\n' "$(line 0 'say done' theirs)" "$(line 1 "$OURS" mine)"`
	t.Setenv("OURS", strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(p.in.hookLine(bridge.Codex, "Stop")))
	p.in.CLI = agent.Found{Path: program(t, filepath.Join(t.TempDir(), "codex"), script), Version: "0.169.0"}
	p.install(bridge.Codex)
	config := p.get(".codex/config.toml")
	want := `[hooks.state."` + filepath.Join(p.in.Home, ".codex", "hooks.json") + `:stop:1:0"]` + "\ntrusted_hash = \"sha256:mine\"\n"
	if !strings.Contains(config, want) || strings.Contains(config, "theirs") {
		t.Errorf("config.toml:\n%s\nlacks\n%s", config, want)
	}
}
