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

// parsePrompt decodes a hook's permission prompt, and returns the name and the input of its
// tool. It fails with Invalid if the prompt is malformed or names no tool.
func parsePrompt(kind bridge.AgentKind, stdin []byte) (p Prompt, tool string, input json.RawMessage, err error) {
	adapter := For(kind)
	call, in, err := adapter.parse(adapter.NameOf(session.EventAsk), stdin)
	if err != nil {
		return Prompt{}, "", nil, err
	}
	names := adapter.format.Input
	if tool, input = in.text(names.Tool), in[names.ToolInput]; tool == "" {
		return Prompt{}, "", nil, bridge.Errorf(bridge.Invalid, "the prompt names no tool")
	}
	return Prompt{Call: call, Kind: AsksTool, What: Shorten(tool, bridge.MaxNameChars)}, tool, input, nil
}

// withRest appends the rest of a tool's input to the detail. It trims nothing: the
// display is byte for byte.
func withRest(detail, rest string) string {
	if detail == "" || rest == "" {
		return detail + rest
	}
	return detail + "\n" + rest
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
