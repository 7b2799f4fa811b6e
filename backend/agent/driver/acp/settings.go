package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// session is what the agent says of a session that it has opened.
type session struct {
	ID    string `json:"sessionId"`
	Modes struct {
		Current   string `json:"currentModeId"`
		Available []struct {
			ID string `json:"id"`
		} `json:"availableModes"`
	} `json:"modes"`
	Settings []setting `json:"configOptions"`
}

// setting is a choice that the agent offers for the session.
type setting struct {
	ID       string   `json:"id"`
	Category string   `json:"category"`
	Current  any      `json:"currentValue"`
	Choices  []choice `json:"options"`
}

// choice is a value, or a group of them.
type choice struct {
	Value   string   `json:"value"`
	Choices []choice `json:"options"`
}

// values lists what a setting may be set to.
func values(choices []choice) []string {
	var list []string
	for _, c := range choices {
		if c.Value != "" {
			list = append(list, c.Value)
		}
		list = append(list, values(c.Choices)...)
	}
	return list
}

// find is the setting of a category.
func (s session) find(category string) (setting, bool) {
	i := slices.IndexFunc(s.Settings, func(item setting) bool { return item.Category == category })
	if i < 0 {
		return setting{}, false
	}
	return s.Settings[i], true
}

// The categories of settings that the protocol names.
const (
	categoryMode   = "mode"
	categoryModel  = "model"
	categoryEffort = "thought_level"
)

// knownModes lists the modes whose names say what they allow, by the access of a job. The
// owner can name others in agents.acp.<name>.modes.
var knownModes = map[job.Access][]string{
	job.AccessRead: {"plan", "read-only"},
	job.AccessAsk:  {"ask", "manual"},
	job.AccessEdit: {"acceptEdits"},
}

// adapterModes lists further modes of known agents, by the name that an agent gives itself
// in agentInfo (KND-06). Seen with claude-agent-acp 0.101.0, gemini-cli 0.61.0, qwen-code
// 0.24.4 and codex-acp 0.16.0. codex-acp has no mode that asks before each change.
var adapterModes = map[string]map[job.Access]string{
	"@agentclientprotocol/claude-agent-acp": {job.AccessAsk: "default"},
	"gemini-cli":                            {job.AccessAsk: "default", job.AccessEdit: "autoEdit"},
	"qwen-code":                             {job.AccessAsk: "default", job.AccessEdit: "auto-edit"},
	"codex-acp":                             {job.AccessEdit: "auto"},
}

// set brings the session into what the job asks for and reads it back. It returns
// the model that the agent says it uses.
func (a *agent) set(ctx context.Context, s session) (model string, err error) {
	if err := a.setMode(ctx, s); err != nil {
		return "", err
	}
	for _, row := range []struct{ category, what, value string }{
		{categoryModel, "model", a.spec.Model}, {categoryEffort, "effort", a.spec.Effort},
	} {
		if row.value == "" {
			continue
		}
		found, has := s.find(row.category)
		if !has {
			return "", fmt.Errorf("%s has no setting for the %s: leave it out", a.spec.ACP.Name, row.what)
		}
		if offered := values(found.Choices); !slices.Contains(offered, row.value) {
			return "", fmt.Errorf("%s has no %s %q: it offers %s", a.spec.ACP.Name, row.what, row.value, strings.Join(offered, ", "))
		}
		if err := a.setValue(ctx, s, found, row.value); err != nil {
			return "", err
		}
	}
	found, _ := s.find(categoryModel)
	model, _ = found.Current.(string)
	if a.spec.Model != "" {
		model = a.spec.Model
	}
	return model, nil
}

