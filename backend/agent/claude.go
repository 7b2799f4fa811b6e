package agent

import (
	"context"
	"os"
	"path/filepath"

	"bridge/backend/bridge"
	"bridge/backend/session"
)

// claude is kind A. Its hooks are commands in settings.json; text reaches the
// model as additional context, which at a stop keeps the turn going.
type claude struct{}

func (claude) Kind() bridge.AgentKind { return bridge.Claude }

// commandEvents are the hook events that Bridge registers with claude and codex.
var commandEvents = map[string]session.Event{
	"SessionStart":     session.EventStart,
	"UserPromptSubmit": session.EventPrompt,
	"PreToolUse":       session.EventPreTool,
	"PostToolUse":      session.EventTool,
	"Stop":             session.EventStop,
	"SubagentStart":    session.EventChildStart,
	"SubagentStop":     session.EventChildStop,
	"SessionEnd":       session.EventEnd,
}

func (claude) ParseHook(event string, stdin []byte) (session.HookCall, error) {
	return parseCommandHook(bridge.Claude, event, stdin)
}

// FormatHook adds context at a stop too, which keeps the turn going: the reason
// of a "block" reaches the model twice and is shown as a problem.
func (claude) FormatHook(call session.HookCall, text string) []byte {
	if silent(call, text) {
		return nothing()
	}
	switch call.Event {
	case session.EventStart, session.EventPrompt, session.EventTool, session.EventStop:
		return addContext(call, text)
	default:
		return nothing()
	}
}

// ClaudeToolUse returns the tool use id of an MCP tools/call from claude. Its
// _meta names no agent: the PreToolUse hook with the same id does.
func ClaudeToolUse(meta map[string]any) (toolUseID string, ok bool) {
	toolUseID, _ = meta["claudecode/toolUseId"].(string)
	return toolUseID, bridge.CheckID("the tool use id", toolUseID) == nil
}

// commandHook is the input that claude and codex share.
type commandHook struct {
	SessionID      text  `json:"session_id"`
	AgentID        text  `json:"agent_id"` // inside a native child
	AgentType      text  `json:"agent_type"`
	Cwd            text  `json:"cwd"`
	Source         text  `json:"source"`
	Prompt         text  `json:"prompt"`
	StopHookActive truth `json:"stop_hook_active"`
	ToolName       text  `json:"tool_name"`
	ToolUseID      text  `json:"tool_use_id"`
}

func parseCommandHook(kind bridge.AgentKind, host string, stdin []byte) (session.HookCall, error) {
	event, err := eventOf(kind, commandEvents, host)
	if err != nil {
		return session.HookCall{}, err
	}
	var in commandHook
	if err := decodeHook(stdin, &in); err != nil {
		return session.HookCall{}, err
	}
	call := session.HookCall{
		Kind:       kind,
		Event:      event,
		HostEvent:  host,
		SessionID:  string(in.SessionID),
		ChildID:    string(in.AgentID),
		ChildTitle: shorten(string(in.AgentType), bridge.MaxNameChars),
		Cwd:        shorten(string(in.Cwd), bridge.MaxPathChars),
		Source:     shorten(string(in.Source), bridge.MaxNameChars),
		Prompt:     shorten(string(in.Prompt), maxPromptChars),
		StopActive: bool(in.StopHookActive),
		Tool:       shorten(string(in.ToolName), bridge.MaxIDChars),
		ToolUseID:  shorten(string(in.ToolUseID), bridge.MaxIDChars),
	}
	return call, checkIdentity(call)
}

// addContext is the answer of claude and codex that the model reads beside what
// happened.
func addContext(call session.HookCall, text string) []byte {
	return encode(map[string]any{"hookSpecificOutput": map[string]string{
		"hookEventName":     call.HostEvent,
		"additionalContext": text,
	}})
}

// claudeExecForm is the first version seen to take a hook's arguments as a
// list, without a shell.
const claudeExecForm = "2.1.329"

func (claude) connect(_ context.Context, in Input, _ *installed) (layout, error) {
	folder := in.folder("CLAUDE_CONFIG_DIR", ".claude")
	settings := document{
		path:    filepath.Join(folder, "settings.json"),
		format:  jsonFile{},
		adds:    "Adds hooks that tell Bridge when a session starts, works and stops and that bring it its mail, and lets the session use Bridge's own tools without asking (permissions.allow: mcp__bridge).",
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
	for _, event := range []string{WakeEvent, WakeStandbyEvent} {
		waiting := in.claudeHook(event, wakeSeconds)
		waiting.AsyncRewake = true
		settings.parts = append(settings.parts, part{Path: []string{"hooks", "Stop"}, Element: true, Value: encode(hookGroup{Hooks: []hookEntry{waiting}})})
	}
	settings.parts = append(settings.parts, part{Path: []string{"permissions", "allow"}, Element: true, Value: encode("mcp__bridge")})
	server := mcpServer{Type: "stdio", Command: in.Bridge, Args: in.mcpArgs(bridge.Claude), Env: map[string]string{}, AlwaysLoad: true}
	return layout{documents: []document{
		{
			path:    in.claudeConfig(folder),
			format:  jsonFile{},
			adds:    "Adds the MCP server bridge for all projects of this user.",
			parts:   []part{{Path: []string{"mcpServers", "bridge"}, Value: encode(server)}},
			verdict: in.verdict,
		},
		settings,
	}}, nil
}

// claudeConfig is the file that holds the user's MCP servers.
func (in Input) claudeConfig(folder string) string {
	legacy := filepath.Join(folder, ".config.json")
	if info, err := os.Stat(legacy); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		return legacy
	}
	return filepath.Join(in.folder("CLAUDE_CONFIG_DIR"), ".claude.json")
}

// claudeHook is one hook. On Windows nobody knows which shell would read a
// command line, so it is given as a list where claude takes one.
func (in Input) claudeHook(event string, seconds int) hookEntry {
	hook := hookEntry{Type: "command", Command: in.hookLine(bridge.Claude, event), Timeout: seconds}
	if in.windows() && in.CLI.Version != "" && compareVersions(in.CLI.Version, claudeExecForm) >= 0 {
		hook.Command, hook.Args = in.Bridge, in.hookArgs(bridge.Claude, event)
	}
	return hook
}

// hookGroup is one entry of a hook event's list, for claude and codex.
type hookGroup struct {
	Matcher string      `json:"matcher,omitempty"`
	Hooks   []hookEntry `json:"hooks"`
}

// The events under which claude's wake hooks call `bridge hook claude`: they
// start at a stop, wait in the background of the idle session and start a turn
// when mail may wake it. The standby serves when the first one's wake came to
// nothing.
const (
	WakeEvent        = "Wake"
	WakeStandbyEvent = "WakeStandby"
)

// wakeSeconds is how long the host lets a wake hook wait.
const wakeSeconds = 7200

type hookEntry struct {
	Type    string   `json:"type"`
	Command string   `json:"command"`
	Args    []string `json:"args,omitempty"`
	Timeout int      `json:"timeout"` // seconds
	// AsyncRewake runs the hook in the background; its exit code 2 starts a turn.
	AsyncRewake bool `json:"asyncRewake,omitempty"`
}

// mcpServer is claude's entry of a stdio MCP server.
type mcpServer struct {
	Type    string            `json:"type"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	// AlwaysLoad offers the tools to the model at once instead of behind a search.
	AlwaysLoad bool `json:"alwaysLoad"`
}
