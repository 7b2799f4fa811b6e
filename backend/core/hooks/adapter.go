package hooks

import (
	"encoding/json"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
)

// Adapter translates the hooks of one kind of agent CLI, by the traits of the kind. It is
// safe for concurrent use.
type Adapter struct {
	kind   bridge.AgentKind
	format bridge.HookTraits
}

// For returns the adapter of kind, or nil for a kind that is no agent CLI.
func For(kind bridge.AgentKind) *Adapter {
	traits := bridge.TraitsOf(kind)
	if traits.Kind == "" {
		return nil
	}
	return &Adapter{kind, traits.Hooks}
}

// Kind returns the kind of the CLI.
func (a *Adapter) Kind() bridge.AgentKind { return a.kind }

// TaskOf returns what the hook program does for an event of the host. It returns
// TaskReport for an unknown one.
func (a *Adapter) TaskOf(event string) bridge.HookTask { return a.formatOf(event).Task }

// IsStart reports whether an event of the host is the start of a session.
func (a *Adapter) IsStart(event string) bool { return a.formatOf(event).Event == session.EventStart }

// NameOf returns the host's own name of an event, or "" if the host does not report it.
func (a *Adapter) NameOf(event session.Event) string {
	for _, format := range a.format.Events {
		if format.Event == event {
			return format.Name
		}
	}
	return ""
}

// formatOf returns the format of an event of the host. It returns the zero value for an
// unknown one.
func (a *Adapter) formatOf(name string) bridge.HookFormat {
	for _, format := range a.format.Events {
		if format.Name == name {
			return format
		}
	}
	return bridge.HookFormat{}
}

// ParseHook decodes one hook call. event is the host's event name from the command line,
// stdin the host's input. It ignores unknown members. It fails with bridge.Invalid for an
// event that Bridge does not use, and for input without a valid session id. The caller then
// answers the host with FormatHook(session.HookCall{}, "").
func (a *Adapter) ParseHook(event string, stdin []byte) (session.HookCall, error) {
	call, _, err := a.parse(event, stdin)
	return call, err
}

// parse is ParseHook, and also returns the input.
func (a *Adapter) parse(host string, stdin []byte) (call session.HookCall, in members, err error) {
	event := a.formatOf(host).Event
	if event == "" {
		return call, nil, bridge.Errorf(bridge.Invalid, "%s has no hook event %q that Bridge uses", a.kind, host)
	}
	if err := decodeHook(stdin, &in); err != nil {
		return call, nil, err
	}
	names := a.format.Input
	cwd, err := in.folder(names)
	if err != nil {
		return call, nil, err
	}
	call = session.HookCall{
		Kind:       a.kind,
		Event:      event,
		HostEvent:  host,
		SessionID:  in.text(names.Session),
		ChildID:    in.text(names.Child),
		ChildTitle: Shorten(in.text(names.ChildTitle), bridge.MaxNameChars),
		Cwd:        Shorten(cwd, bridge.MaxPathChars),
		Source:     Shorten(in.text(names.Source), bridge.MaxNameChars),
		Prompt:     Shorten(in.text(names.Prompt), maxPromptChars),
		ToolUseID:  Shorten(in.text(names.ToolUse), bridge.MaxIDChars),
		PromptID:   Shorten(in.text(names.PromptID), bridge.MaxIDChars),
	}
	if err := a.addTools(&call, in); err != nil {
		return session.HookCall{}, nil, err
	}
	return call, in, checkIdentity(call)
}

// addTools adds what a call reports about tools. It fails with Invalid if the calls of a
// batch are no list.
func (a *Adapter) addTools(call *session.HookCall, in members) error {
	names := a.format.Input
	switch call.Event {
	case session.EventTool, session.EventAsk, session.EventToolFailed:
		tool := in.text(names.Tool)
		if names.ToolInput != "" {
			call.Tool = toolCall(tool, in[names.ToolInput])
		}
		call.Works = call.Event == session.EventTool && isWork(tool, a.format.OwnTools)
	case session.EventToolBatch:
		var calls []batchCall
		if raw := in[names.Calls]; raw != nil && json.Unmarshal(raw, &calls) != nil {
			return errNoObject()
		}
		for _, toolCall := range calls[:min(len(calls), maxBatch)] {
			call.Results = append(call.Results, toolCall.result())
		}
	default:
	}
	return nil
}

// members are the members of a hook's input, by name.
type members map[string]json.RawMessage

// text returns a member that is a text, or "".
func (m members) text(name string) string {
	var text Text
	_ = text.UnmarshalJSON(m[name]) // it never fails
	return string(text)
}

// folder returns the working folder. It fails with Invalid if the list of folders is none.
func (m members) folder(names bridge.HookInput) (string, error) {
	raw := m[names.FirstFolder]
	if raw == nil {
		return m.text(names.Folder), nil
	}
	var folders []Text
	if json.Unmarshal(raw, &folders) != nil {
		return "", errNoObject()
	}
	if len(folders) == 0 {
		return "", nil
	}
	return string(folders[0]), nil
}

// batchCall is one of the calls in a batch.
type batchCall struct {
	ToolName     Text            `json:"tool_name"`
	ToolInput    json.RawMessage `json:"tool_input"`
	ToolResponse json.RawMessage `json:"tool_response"`
}

// maxBatch limits the reported calls of a batch.
const maxBatch = 100

// result returns the model's input from the call.
func (c batchCall) result() session.ToolResult {
	result := session.ToolResult{Tool: toolCall(string(c.ToolName), c.ToolInput)}
	var said string
	if json.Unmarshal(c.ToolResponse, &said) == nil {
		result.Said = session.TextKey(said)
	}
	return result
}

// isWork reports whether a tool is known and not one of Bridge's, whose names begin with
// prefix.
func isWork(tool, prefix string) bool { return tool != "" && !strings.HasPrefix(tool, prefix) }

// FormatHook returns the host's JSON that gives text to the model in answer to call. It
// returns an empty object if text is empty or the event cannot have text. It also does so
// for every call from a native child.
func (a *Adapter) FormatHook(call session.HookCall, text string) []byte {
	if text == "" || call.ChildID != "" {
		return nothing()
	}
	switch a.formatOf(call.HostEvent).Answer {
	case bridge.AddsContext:
		return Encode(map[string]any{"hookSpecificOutput": map[string]string{
			"hookEventName":     call.HostEvent,
			"additionalContext": text,
		}})
	case bridge.BlocksStop:
		return Encode(map[string]string{"decision": "block", "reason": text})
	case bridge.ContinuesTurn:
		return Encode(map[string]string{"decision": "continue", "reason": text})
	case bridge.InjectsStep:
		return Encode(map[string]any{"injectSteps": []map[string]string{{"ephemeralMessage": text}}})
	case bridge.AnswersText:
		return Encode(map[string]string{"text": text})
	case bridge.NoAnswer:
	}
	return nothing()
}
