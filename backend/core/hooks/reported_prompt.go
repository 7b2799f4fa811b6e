package hooks

import (
	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
)

// ParseReportedPrompt decodes a permission prompt that cannot be answered by its hook, with
// the names of codex's tools. It fails with Invalid if it is malformed or names no tool.
func ParseReportedPrompt(kind bridge.AgentKind, stdin []byte) (Prompt, error) {
	p, tool, raw, err := parsePrompt(kind, stdin)
	if err != nil {
		return Prompt{}, err
	}
	p.OnlyTold = string(kind) + " takes an answer from here only while its background server runs it"
	input := newExact(raw)
	switch tool {
	case "Bash":
		p.Kind, p.Why = AsksCommand, input.take("description") // the call that ran lacks it
		p.Call.Tool = session.CallKey(tool, Encode(input.members))
		p.Detail = input.take("command")
	case "apply_patch":
		p.Kind, p.Detail = AsksChange, input.take("command")
	}
	p.Detail = withRest(p.Detail, input.rest())
	return p, nil
}