// setMode sets the mode. An agent's own first choice is never relied on: of one it is
// known that another model decides in it what is allowed.
func (a *agent) setMode(ctx context.Context, s session) error {
	asSetting, isSetting := s.find(categoryMode)
	offered, current := values(asSetting.Choices), s.Modes.Current
	if isSetting {
		current, _ = asSetting.Current.(string)
	} else {
		for _, mode := range s.Modes.Available {
			offered = append(offered, mode.ID)
		}
	}
	mode, err := a.modeOf(offered)
	if err != nil || mode == "" {
		return err
	}
	before := ""
	a.change(func() {
		if a.mode == "" {
			a.mode = current
		}
		before = a.mode
		if a.spec.Access == job.AccessAsk {
			a.wanted = mode
		}
	})
	switch {
	case current == mode:
		return nil
	case isSetting:
		return a.setValue(ctx, s, asSetting, mode)
	}
	if _, err := a.request(ctx, "session/set_mode", map[string]any{"sessionId": s.ID, "modeId": mode}); err != nil {
		return fmt.Errorf("set the mode %q of %s: %w", mode, a.spec.ACP.Name, err)
	}
	return a.confirm(mode, before)
}

// confirm takes the answer to session/set_mode as the new mode. It fails if the agent has
// reported a mode since that is neither the new one nor the one before (KND-06).
func (a *agent) confirm(mode, before string) (err error) {
	a.change(func() {
		if a.mode != "" && a.mode != before && a.mode != mode {
			err = fmt.Errorf("%s was set to the mode %q and reports the mode %q", a.spec.ACP.Name, mode, a.mode)
			return
		}
		a.mode = mode
	})
	return err
}

// modeOf returns the mode for the job's access: the owner's choice, one whose name says
// that it fits, or the mode of a known adapter. It returns "" to leave the agent in its own
// mode, because the sandbox limits the job. It fails with Invalid if the agent does not
// offer the owner's choice, and with Denied if a job must ask and no mode is known to ask.
func (a *agent) modeOf(offered []string) (string, error) {
	access, name := a.spec.Access, a.spec.ACP.Name
	if own := a.spec.ACP.Modes[access]; own != "" {
		if !slices.Contains(offered, own) {
			return "", bridge.Errorf(bridge.Invalid, "%s has no mode %q, which agents.acp.%s.modes.%s names: it offers %s", name, own, name, access, strings.Join(offered, ", "))
		}
		return own, nil
	}
	for _, mode := range append(slices.Clone(knownModes[access]), adapterModes[a.adapter][access]) {
		if slices.Contains(offered, mode) {
			return mode, nil
		}
	}
	if access == job.AccessAsk {
		return "", bridge.Errorf(bridge.Denied, "%s has no mode that is known to ask before each change: name one in agents.acp.%s.modes.ask", name, name)
	}
	return "", nil
}

// setValue sets one of the session's settings; the answer says what it is now.
func (a *agent) setValue(ctx context.Context, s session, item setting, value string) error {
	raw, err := a.request(ctx, "session/set_config_option", map[string]any{"sessionId": s.ID, "configId": item.ID, "value": value})
	if err != nil {
		return fmt.Errorf("set the %s of %s to %q: %w", item.ID, a.spec.ACP.Name, value, err)
	}
	var now session
	json.Unmarshal(raw, &now) //nolint:errcheck // what it does not say is not confirmed
	if found, _ := now.find(item.Category); found.Current != value {
		return fmt.Errorf("%s did not confirm its %s %q", a.spec.ACP.Name, item.ID, value)
	}
	if item.Category == categoryMode {
		a.change(func() { a.mode = value })
	}
	return nil
}

// handleMode takes in the mode that the agent says it is in. Who is to ask and leaves
// the mode that does is stopped.
func (a *agent) handleMode(mode string) {
	if mode == "" {
		return
	}
	stop := false
	a.change(func() {
		stop = a.wanted != "" && a.mode == a.wanted && mode != a.wanted && a.running != ""
		a.mode, a.left = mode, a.left || stop
	})
	if stop {
		go a.Stop(context.Background()) //nolint:errcheck // the run's end is an event
	}
}
