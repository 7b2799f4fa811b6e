package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
)

// ACPAgent is an agent that speaks the Agent Client Protocol. It is a member of
// agents.acp in config.json (JOB-24).
type ACPAgent struct {
	// Command is the agent's program: an absolute path, or a name on PATH.
	Command string   `json:"command"`
	Args    []string `json:"args,omitempty"`
	// Env lists the variables that Bridge passes on to the agent. No file of Bridge
	// holds their values.
	Env []string `json:"env,omitempty"`
	// Writable lists the folders of the agent's own state: absolute, or below ~/.
	// It must be able to write there even in a sandbox.
	Writable []string `json:"writable,omitempty"`
	// Modes maps Bridge's access levels read, ask and edit to the agent's names of them.
	Modes map[string]string `json:"modes,omitempty"`
}

// acpMember is the member of agents that holds the ACP agents by name.
const acpMember = "acp"

// readACP reads agents.acp. Its values start programs, so an unknown member is an
// error and is not ignored.
func readACP(agents json.RawMessage) (map[string]ACPAgent, error) {
	var kinds map[string]json.RawMessage
	if json.Unmarshal(agents, &kinds) != nil || kinds[acpMember] == nil {
		return nil, nil //nolint:nilerr // agents of another type were named before
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(kinds[acpMember], &raw); err != nil {
		return nil, errors.New("agents.acp must be a JSON object of agents by their names")
	}
	found := map[string]ACPAgent{}
	for name, data := range raw {
		var agent ACPAgent
		err := bridge.CheckPlainName(name)
		if err == nil {
			err = bridge.DecodeStrict(data, maxConfigBytes, &agent)
		}
		if err == nil {
			err = agent.check()
		}
		if err != nil {
			return nil, fmt.Errorf("agents.acp.%s: %w", name, err)
		}
		found[name] = agent
	}
	return found, nil
}

func (a ACPAgent) check() error {
	switch {
	case a.Command == "":
		return fmt.Errorf("command must name its program")
	case !filepath.IsAbs(a.Command) && filepath.Base(a.Command) != a.Command:
		return fmt.Errorf("command must be an absolute path or a name on PATH, not %q", a.Command)
	}
	for _, name := range a.Env {
		if name == "" || strings.ContainsAny(name, "= \x00") {
			return fmt.Errorf("env must list names of variables, not %q", name)
		}
	}
	for _, folder := range a.Writable {
		if !filepath.IsAbs(folder) && !strings.HasPrefix(folder, "~/") {
			return fmt.Errorf("writable must list absolute folders or such below ~/, not %q", folder)
		}
	}
	for access := range a.Modes {
		if !slices.Contains([]string{"read", "ask", "edit"}, access) {
			return fmt.Errorf("modes must be for read, ask or edit, not %q", access)
		}
	}
	return nil
}
