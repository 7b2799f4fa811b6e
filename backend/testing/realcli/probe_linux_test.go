package realcli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"bridge/backend/platform/sandbox"
)

// probe is this program in the role of an MCP server or of a hook. Both append
// what they were told to a file, one JSON object a line.
//
//	probe-mcp FILE          an MCP server with one tool, echo
//	probe-sandbox ...       what puts the floor under a CLI
//	probe-hook FILE TEXT    a hook that adds TEXT to what the model reads, "" for nothing
func probe(args []string) int {
	var err error
	switch args[0] {
	case "probe-mcp":
		err = probeMCP(args[1])
	case "probe-sandbox":
		err = sandbox.Main(args[1:], os.Environ())
	case "probe-hook":
		err = probeHook(args[1], args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func probeMCP(path string) error {
	s := server.NewMCPServer("probe", "1")
	tool := mcp.NewTool("echo", mcp.WithString("text", mcp.Required()))
	s.AddTool(tool, func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		text, err := r.RequireString("text")
		if err != nil {
			return nil, err
		}
		return mcp.NewToolResultText("echo of " + text), appendLine(path, r.Params)
	})
	return server.ServeStdio(s)
}

func probeHook(path, text string) error {
	raw, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	var call struct {
		Event string `json:"hook_event_name"`
	}
	if err := json.Unmarshal(raw, &call); err != nil {
		return err
	}
	if err := appendLine(path, json.RawMessage(raw)); err != nil || text == "" {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"hookSpecificOutput": map[string]any{"hookEventName": call.Event, "additionalContext": text},
	})
}

func appendLine(path string, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(append(line, '\n'))
	return err
}

// lines reads what a probe appended.
func lines(t *testing.T, path string) []map[string]any {
	t.Helper()
	raw, err := os.ReadFile(path)
	must(t, err)
	var all []map[string]any
	for line := range strings.Lines(string(raw)) {
		var object map[string]any
		must(t, json.Unmarshal([]byte(line), &object))
		all = append(all, object)
	}
	return all
}

// installProbes registers the MCP server `probe` with every CLI and a logging
// hook for two events with claude and codex, as each CLI wants to read it. The
// hook after a tool call also adds added to what the model reads.
func (w *world) installProbes(added string) (calls, hooks string) {
	w.Helper()
	self, err := os.Executable()
	must(w.T, err)
	calls, hooks = filepath.Join(w.home.Root, "calls"), filepath.Join(w.home.Root, "hooks")
	w.logs = append(w.logs, calls, hooks)

	command := func(text string) []any {
		line := fmt.Sprintf("%s probe-hook %s '%s'", self, hooks, text)
		return []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": line, "timeout": 20}}}}
	}
	hooked := map[string]any{"hooks": map[string]any{"SessionStart": command(""), "PostToolUse": command(added)}}
	asJSON := func(v any) string {
		raw, err := json.Marshal(v)
		must(w.T, err)
		return string(raw)
	}
	must(w.T, w.home.Append(".claude/settings.json", asJSON(hooked)))
	must(w.T, w.home.Append(".codex/hooks.json", asJSON(hooked)))

	run := map[string]any{"command": self, "args": []string{"probe-mcp", calls}}
	must(w.T, w.home.Edit(".claude.json", func(settings map[string]any) {
		// Without alwaysLoad claude hides a server's tools behind a search.
		settings["mcpServers"] = map[string]any{"probe": map[string]any{"command": self, "args": run["args"], "alwaysLoad": true}}
	}))
	must(w.T, w.home.Append(".codex/config.toml", fmt.Sprintf("\n[mcp_servers.probe]\ncommand = %q\nargs = [\"probe-mcp\", %q]\n", self, calls)))
	must(w.T, w.home.Edit(".config/opencode/opencode.json", func(settings map[string]any) {
		settings["mcp"] = map[string]any{"probe": map[string]any{"type": "local", "command": []string{self, "probe-mcp", calls}, "enabled": true}}
	}))
	return calls, hooks
}
