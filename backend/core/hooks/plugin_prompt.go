package hooks

import (
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
)

// ParsePluginPrompt decodes a prompt from the plugin of a kind. It fails with Invalid if the
// prompt is malformed, has no id, or does not name a permission.
func ParsePluginPrompt(kind bridge.AgentKind, in PluginPrompt) (Prompt, error) {
	adapter := For(kind)
	call, err := adapter.ParseHook(adapter.NameOf(session.EventAsk), in.Call)
	if err != nil {
		return Prompt{}, err
	}
	if in.ID != "" && len(in.Questions) > 0 {
		return pluginQuestion(call, in.Questions), nil
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
