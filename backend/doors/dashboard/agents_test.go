package dashboard

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"bridge/backend/agent/connect"
	"bridge/backend/agent/setup"
	"bridge/backend/core/bridge"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/platform/config"
	"bridge/backend/testing/testkit"
)

// toldAgents answers with a fixed list; nothing can be connected to it.
type toldAgents struct{ list func() []connect.Agent }

func (a toldAgents) List(context.Context) []connect.Agent {
	if a.list == nil {
		return nil
	}
	return a.list()
}

func (toldAgents) Standings() ([]connect.Standing, error) {
	return []connect.Standing{{Kind: bridge.Claude}, {Kind: bridge.Codex, Jobs: true}}, nil
}

func (toldAgents) Plan(context.Context, bridge.AgentKind, setup.Choices) (setup.Plan, error) {
	return setup.Plan{}, bridge.Errorf(bridge.NotFound, "it is not on this PC")
}

func (toldAgents) PlanRemoval(kind bridge.AgentKind) (setup.Plan, error) {
	return setup.Plan{Kind: kind}, nil
}
func (toldAgents) Apply(setup.Plan) error { return nil }
func (toldAgents) Refused() string        { return "" }
func (toldAgents) Looked() []string       { return []string{"/usr/bin"} }

func (toldAgents) CommandLine(words ...string) string {
	return "/usr/bin/bridge " + strings.Join(words, " ")
}

