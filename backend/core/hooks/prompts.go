package hooks

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
)

// PermissionEvent is the hook event that asks for permission. Claude's terminal shows
// the prompt at the same time, and the first answer wins. Codex's terminal does so only
// for an asynchronous hook, whose output does not count.
const PermissionEvent = "PermissionRequest"

// FailedEvent and BatchEvent are claude's hook events that prove the effect of an
// answer if PostToolUse does not: that a call ran and failed, and what the model reads
// of a refused call.
const (
	FailedEvent = "PostToolUseFailure"
	BatchEvent  = "PostToolBatch"
)

// IsOfPromptsOnly reports whether a hook event is only about permission prompts.
func IsOfPromptsOnly(event string) bool { return event == FailedEvent || event == BatchEvent }

// Prompt is a host's question to its user before a tool call, for display.
type Prompt struct {
	Call   session.HookCall
	Kind   string // command, change, tool or question
	What   string // the tool
	Detail string // exact and complete
	Why    string // the model's reason
	// OnlyTold is why only the terminal can answer it, or "".
	OnlyTold string
	Caution  string // side effects of an answer
	// Choices are the model's own questions, if they can be answered outside the
	// terminal.
	Choices []bridge.Choice

	input json.RawMessage // of the tool, unchanged
}

// The kinds of prompts.
const (
	AsksCommand  = "command"
	AsksChange   = "change"
	AsksTool     = "tool"
	AsksQuestion = "question"
)

// withRest appends the rest of a tool's input to the detail. It trims nothing: the
// display is byte for byte.
func withRest(detail, rest string) string {
	if detail == "" || rest == "" {
		return detail + rest
	}
	return detail + "\n" + rest
}

// ParseClaudePrompt decodes claude's PermissionRequest.
func ParseClaudePrompt(stdin []byte) (Prompt, error) {
	call, err := parseCommandHook(bridge.Claude, PermissionEvent, stdin)
	if err != nil {
		return Prompt{}, err
	}
	var in commandHook
	if err := decodeHook(stdin, &in); err != nil {
		return Prompt{}, err
	}
	if in.ToolName == "" {
		return Prompt{}, bridge.Errorf(bridge.Invalid, "the prompt names no tool")
	}
	p := Prompt{Call: call, Kind: AsksTool, What: Shorten(string(in.ToolName), bridge.MaxNameChars), input: in.ToolInput}
	input := newExact(in.ToolInput)
	switch in.ToolName {
	case "Bash":
		p.Kind, p.Why = AsksCommand, input.take("description")
		p.Detail = input.take("command")
	case "Edit":
		p.Kind = AsksChange
		path := input.take("file_path")
		p.Detail = change(path, input.take("old_string"), input.take("new_string"))
	case "Write":
		p.Kind = AsksChange
		path := input.take("file_path")
		p.Detail = change(path, "", input.take("content"))
	case claudeAsksUser:
		p.Kind = AsksQuestion
		if p.Choices = claudeChoices(input.members["questions"]); p.Choices == nil {
			p.OnlyTold = "the model asks something itself, in a form that Bridge does not know"
			break
		}
		input.drop("questions")
		p.Detail = askedText(p.Choices)
	case claudeShowsPlan:
		p.Kind, p.OnlyTold = AsksQuestion, "the plan is shown there alone"
	}
	p.Detail = withRest(p.Detail, input.rest())
	return p, nil
}

// ParseCodexPrompt decodes codex's PermissionRequest, which cannot be answered here.
func ParseCodexPrompt(stdin []byte) (Prompt, error) {
	call, err := parseCommandHook(bridge.Codex, PermissionEvent, stdin)
	if err != nil {
		return Prompt{}, err
	}
	var in commandHook
	if err := decodeHook(stdin, &in); err != nil {
		return Prompt{}, err
	}
	if in.ToolName == "" {
		return Prompt{}, bridge.Errorf(bridge.Invalid, "the prompt names no tool")
	}
	p := Prompt{
		Call: call, Kind: AsksTool, What: Shorten(string(in.ToolName), bridge.MaxNameChars),
		OnlyTold: "codex takes an answer from here only while its background server runs it",
	}
	input := newExact(in.ToolInput)
	switch in.ToolName {
	case "Bash":
		p.Kind, p.Why = AsksCommand, input.take("description") // the call that ran lacks it
		p.Call.Tool = session.CallKey(string(in.ToolName), Encode(input.members))
		p.Detail = input.take("command")
	case "apply_patch":
		p.Kind, p.Detail = AsksChange, input.take("command")
	}
	p.Detail = withRest(p.Detail, input.rest())
	return p, nil
}

