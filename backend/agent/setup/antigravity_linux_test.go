package setup_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/agent/kinds"
	"bridge/backend/agent/setup"
	"bridge/backend/core/bridge"
)

// agy is a stand-in for the Antigravity CLI: it reads a plugin folder as that
// CLI does and runs what it finds there.
type agy struct {
	*testing.T
	plugin string
}

func (a agy) read(name string, dst any) {
	a.Helper()
	data, err := os.ReadFile(filepath.Join(a.plugin, name))
	must(a.T, err)
	must(a.T, json.Unmarshal(data, dst))
}

// hook runs the plugin's hooks of an event through a shell and returns what the
// last one said.
func (a agy) hook(event string, input map[string]any) map[string]any {
	a.Helper()
	var plugins map[string]map[string][]struct {
		Type, Command string
		Timeout       int
	}
	a.read("hooks.json", &plugins)
	stdin, err := json.Marshal(input)
	must(a.T, err)
	var said map[string]any
	for _, hook := range plugins["bridge"][event] {
		cmd := exec.CommandContext(context.Background(), "sh", "-c", hook.Command)
		cmd.Stdin = strings.NewReader(string(stdin))
		out, err := cmd.Output()
		must(a.T, err)
		must(a.T, json.Unmarshal(out, &said))
	}
	if said == nil {
		a.Fatalf("no hook for %s", event)
	}
	return said
}

// mcp starts the plugin's server and returns the name that it gives itself.
func (a agy) mcp() string {
	a.Helper()
	var config struct {
		MCPServers map[string]struct {
			Command string
			Args    []string
		} `json:"mcpServers"`
	}
	a.read("mcp_config.json", &config)
	server := config.MCPServers["bridge"]
	cmd := exec.CommandContext(context.Background(), server.Command, server.Args...)
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"agy","version":"1"}}}` + "\n")
	stdout, err := cmd.StdoutPipe()
	must(a.T, err)
	must(a.T, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	must(a.T, err)
	must(a.T, cmd.Wait())
	var answer struct {
		Result struct{ ServerInfo struct{ Name string } }
	}
	must(a.T, json.Unmarshal(line, &answer))
	return answer.Result.ServerInfo.Name
}

func TestMSG_11_AntigravityStandIn(t *testing.T) {
	root := t.TempDir()
	program, home := filepath.Join(root, "pro gram's", "bridge"), filepath.Join(root, "bridge home")
	for _, dir := range []string{filepath.Dir(program), home} {
		must(t, os.MkdirAll(dir, 0o700))
	}
	self, err := os.Executable()
	must(t, err)
	must(t, os.Symlink(self, program))
	plan, err := kinds.PlanInstall(context.Background(), bridge.Antigravity, setup.Input{
		Home: filepath.Join(root, "user"), Bridge: program, BridgeHome: home, State: filepath.Join(home, "install"),
	})
	must(t, err)
	must(t, setup.Apply(plan))

	a := agy{t, filepath.Join(root, "user", ".gemini", "config", "plugins", "bridge")}
	input := map[string]any{"conversationId": "c-1", "workspacePaths": []string{"/p"}, "modelName": "m", "transcriptPath": "/t"}
	want := map[string]any{"injectSteps": []any{map[string]any{"ephemeralMessage": "MAIL-PreInvocation-MAIL"}}}
	if diff := cmp.Diff(want, a.hook("PreInvocation", input)); diff != "" {
		t.Error(diff)
	}
	want = map[string]any{"decision": "continue", "reason": "MAIL-Stop-MAIL"}
	if diff := cmp.Diff(want, a.hook("Stop", input)); diff != "" {
		t.Error(diff)
	}
	if name := a.mcp(); name != "bridge" {
		t.Errorf("the MCP server calls itself %q", name)
	}
	var settings struct{ Permissions struct{ Allow []string } }
	data, err := os.ReadFile(filepath.Join(root, "user", ".gemini", "antigravity-cli", "settings.json"))
	must(t, err)
	must(t, json.Unmarshal(data, &settings))
	if diff := cmp.Diff(allowedByName("mcp(bridge_bridge/", ")"), settings.Permissions.Allow); diff != "" {
		t.Error(diff)
	}
}

// allowedByName are the tools that are used without a question, as a CLI names them.
func allowedByName(before, after string) (names []string) {
	for _, tool := range setup.FreeTools() {
		names = append(names, before+tool+after)
	}
	return names
}
