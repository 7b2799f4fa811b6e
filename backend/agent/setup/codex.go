package setup

import (
	"context"
	"path/filepath"
	"strings"

	"bridge/backend/agent"
	"bridge/backend/core/bridge"
	"bridge/backend/core/hooks"
)

// codexToolApproval is the first version tested with the settings that let single
// tools of a server run without a question.
const codexToolApproval = "0.169.0"

// codexPrompts is the first version tested with hooks that report permission
// prompts and interrupted turns.
const codexPrompts = "0.169.0"

// Codex connects codex.
var Codex = Connector{bridge.Codex, connectCodex}

// connectCodex returns the layout: hooks are commands in hooks.json, and codex must
// trust each one.
func connectCodex(ctx context.Context, in Input, before *installed) (layout, error) {
	folder := in.folder("CODEX_HOME", ".codex")
	events := in.codexHooks(filepath.Join(folder, "hooks.json"))
	config := in.codexConfig(filepath.Join(folder, "config.toml"))
	want := layout{documents: []document{events, config}}
	rules, note := in.codexDenies(folder)
	want.documents = append(want.documents, rules...)
	want.notes = addNote(want.notes, note)
	trust, err := in.codexTrust(ctx, events, before)
	if err != nil {
		want.notes = addNote(want.notes, "Codex could not be asked for the checksums of its hooks ("+err.Error()+
			"), so it does not trust Bridge's yet: start codex, type /hooks and trust them. Until then mail waits for the tool inbox.")
		return want, nil //nolint:nilerr // the note says it; everything else can be connected
	}
	want.documents[1].adds = strings.TrimSuffix(config.adds, ".") + "; and marks the hooks above as trusted, as /hooks would."
	want.documents[1].parts = append(config.parts, trust...)
	return want, nil
}

// codexHooks returns the document of hooks.json.
func (in Input) codexHooks(path string) document {
	doc := document{
		path:    path,
		format:  jsonFile{},
		adds:    "Adds hooks that tell Bridge when a session starts, works and stops and that bring it its mail.",
		unread:  unreadByCodex,
		verdict: in.verdict,
	}
	commands := []struct {
		event   string
		seconds int
	}{
		{"SessionStart", 10},
		{"UserPromptSubmit", 5},
		{"PostToolUse", 5},
		{"Stop", 5},
		{"SubagentStart", 5},
		{"SubagentStop", 5},
		{"SessionEnd", 3}, // codex allows at most 3 at the end
		{hooks.PermissionEvent, 5},
		{hooks.InterruptEvent, 3},
	}
	if in.CLI.Version == "" || agent.CompareVersions(in.CLI.Version, codexPrompts) < 0 {
		commands = commands[:len(commands)-2]
	}
	for _, hook := range commands {
		line := in.hookLine(bridge.Codex, hook.event)
		if in.windows() {
			line = cmdLine(in.hookWords(bridge.Codex, hook.event))
		}
		// A hook for which codex waits would delay its dialog.
		entry := hookEntry{Type: "command", Command: line, Timeout: hook.seconds, Async: hook.event == hooks.PermissionEvent}
		group := hookGroup{Hooks: []hookEntry{entry}}
		doc.parts = append(doc.parts, part{Path: []string{"hooks", hook.event}, Element: true, Value: encode(group)})
	}
	return doc
}

// codexConfig returns the document of config.toml. The timeout must exceed the
// longest wait of a tool; codex's own is a minute.
func (in Input) codexConfig(path string) document {
	chooses := in.CLI.Version != "" && agent.CompareVersions(in.CLI.Version, codexToolApproval) >= 0
	server := map[string]any{
		"command":             in.Bridge,
		"args":                in.mcpArgs(bridge.Codex, chooses),
		"startup_timeout_sec": 30,
		"tool_timeout_sec":    3600,
	}
	doc := document{path: path, format: tomlFile{}, adds: "Adds the MCP server bridge.", verdict: in.verdict}
	if chooses {
		server["default_tools_approval_mode"] = "prompt"
		doc.adds = "Adds the MCP server bridge, whose tools run " + in.askedText() + "."
	}
	doc.parts = []part{{Path: []string{"mcp_servers", "bridge"}, Value: encode(server)}}
	if !chooses {
		return doc
	}
	for _, tool := range in.unasked() {
		doc.parts = append(doc.parts, part{
			Path:   []string{"mcp_servers", "bridge", "tools", tool},
			Value:  encode(map[string]string{"approval_mode": "approve"}),
			Yields: true,
		})
	}
	return doc
}