// ParseOpenCodePrompt decodes a prompt from opencode's plugin.
func ParseOpenCodePrompt(in PluginPrompt) (Prompt, error) {
	call, err := For(bridge.OpenCode).ParseHook(opencodeAsks, in.Call)
	if err != nil {
		return Prompt{}, err
	}
	if in.ID != "" && len(in.Questions) > 0 {
		return opencodeQuestion(call, in.Questions), nil
	}
	if in.ID == "" || in.Permission == "" {
		return Prompt{}, bridge.Errorf(bridge.Invalid, "the prompt has no id, or does not say what for it is")
	}
	p := Prompt{Call: call, Kind: AsksTool, What: Shorten(string(in.Permission), bridge.MaxNameChars)}
	metadata := newExact(in.Metadata)
	switch in.Permission {
	case "bash":
		p.Kind, p.Why = AsksCommand, metadata.take("description")
		p.Detail = metadata.take("command")
	case "edit":
		p.Kind = AsksChange
		metadata.drop("files") // the change again, in parts
		path := metadata.take("filepath")
		if diff := metadata.take("diff"); diff != "" {
			p.Detail = path + "\n" + diff
		} else {
			p.Detail = path
		}
	}
	if strings.TrimSpace(p.Detail) == "" {
		p.Detail = strings.Join(in.Patterns, "\n")
	}
	p.Detail = withRest(p.Detail, metadata.rest())
	return p, nil
}

// ClaudeDecision returns claude's hook output for one answer, or nil if claude would
// ignore it. A model's question needs the chosen answers: claude ignores a plain allow.
func (p Prompt) ClaudeDecision(allow bool, reason string, answers [][]string) []byte {
	decision := map[string]any{"behavior": "allow"}
	switch {
	case !allow:
		decision = map[string]any{"behavior": "deny", "message": Denial(reason)}
	case p.Kind == AsksQuestion:
		input := claudeAnswers(p.input, p.Choices, answers)
		if input == nil {
			return nil
		}
		decision["updatedInput"] = input
	}
	return Encode(map[string]any{"hookSpecificOutput": map[string]any{"hookEventName": PermissionEvent, "decision": decision}})
}

// Denial returns the text that a model reads after a refusal.
func Denial(reason string) string {
	if reason == "" {
		return "Your user refused this."
	}
	return reason
}

// change shows the lines that a change removes from a file and adds.
func change(path, before, after string) string {
	var b strings.Builder
	b.WriteString("--- " + path + "\n")
	writeLines(&b, "-", before)
	writeLines(&b, "+", after)
	return strings.TrimSuffix(b.String(), "\n")
}

func writeLines(b *strings.Builder, sign, text string) {
	if text == "" {
		return
	}
	for line := range strings.SplitSeq(text, "\n") { // a final line end is one more line
		b.WriteString(sign + line + "\n")
	}
}

// exact is a tool's complete input: members that were not taken by name are in its
// rest.
type exact struct {
	members map[string]json.RawMessage
	raw     string // input that is no object
}

func newExact(input json.RawMessage) *exact {
	e := &exact{}
	if json.Unmarshal(input, &e.members) != nil {
		e.raw = string(input)
	}
	return e
}

// take removes and returns a text; another type stays in the rest.
func (e *exact) take(name string) string {
	var text string
	if raw, has := e.members[name]; !has || json.Unmarshal(raw, &text) != nil {
		return ""
	}
	delete(e.members, name)
	return text
}

func (e *exact) drop(name string) { delete(e.members, name) }

func (e *exact) rest() string {
	if len(e.members) == 0 {
		return e.raw
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(e.members)) {
		var value bytes.Buffer
		if json.Indent(&value, e.members[name], "", "  ") != nil {
			value.Write(e.members[name])
		}
		b.WriteString(name + ": " + value.String() + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}
