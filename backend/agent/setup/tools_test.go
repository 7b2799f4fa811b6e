package setup

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tailscale/hujson"

	"bridge/backend/agent"
	"bridge/backend/core/bridge"
)

// allowed are the tools that claude uses without a question.
func allowed(p *person) []string {
	p.Helper()
	var settings struct {
		Permissions struct{ Allow []string }
	}
	if err := json.Unmarshal([]byte(p.get(".claude/settings.json")), &settings); err != nil {
		p.Fatal(err)
	}
	return settings.Permissions.Allow
}

// Tools that start or steer another agent's work stay subject to claude's question, and
// an install of before, which allowed them all, becomes one that does not.
func TestMSG_11_ClaudeAsksBeforeWorkIsStarted(t *testing.T) {
	p := newPerson(t, map[string]string{".claude/settings.json": `{"permissions":{"allow":["Bash(ls)"]}}`})
	p.install(bridge.Claude)
	check := func(what string) {
		t.Helper()
		got := allowed(p)
		if !slices.Contains(got, "Bash(ls)") || slices.Contains(got, "mcp__bridge") {
			t.Errorf("%s: allowed are %q", what, got)
		}
		for _, tool := range FreeTools() {
			if !slices.Contains(got, "mcp__bridge__"+tool) {
				t.Errorf("%s: %s is asked about", what, tool)
			}
		}
		for _, tool := range AskedTools() {
			if slices.Contains(got, "mcp__bridge__"+tool) {
				t.Errorf("%s: %s is allowed", what, tool)
			}
		}
	}
	check("new")
	older := func(path string) {
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, []byte(strings.ReplaceAll(string(text), `"mcp__bridge__peers"`, `"mcp__bridge"`)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	older(filepath.Join(p.in.Home, ".claude", "settings.json"))
	manifests, err := filepath.Glob(filepath.Join(p.in.State, "*.json"))
	if err != nil || len(manifests) == 0 {
		t.Fatalf("there is no manifest: %v", err)
	}
	for _, path := range manifests {
		older(path)
	}
	if got := allowed(p); !slices.Contains(got, "mcp__bridge") {
		t.Fatalf("the older install allows %q", got)
	}
	p.install(bridge.Claude)
	check("updated")
}

// opencode asks about no tool by itself, and is told about which; one rule of the
// person's for everything stays, and the plan says what that means.
func TestMSG_11_OpenCodeAsksBeforeWorkIsStarted(t *testing.T) {
	const file = ".config/opencode/opencode.json"
	p := newPerson(t, map[string]string{file: `{"permission":{"bash":"ask"}}`})
	p.install(bridge.OpenCode)
	var config struct{ Permission map[string]string }
	if err := json.Unmarshal([]byte(p.get(file)), &config); err != nil {
		t.Fatal(err)
	}
	for _, tool := range AskedTools() {
		if config.Permission["bridge_"+tool] != "ask" {
			t.Errorf("about %s opencode says %q", tool, config.Permission["bridge_"+tool])
		}
	}
	if len(config.Permission) != len(AskedTools())+1 || config.Permission["bash"] != "ask" {
		t.Errorf("it has %v", config.Permission)
	}
	p = newPerson(t, map[string]string{file: `{"permission":"allow"}`})
	p.install(bridge.OpenCode)
	if got := p.get(file); !strings.Contains(got, `"permission":"allow"`) && !strings.Contains(got, `"permission": "allow"`) {
		t.Errorf("the rule of the person is gone: %s", got)
	}
}

// codexServer is what config.toml says about our server.
func codexServer(p *person) (mode string, args []string, tools map[string]string) {
	p.Helper()
	values, err := parseTOML([]byte(p.get(".codex/config.toml")))
	if err != nil {
		p.Fatal(err)
	}
	raw, _ := tomlValue(values, []string{"mcp_servers", "bridge"})
	var server struct {
		Args  []string
		Mode  string `json:"default_tools_approval_mode"`
		Tools map[string]struct {
			Mode string `json:"approval_mode"`
		}
	}
	if err := json.Unmarshal(encode(raw), &server); err != nil {
		p.Fatal(err)
	}
	tools = map[string]string{}
	for name, tool := range server.Tools {
		tools[name] = tool.Mode
	}
	return server.Mode, server.Args, tools
}

// Codex is told of each tool that runs without a question, whatever an install of before
// or the person has there; what the person says of a tool stands, and an uninstall gives
// every byte back.
func TestMSG_11_CodexAsksBeforeWorkIsStarted(t *testing.T) {
	free := map[string]string{}
	for _, tool := range FreeTools() {
		free[tool] = "approve"
	}
	with := func(tool, mode string) map[string]string {
		tools := maps.Clone(free)
		tools[tool] = mode
		return tools
	}
	const mine = "# mine\nmodel = \"m\"\n\n[mcp_servers.other]\ncommand = \"x\"\n"
	for _, test := range []struct {
		name  string
		later string // stands behind what an install of before wrote
		want  map[string]string
	}{
		{"new", "", free},
		{"a tool of the person's", "[mcp_servers.bridge.tools.send] # mine\napproval_mode = \"prompt\"\n", with("send", "prompt")},
		{"what the person allowed for good", "[mcp_servers.bridge.tools.spawn_codex]\napproval_mode = \"approve\"\n", with("spawn_codex", "approve")},
	} {
		t.Run("MSG-11 "+test.name, func(t *testing.T) {
			p := newPerson(t, map[string]string{".codex/config.toml": mine})
			p.in.CLI = agent.Found{Version: codexToolApproval}
			p.installedBefore(mine)
			before := p.get(".codex/config.toml")
			p.put(".codex/config.toml", before+test.later)
			p.install(bridge.Codex)
			mode, args, tools := codexServer(p)
			if mode != "prompt" || !slices.Contains(args, "--asks") {
				t.Errorf("the mode is %q, the arguments are %q", mode, args)
			}
			if diff := cmp.Diff(test.want, tools); diff != "" {
				t.Errorf("tools (-want +got)\n%s", diff)
			}
			now := p.get(".codex/config.toml")
			if test.later != "" && !strings.Contains(now, test.later) {
				t.Errorf("the lines of the person's are gone:\n%s", now)
			}
			p.install(bridge.Codex)
			if diff := cmp.Diff(now, p.get(".codex/config.toml")); diff != "" {
				t.Errorf("a second time (-want +got)\n%s", diff)
			}
			p.uninstall(bridge.Codex)
			if got := p.get(".codex/config.toml"); got != mine {
				t.Errorf("an uninstall leaves\n%s", got)
			}
		})
	}
}

// installedBefore makes codex's settings those of an install that lets all tools run.
func (p *person) installedBefore(mine string) {
	p.Helper()
	p.install(bridge.Codex)
	older := part{Path: []string{"mcp_servers", "bridge"}, Value: encode(map[string]any{
		"command": p.in.Bridge, "args": p.in.mcpArgs(bridge.Codex, false), "startup_timeout_sec": 30, "tool_timeout_sec": 3600, "default_tools_approval_mode": "approve",
	})}
	text := appendTables([]byte(mine), []part{older})
	p.put(".codex/config.toml", string(text))
	m, err := readManifest(p.in.State)
	if err != nil {
		p.Fatal(err)
	}
	files := m.Kinds[bridge.Codex].Files
	file := &files[slices.IndexFunc(files, func(f installedFile) bool { return filepath.Base(f.Path) == "config.toml" })]
	file.Parts, file.After = []part{older}, sum(text)
	if err := m.write(p.in.State, bridge.Codex, m.Kinds[bridge.Codex]); err != nil {
		p.Fatal(err)
	}
}

// A codex whose settings cannot say it is offered no tools to ask about.
func TestMSG_11_AnOlderCodexIsNotOfferedWhatItCannotAskAbout(t *testing.T) {
	for _, version := range []string{"", "0.160.1"} {
		p := newPerson(t, nil)
		p.in.CLI = agent.Found{Version: version}
		p.install(bridge.Codex)
		if mode, args, tools := codexServer(p); mode != "" || slices.Contains(args, "--asks") || len(tools) > 0 {
			t.Errorf("codex %q: the mode is %q, the arguments are %q, the tools %v", version, mode, args, tools)
		}
	}
}

// By the owner's word sessions start agents without a question, in each CLI's own terms.
// That holds until the next word, and all of it is taken back to the byte.
func TestJOB_26_TheOwnerLetsSessionsStartAgents(t *testing.T) {
	yes, no := true, false
	eachKind(t, func(p *person, kind bridge.AgentKind) {
		p.in.CLI.Version = map[bridge.AgentKind]string{bridge.Codex: codexToolApproval}[kind]
		before := p.tree()
		asked := func(what string, want bool) {
			p.Helper()
			allowed, err := JobsAllowed(p.in.State)
			if err != nil || slices.Contains(allowed, kind) == want {
				p.Errorf("%s: the manifest allows %v (%v)", what, allowed, err)
			}
			for _, tool := range AskedTools() {
				if got := isAsked(p, kind, tool); got != want {
					p.Errorf("%s: about %s it asks: %v", what, tool, got)
				}
			}
		}
		p.install(kind)
		asked("new", true)
		p.in.Jobs = &yes
		plan := p.install(kind)
		if !slices.ContainsFunc(plan.Edits, func(e Edit) bool { return strings.Contains(e.Adds, JobsConsent) }) {
			p.Errorf("the plan does not say what it means: %+v", plan.Edits)
		}
		asked("allowed", false)
		p.in.Jobs = nil
		if plan := p.install(kind); !plan.Empty() {
			p.Errorf("once more changes %+v", plan.Edits)
		}
		asked("once more", false)
		p.in.Jobs = &no
		p.install(kind)
		asked("taken back", true)
		p.in.Jobs = &yes
		p.install(kind)
		p.uninstall(kind)
		if diff := cmp.Diff(before, p.tree()); diff != "" {
			p.Errorf("an uninstall leaves (-before +after)\n%s", diff)
		}
		p.in.Jobs = nil
		p.install(kind)
		asked("after an uninstall", true)
	})
}

// isAsked reports whether the CLI's settings have it ask before a tool.
func isAsked(p *person, kind bridge.AgentKind, tool string) bool {
	p.Helper()
	switch kind {
	case bridge.Claude:
		return !slices.Contains(allowed(p), "mcp__bridge__"+tool)
	case bridge.Codex:
		mode, _, tools := codexServer(p)
		return mode == "prompt" && tools[tool] != "approve"
	case bridge.OpenCode:
		files, err := filepath.Glob(filepath.Join(p.in.Home, ".config", "opencode", "opencode.json*"))
		if err != nil || len(files) == 0 {
			p.Fatal("opencode has no settings")
		}
		text, err := os.ReadFile(files[len(files)-1])
		if err != nil {
			p.Fatal(err)
		}
		standard, err := hujson.Standardize(text)
		if err != nil {
			p.Fatal(err)
		}
		var config struct{ Permission map[string]any }
		if err := json.Unmarshal(standard, &config); err != nil {
			p.Fatal(err)
		}
		return config.Permission["bridge_"+tool] == "ask"
	default:
		return !strings.Contains(p.get(".gemini/antigravity-cli/settings.json"), `"mcp(`+antigravityServer+`/`+tool+`)"`)
	}
}
