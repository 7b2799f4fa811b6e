package setup

import (
	"context"
	"path/filepath"

	"bridge/backend/agent"
	"bridge/backend/bridge"
)

// codexToolApproval is the first version tried with the setting that lets the
// tools of one server run without a question each.
const codexToolApproval = "0.169.0"

// connectCodex: hooks are commands in hooks.json, each of which codex must be told to
// trust.
func connectCodex(ctx context.Context, in Input, before *installed) (layout, error) {
	folder := in.folder("CODEX_HOME", ".codex")
	hooks := in.codexHooks(filepath.Join(folder, "hooks.json"))
	config := in.codexConfig(filepath.Join(folder, "config.toml"))
	want := layout{documents: []document{hooks, config}}
	trust, err := in.codexTrust(ctx, hooks, before)
	if err != nil {
		want.notes = []string{"Codex could not be asked for the checksums of its hooks (" + err.Error() +
			"), so it does not trust Bridge's yet: start codex, type /hooks and trust them. Until then mail waits for the tool inbox."}
		return want, nil //nolint:nilerr // the note says it; everything else can be connected
	}
	want.documents[1].adds = "Adds the MCP server bridge, whose tools run without a question each, and marks the hooks above as trusted, as /hooks would."
	want.documents[1].parts = append(config.parts, trust...)
	return want, nil
}

// codexHooks is hooks.json.
func (in Input) codexHooks(path string) document {
	doc := document{
		path:    path,
		format:  jsonFile{},
		adds:    "Adds hooks that tell Bridge when a session starts, works and stops and that bring it its mail.",
		verdict: in.verdict,
	}
	for _, hook := range []struct {
		event   string
		seconds int
	}{
		{"SessionStart", 10},
		{"UserPromptSubmit", 5},
		{"PostToolUse", 5},
		{"Stop", 5},
		{"SubagentStart", 5},
		{"SubagentStop", 5},
		{"SessionEnd", 3}, // codex allows no more than 3 at the end
	} {
		line := in.hookLine(bridge.Codex, hook.event)
		if in.windows() {
			line = cmdLine(in.hookWords(bridge.Codex, hook.event))
		}
		group := hookGroup{Hooks: []hookEntry{{Type: "command", Command: line, Timeout: hook.seconds}}}
		doc.parts = append(doc.parts, part{Path: []string{"hooks", hook.event}, Element: true, Value: encode(group)})
	}
	return doc
}

// codexConfig is config.toml. The time-out must outlast the longest wait of a
// tool; codex's own is a minute.
func (in Input) codexConfig(path string) document {
	server := map[string]any{
		"command":             in.Bridge,
		"args":                in.mcpArgs(bridge.Codex),
		"startup_timeout_sec": 30,
		"tool_timeout_sec":    3600,
	}
	adds := "Adds the MCP server bridge."
	if in.CLI.Version != "" && agent.CompareVersions(in.CLI.Version, codexToolApproval) >= 0 {
		server["default_tools_approval_mode"] = "approve"
		adds = "Adds the MCP server bridge, whose tools run without a question each."
	}
	return document{
		path:    path,
		format:  tomlFile{},
		adds:    adds,
		parts:   []part{{Path: []string{"mcp_servers", "bridge"}, Value: encode(server)}},
		verdict: in.verdict,
	}
}
