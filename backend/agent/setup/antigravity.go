package setup

import (
	"context"
	"path/filepath"

	"bridge/backend/core/bridge"
)

// antigravityServer is the name of Bridge's MCP server for the model: the plugin's
// name, then the server's.
const antigravityServer = "bridge_bridge"

// Antigravity connects Antigravity.
var Antigravity = Connector{bridge.Antigravity, connectAntigravity}

// connectAntigravity returns the layout of a plugin folder with hooks.
func connectAntigravity(_ context.Context, in Input, _ *installed) (layout, error) {
	folder := filepath.Join(in.Home, ".gemini", "config", "plugins", "bridge")
	hook := func(event string) []map[string]any {
		line := in.hookLine(bridge.Antigravity, event)
		if in.windows() {
			line = cmdLine(in.hookWords(bridge.Antigravity, event))
		}
		return []map[string]any{{"type": "command", "command": line, "timeout": 5}}
	}
	files := []struct {
		name, adds string
		content    any
	}{
		{"plugin.json", "Adds the plugin bridge.", map[string]string{
			"name": "bridge", "description": "Messages between the agent sessions on this PC.",
		}},
		{"mcp_config.json", "Adds the MCP server bridge to the plugin.", map[string]any{
			"mcpServers": map[string]any{"bridge": map[string]any{"command": in.Bridge, "args": in.mcpArgs(bridge.Antigravity, true)}},
		}},
		{"hooks.json", "Adds hooks that bring a session its mail before each step and when it stops.", map[string]any{
			"bridge": map[string]any{"PreInvocation": hook("PreInvocation"), "Stop": hook("Stop")},
		}},
	}
	var want layout
	for _, file := range files {
		want.documents = append(want.documents, document{
			path:    filepath.Join(folder, file.name),
			format:  textFile{},
			adds:    file.adds,
			parts:   textPart(string(indented(file.content))),
			verdict: func(any) verdict { return unrelated },
		})
	}
	settings := document{
		path:    filepath.Join(in.Home, ".gemini", "antigravity-cli", "settings.json"),
		format:  jsonFile{},
		adds:    "Lets sessions use Bridge's own tools " + in.askedText() + ".",
		verdict: in.verdict,
	}
	for _, tool := range in.unasked() {
		settings.parts = append(settings.parts, part{Path: []string{"permissions", "allow"}, Element: true, Value: encode("mcp(" + antigravityServer + "/" + tool + ")")})
	}
	want.documents = append(want.documents, settings)
	want.notes = []string{"Antigravity was not tried with Bridge, only a stand-in that speaks its formats. It cannot be woken: mail waits for the next step or turn."}
	if in.deniesOwner {
		want.notes = append(want.notes, "Bridge writes no rules that deny your commands to Antigravity, for it was not tried with any.")
	}
	return want, nil
}
