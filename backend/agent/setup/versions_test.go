package setup

import (
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/agent"
	"bridge/backend/bridge"
)

func TestMSG_11_NothingIsWrittenForAnOpenCodeOfAnotherMajorVersion(t *testing.T) {
	for version, printed := range map[string]string{"2.0.3": "opencode v2.0.3 (linux-x64)", "0.15.9": "0.15.9", "2.0": "2.0"} {
		t.Run(version, func(t *testing.T) {
			p := newPerson(t, map[string]string{".config/opencode/opencode.json": "{}\n"})
			found, err := agent.Detect(t.Context(), bridge.OpenCode, agent.Lookup{
				Env: func(string) string { return "" }, Configured: program(t, filepath.Join(t.TempDir(), "opencode"), "echo '"+printed+"'"),
			})
			if err != nil || found.Version != version {
				t.Fatalf("found %+v, %v", found, err)
			}
			p.in.CLI = found
			plan, err := PlanInstall(t.Context(), bridge.OpenCode, p.in)
			if bridge.CodeOf(err) != bridge.Unsupported || !strings.Contains(err.Error(), "opencode "+version) || len(plan.Edits) != 0 {
				t.Errorf("a plan of %d edits, %v", len(plan.Edits), err)
			}
		})
	}
}

// An opencode that became another major version is still taken back.
func TestMSG_11_WhatWasConnectedIsTakenBackWhateverTheVersionIs(t *testing.T) {
	p := newPerson(t, nil)
	before := len(p.tree())
	p.install(bridge.OpenCode)
	p.in.CLI.Version = "2.0.0"
	p.uninstall(bridge.OpenCode)
	if after := p.tree(); len(after) != before {
		t.Errorf("left behind: %v", after)
	}
}
