package setup

import (
	"context"
	"os"
	"path/filepath"

	"bridge/backend/agent"
	"bridge/backend/core/bridge"
	"bridge/backend/core/hooks"
)

// claudeExecForm is the first version known to accept a hook's arguments as a list,
// without a shell.
const claudeExecForm = "2.1.329"

// claudePrompts is the first version known to ask for permission by a hook while
// its terminal also shows the prompt.
const claudePrompts = "2.1.329"

// promptSeconds is how long the host lets a hook hold a prompt.
const promptSeconds = 3600

// Claude connects Claude Code.
var Claude = Connector{bridge.Claude, connectClaude}

// connectClaude returns the layout: hooks are commands in settings.json, and an MCP
// server is in a separate file.
func connectClaude(_ context.Context, in Input, before *installed) (layout, error) {
	folder := in.folder("CLAUDE_CONFIG_DIR", ".claude")
	settings := document{
		path:    filepath.Join(folder, "settings.json"),
		format:  jsonFile{},
		adds:    "Adds hooks that tell Bridge when a session starts, works, asks for permission and stops and that bring it its mail, and lets the session use Bridge's own tools " + in.askedText() + " (permissions.allow: mcp__bridge__<tool>).",
		unread:  unreadByClaude,
		verdict: in.verdict,
	}
	for _, hook := range []struct {
		event, matcher string
		seconds        int
	}{
		{"SessionStart", "", 10},
		{"UserPromptSubmit", "", 5},
		{"PreToolUse", "mcp__bridge__(inbox|wait_for_message)", 5},
		{"PostToolUse", "", 5},
		{"Stop", "", 5},
		{"SubagentStart", "", 5},
		{"SubagentStop", "", 5},
		{"SessionEnd", "", 3},
	} {
		group := hookGroup{Matcher: hook.matcher, Hooks: []hookEntry{in.claudeHook(hook.event, hook.seconds)}}
		settings.parts = append(settings.parts, part{Path: []string{"hooks", hook.event}, Element: true, Value: encode(group)})
	}
	if in.CLI.Version != "" && agent.CompareVersions(in.CLI.Version, claudePrompts) >= 0 {
		asking := hookGroup{Hooks: []hookEntry{in.claudeHook(hooks.PermissionEvent, promptSeconds)}}
		settings.parts = append(settings.parts, part{Path: []string{"hooks", hooks.PermissionEvent}, Element: true, Value: encode(asking)})
		failed := hookGroup{Hooks: []hookEntry{in.claudeHook(hooks.FailedEvent, 5)}}
		settings.parts = append(settings.parts, part{Path: []string{"hooks", hooks.FailedEvent}, Element: true, Value: encode(failed)})
		over := in.claudeHook(hooks.BatchEvent, 5)
		over.Async = true // the turn does not wait for it
		settings.parts = append(settings.parts, part{Path: []string{"hooks", hooks.BatchEvent}, Element: true, Value: encode(hookGroup{Hooks: []hookEntry{over}})})
	}
	for _, event := range []string{hooks.WakeEvent, hooks.WakeStandbyEvent} {
		waiting := in.claudeHook(event, wakeSeconds)
		waiting.AsyncRewake = true
		settings.parts = append(settings.parts, part{Path: []string{"hooks", "Stop"}, Element: true, Value: encode(hookGroup{Hooks: []hookEntry{waiting}})})
	}
	for _, tool := range in.unasked() {
		settings.parts = append(settings.parts, part{Path: []string{"permissions", "allow"}, Element: true, Value: encode("mcp__bridge__" + tool)})
	}
	denied, note := in.claudeDenies()
	for _, rule := range denied {
		settings.parts = append(settings.parts, part{Path: []string{"permissions", "deny"}, Element: true, Value: encode(rule)})
	}
	settings.adds += in.deniedText("permissions.deny", true)
	want := layout{documents: []document{in.claudeServer(in.claudeConfig(folder)), settings}}
	want.notes = addNote(want.notes, note)
	mod, note := in.claudeMod(folder, before)
	want.documents = append(want.documents, mod...)
	want.notes = addNote(want.notes, note)
	return want, nil
}

// claudeServer returns the document of the file with the user's MCP servers.
func (in Input) claudeServer(path string) document {
	server := mcpServer{Type: "stdio", Command: in.Bridge, Args: in.mcpArgs(bridge.Claude, true), Env: map[string]string{}, AlwaysLoad: true}
	return document{
		path:    path,
		format:  jsonFile{},
		adds:    "Adds the MCP server bridge for all projects of this user.",
		parts:   []part{{Path: []string{"mcpServers", "bridge"}, Value: encode(server)}},
		unread:  unreadByClaude,
		verdict: in.verdict,
	}
}

// claudeConfig returns the file with the user's MCP servers.
func (in Input) claudeConfig(folder string) string {
	legacy := filepath.Join(folder, ".config.json")
	if info, err := os.Stat(legacy); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		return legacy
	}
	return filepath.Join(in.folder("CLAUDE_CONFIG_DIR"), ".claude.json")
}

// claudeHook returns one hook. On Windows the shell that would read a command line
// is unknown, so the hook is a list if Claude Code supports that.
func (in Input) claudeHook(event string, seconds int) hookEntry {
	hook := hookEntry{Type: "command", Command: in.hookLine(bridge.Claude, event), Timeout: seconds}
	if in.windows() && in.CLI.Version != "" && agent.CompareVersions(in.CLI.Version, claudeExecForm) >= 0 {
		words := in.hookWords(bridge.Claude, event)
		hook.Command, hook.Args = words[0], words[1:]
	}
	return hook
}

// hookGroup is one entry of a hook event's list, for Claude Code and codex.
type hookGroup struct {
	Matcher string      `json:"matcher,omitempty"`
	Hooks   []hookEntry `json:"hooks"`
}

// wakeSeconds is how long the host lets a wake hook wait.
const wakeSeconds = 7200

type hookEntry struct {
	Type    string   `json:"type"`
	Command string   `json:"command"`
	Args    []string `json:"args,omitempty"`
	Timeout int      `json:"timeout"` // seconds
	// AsyncRewake runs the hook in the background; its exit code 2 starts a turn.
	AsyncRewake bool `json:"asyncRewake,omitempty"`
	// Async runs it in the background and ignores its output.
	Async bool `json:"async,omitempty"`
}

// mcpServer is Claude Code's entry of a stdio MCP server.
type mcpServer struct {
	Type    string            `json:"type"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	// AlwaysLoad offers the tools to the model immediately instead of through a search.
	AlwaysLoad bool `json:"alwaysLoad"`
}
