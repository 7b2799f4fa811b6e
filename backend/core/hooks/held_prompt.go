package hooks

import "bridge/backend/core/bridge"

// ParseClaudePrompt decodes claude's PermissionRequest.
func ParseClaudePrompt(stdin []byte) (Prompt, error) {
	call, in, err := parsePermissionRequest(bridge.Claude, stdin)
	if err != nil {
		return Prompt{}, err
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
