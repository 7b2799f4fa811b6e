package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
)

func TestJOB_24_ACPAgentsAreTheOwnersAlone(t *testing.T) {
	home := newHome(t)
	const text = `{"agents": {"acp": {"goose": {"command": "goose", "args": ["acp"], "env": ["GOOSE_KEY"], "writable": ["~/.local/share/goose"], "modes": {"ask": "approve"}}}, "claude": {"bin": "/old"}}}`
	writeConfig(t, home, text)
	config, err := home.Config()
	want := map[string]ACPAgent{"goose": {
		Command: "goose", Args: []string{"acp"}, Env: []string{"GOOSE_KEY"}, Writable: []string{"~/.local/share/goose"}, Modes: map[string]string{"ask": "approve"},
	}}
	if diff := cmp.Diff(want, config.ACP); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if _, err := home.UpdateConfig(func(c *Config) error { c.Agents[bridge.Claude] = Agent{Bin: "/new"}; return nil }); err != nil {
		t.Fatal(err)
	}
	if after := readConfigFile(t, home); withoutSpace(after) != withoutSpace(strings.Replace(text, "/old", "/new", 1)) {
		t.Errorf("the file is now\n%s", after)
	}
}

func TestJOB_24_ABadACPAgentIsNamed(t *testing.T) {
	tests := map[string]string{
		`"goose"`:                                               "agents.acp must be a JSON object",
		`{"a b": {"command": "x"}}`:                             "agents.acp.a b: ",
		`{"goose": {}}`:                                         "agents.acp.goose: command must name its program",
		`{"goose": {"command": "./x"}}`:                         "agents.acp.goose: command must be an absolute path or a name on PATH",
		`{"goose": {"comand": "x"}}`:                            "comand",
		`{"goose": {"command": "x", "env": ["A=1"]}}`:           "env must list names of variables",
		`{"goose": {"command": "x", "writable": ["tmp"]}}`:      "writable must list absolute folders",
		`{"goose": {"command": "x", "modes": {"all": "yolo"}}}`: "modes must be for read, ask or edit",
	}
	for text, words := range tests {
		home := newHome(t)
		writeConfig(t, home, `{"agents": {"acp": `+text+`}}`)
		if _, err := home.Config(); bridge.CodeOf(err) != bridge.Invalid || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", text, err, words)
		}
	}
}
