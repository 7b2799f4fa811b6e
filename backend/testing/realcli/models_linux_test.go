package realcli_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"bridge/backend/agent"
	"bridge/backend/agent/kinds"
	"bridge/backend/agent/models"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/config"
)

// The real CLIs tell their models without a conversation and without an account; what
// they do not tell is said to be so, and a model that opencode lacks starts nothing.
func TestJOB_21_WhatTheRealCLIsTell(t *testing.T) {
	w := newWorld(t, "p")
	w.home.More = append(w.home.More, "OPENCODE_MODELS_PATH=") // with its whole catalogue
	for _, pair := range w.home.Env() {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value) // the book gives its own environment on
	}
	b := &models.Book{Settings: func() (config.Settings, error) { return config.Settings{}, nil }, Where: agent.Lookup{Env: os.Getenv}, Now: time.Now, QueriesOf: kinds.QueriesOf}
	result, err := b.Models(soon(t), "")
	must(t, err)
	known := map[bridge.AgentKind]string{bridge.Claude: "default", bridge.Codex: "", bridge.OpenCode: "fake/fake-model"}
	for _, agentModels := range result.Agents {
		t.Logf("%+v", agentModels)
		found := known[agentModels.Agent] == ""
		for _, m := range agentModels.Models {
			found = found || m.ID == known[agentModels.Agent]
		}
		if len(agentModels.Models) == 0 || !found {
			t.Errorf("%s tells %+v", agentModels.Agent, agentModels)
		}
		delete(known, agentModels.Agent)
	}
	if len(known) > 0 {
		t.Errorf("nothing is told of %v", known)
	}
	usage, err := b.Usage(soon(t), "")
	must(t, err)
	for _, agentUsage := range usage.Agents {
		t.Logf("%+v", agentUsage)
		if len(agentUsage.Limits) > 0 || agentUsage.Note == "" {
			t.Errorf("without an account %s tells %+v", agentUsage.Agent, agentUsage)
		}
	}
	err = b.Check(soon(t), job.Request{Kind: bridge.OpenCode, Model: "fake/huge"})
	if bridge.CodeOf(err) != bridge.NotFound || !strings.Contains(err.Error(), `opencode has no model "fake/huge"`) {
		t.Errorf("an unknown model: %v", err)
	}
	must(t, b.Check(soon(t), job.Request{Kind: bridge.OpenCode, Model: "fake/fake-model"}))
	must(t, b.Check(soon(t), job.Request{Kind: bridge.Codex, Model: "fake-model"}))
}
