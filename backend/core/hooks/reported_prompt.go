package hooks

import (
	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
)

// ParseCodexPrompt decodes codex's PermissionRequest, which cannot be answered here.
func ParseCodexPrompt(stdin []byte) (Prompt, error) {
	call, in, err := parsePermissionRequest(bridge.Codex, stdin)
	if err != nil {
		return Prompt{}, err
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