// withClaude is a world whose computer has a claude that only knows its version,
// and the path of claude's settings.
func withClaude(t *testing.T, change ...func(*connect.Agents)) (w *world, settings string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in is a shell script")
	}
	userHome, bin := t.TempDir(), t.TempDir()
	t.Setenv("HOME", userHome)
	if err := testkit.WriteProgram(filepath.Join(bin, "claude"), []byte("#!/bin/sh\necho 2.1.329\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	getenv := func(name string) string { return map[string]string{"HOME": userHome, "PATH": bin}[name] }
	home, err := config.ResolveHome(filepath.Join(t.TempDir(), "home"), getenv)
	if err != nil {
		t.Fatal(err)
	}
	agents := connect.Agents{Home: home, Getenv: getenv, Program: "/usr/bin/bridge"}
	for _, c := range change {
		c(&agents)
	}
	return newWorld(t, func(o *Options) { o.Agents = agents }), filepath.Join(userHome, ".claude", "settings.json")
}

func claudeOf(t *testing.T, w *world) dto.Agent {
	t.Helper()
	for _, agent := range decode[dto.Agents](t, w.get("/api/agents")).Agents {
		if agent.Kind == bridge.Claude {
			return agent
		}
	}
	t.Fatal("claude is not listed")
	return dto.Agent{}
}

func TestDSK_06_AnAgentIsConnectedInTwoStepsAndTakenBack(t *testing.T) {
	w, settings := withClaude(t)
	if agent := claudeOf(t, w); !agent.Found || agent.Connected {
		t.Fatalf("before: %+v", agent)
	}
	const path = "/api/agents/claude/connect"
	shown := decode[dto.Change](t, w.post(path, `{}`))
	if shown.Done || len(shown.Edits) == 0 || shown.Edits[0].Verb != "makes" || len(shown.Edits[0].Diff) == 0 {
		t.Fatalf("the change is not shown: %+v", shown)
	}
	if _, err := os.Stat(settings); !os.IsNotExist(err) {
		t.Fatalf("looking at the change made it: %v", err)
	}
	refused(t, "consent without what was shown", w.post(path, `{"consent":true}`), http.StatusBadRequest)
	refused(t, "a digest without consent", w.post(path, `{"digest":"`+shown.Digest+`"}`), http.StatusBadRequest)
	refused(t, "another change", w.post(path, `{"consent":true,"digest":"0000"}`), http.StatusConflict)

	if done := decode[dto.Change](t, w.post(path, `{"consent":true,"digest":"`+shown.Digest+`"}`)); !done.Done {
		t.Fatalf("not done: %+v", done)
	}
	if text, err := os.ReadFile(settings); err != nil || !strings.Contains(string(text), "/usr/bin/bridge") {
		t.Fatalf("settings %q, %v", text, err)
	}
	if agent := claudeOf(t, w); !agent.Connected || len(agent.Missing) != 0 {
		t.Errorf("after: %+v", agent)
	}

	back := decode[dto.Change](t, w.post("/api/agents/claude/disconnect", `{}`))
	decode[dto.Change](t, w.post("/api/agents/claude/disconnect", `{"consent":true,"digest":"`+back.Digest+`"}`))
	if _, err := os.Stat(settings); !os.IsNotExist(err) {
		t.Errorf("the settings are still there: %v", err)
	}
	if claudeOf(t, w).Connected {
		t.Error("still connected")
	}
}

func TestDSK_06_AChangedFileIsNotOverwrittenByAnOldConsent(t *testing.T) {
	w, settings := withClaude(t)
	shown := decode[dto.Change](t, w.post("/api/agents/claude/connect", `{}`))
	if err := os.MkdirAll(filepath.Dir(settings), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(settings, []byte(`{"mine":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, "the file changed meanwhile", w.post("/api/agents/claude/connect", `{"consent":true,"digest":"`+shown.Digest+`"}`), http.StatusConflict)
	if text, _ := os.ReadFile(settings); string(text) != `{"mine":true}` {
		t.Errorf("settings %s", text)
	}
}

func TestDSK_06_WhatIsMissingOfAConnectedAgentIsTold(t *testing.T) {
	w, settings := withClaude(t)
	shown := decode[dto.Change](t, w.post("/api/agents/claude/connect", `{}`))
	decode[dto.Change](t, w.post("/api/agents/claude/connect", `{"consent":true,"digest":"`+shown.Digest+`"}`))
	if err := os.WriteFile(settings, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(agentsAge)
	if agent := claudeOf(t, w); len(agent.Missing) != 1 || !strings.Contains(agent.Missing[0], settings) {
		t.Errorf("missing %q", agent.Missing)
	}
}

func TestTheShapeOfAChangeIsThatOfTheGoldenFile(t *testing.T) {
	edit := setup.Edit{Path: "/home/anna/.codex/hooks.json", Adds: "Adds hooks.", Before: []byte("{\n}\n"), After: []byte("{\n  \"hooks\": {}\n}\n")}
	wire := changeOf(setup.Plan{Kind: bridge.Codex, Edits: []setup.Edit{edit}, Notes: []string{"Codex has to trust them."}}, false)
	wire.Digest = "a digest"
	body, err := json.Marshal(wire)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "agent-change", string(body))
}

func TestDSK_06_WhatCanNotBeConnectedIsRefusedInWords(t *testing.T) {
	w, _ := withClaude(t)
	refused(t, "no such kind", w.post("/api/agents/owner/connect", `{}`), http.StatusNotFound)
	refused(t, "a CLI that is not there", w.post("/api/agents/codex/connect", `{}`), http.StatusNotFound)
	refused(t, "an unknown member", w.post("/api/agents/claude/connect", `{"yes":true}`), http.StatusBadRequest)
	demo, settings := withClaude(t, func(a *connect.Agents) { a.Refusal = "this home goes away" })
	refused(t, "a demo", demo.post("/api/agents/claude/connect", `{}`), http.StatusConflict)
	if _, err := os.Stat(settings); !os.IsNotExist(err) {
		t.Errorf("a demo wrote settings: %v", err)
	}
}

// slowAgents takes as long for a plan as the test wants.
type slowAgents struct {
	toldAgents
	held, release chan struct{}
}

func (a slowAgents) Plan(context.Context, bridge.AgentKind, setup.Choices) (setup.Plan, error) {
	close(a.held)
	<-a.release
	return setup.Plan{Kind: bridge.Claude}, nil
}

func TestDSK_06_OneAgentIsChangedAtATime(t *testing.T) {
	slow := slowAgents{held: make(chan struct{}), release: make(chan struct{})}
	w := newWorld(t, func(o *Options) { o.Agents = slow })
	first := make(chan answer)
	go func() { first <- w.post("/api/agents/claude/connect", `{}`) }()
	<-slow.held
	refused(t, "a second change", w.post("/api/agents/codex/disconnect", `{}`), http.StatusConflict)
	close(slow.release)
	decode[dto.Change](t, <-first)
	decode[dto.Change](t, w.post("/api/agents/codex/disconnect", `{}`))
}

func TestDSK_06_AgentsAreLookedAtAgainWhenTheListIsOld(t *testing.T) {
	looks := 0
	w := newWorld(t, func(o *Options) {
		o.Agents = toldAgents{list: func() []connect.Agent { looks++; return []connect.Agent{} }}
	})
	left, leave := context.WithCancel(t.Context())
	leave()
	for _, step := range []struct {
		name  string
		after time.Duration
		asked context.Context
		looks int
	}{
		{"a page that left while it was looked", 0, left, 1},
		{"the next page", 0, t.Context(), 2},
		{"another one soon after", agentsAge - 1, t.Context(), 2},
		{"one later", 1, t.Context(), 3},
	} {
		w.clock.Advance(step.after)
		w.board.agents.known(step.asked)
		if looks != step.looks {
			t.Errorf("%s: looked %d times, want %d", step.name, looks, step.looks)
		}
	}
}

// The owner's word that sessions may start agents goes through the same consent, holds
// when the agent is connected again, and is taken back.
func TestJOB_26_TheSwitchOnThePage(t *testing.T) {
	w, settings := withClaude(t)
	const path = "/api/agents/claude/connect"
	allowed := func() bool {
		t.Helper()
		w.clock.Advance(agentsAge)
		quick := decode[dto.Connected](t, w.get("/api/agents/connected")).Agents
		if len(quick) != 1 || quick[0].Kind != bridge.Claude {
			t.Fatalf("connected are %+v", quick)
		}
		listed := claudeOf(t, w).Jobs
		if quick[0].Jobs != listed {
			t.Errorf("the list says %v, what a session's page asks %v", listed, quick[0].Jobs)
		}
		return listed
	}
	in := func() bool {
		t.Helper()
		text, err := os.ReadFile(settings)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), "mcp__bridge__spawn_codex")
	}
	consent := func(jobs string) {
		t.Helper()
		shown := decode[dto.Change](t, w.post(path, `{`+strings.TrimSuffix(jobs, ",")+`}`))
		decode[dto.Change](t, w.post(path, `{`+jobs+`"consent":true,"digest":"`+shown.Digest+`"}`))
	}
	if none := w.get("/api/agents/connected").body; strings.TrimSpace(none) != `{"agents":[]}` {
		t.Errorf("before one is connected: %s", none)
	}
	consent("")
	if allowed() || in() {
		t.Error("a new connection lets sessions start agents")
	}
	shown := decode[dto.Change](t, w.post(path, `{"jobs":true}`))
	if len(shown.Edits) != 1 || !strings.Contains(shown.Edits[0].Adds, setup.JobsConsent) {
		t.Errorf("the owner is shown %+v", shown.Edits)
	}
	refused(t, "consent to another change", w.post(path, `{"consent":true,"digest":"`+shown.Digest+`"}`), http.StatusConflict)
	if allowed() || in() {
		t.Error("sessions start agents before the owner says so")
	}
	consent(`"jobs":true,`)
	if !allowed() || !in() {
		t.Error("the owner's word does not hold")
	}
	consent("")
	if !allowed() || !in() {
		t.Error("it does not hold when the agent is connected again")
	}
	refused(t, "together with a removal", w.post("/api/agents/claude/disconnect", `{"jobs":true}`), http.StatusBadRequest)
	consent(`"jobs":false,`)
	if allowed() || in() {
		t.Error("it is not taken back")
	}
}
