package hooks

import "bridge/backend/core/bridge"

// ParseHeldPrompt decodes a permission prompt that waits for the owner's answer, with the
// names of claude's tools. It fails with Invalid if it is malformed or names no tool.
func ParseHeldPrompt(kind bridge.AgentKind, stdin []byte) (Prompt, error) {
	p, tool, raw, err := parsePrompt(kind, stdin)
	if err != nil {
		return Prompt{}, err
	}
	p.input = raw
	input := newExact(raw)
	switch tool {
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

// Decision returns the hook output for one answer to a held prompt, or nil if claude would
// ignore it. A model's question needs the chosen answers: claude ignores a plain allow.
func (p Prompt) Decision(allow bool, reason string, answers [][]string) []byte {
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
