package setup

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/agent"
	"bridge/backend/core/bridge"
	"bridge/backend/core/hooks"
)

// person is a user's home folder with a Bridge beside it.
type person struct {
	*testing.T
	in Input
}

// newPerson lays files out under a new home.
func newPerson(t *testing.T, files map[string]string) *person {
	t.Helper()
	root := t.TempDir()
	p := &person{t, Input{
		Home:       filepath.Join(root, "home"),
		Bridge:     filepath.Join(root, "pro gram's", "bridge"),
		BridgeHome: filepath.Join(root, "bridge home"),
		State:      filepath.Join(root, "bridge home", "install"),
		CLI:        agent.Found{Version: "1.18.33"},
	}}
	if err := os.MkdirAll(p.in.Home, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		p.put(name, text)
	}
	return p
}

func (p *person) put(name, text string) {
	p.Helper()
	path := filepath.Join(p.in.Home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
}

func (p *person) get(name string) string {
	p.Helper()
	data, err := os.ReadFile(filepath.Join(p.in.Home, name))
	if err != nil {
		p.Fatal(err)
	}
	return string(data)
}

// connectors has each kind.
var connectors = map[bridge.AgentKind]Connector{bridge.Claude: Claude, bridge.Codex: Codex, bridge.OpenCode: OpenCode, bridge.Antigravity: Antigravity}

// install applies the plan and returns it.
func (p *person) install(kind bridge.AgentKind) Plan {
	p.Helper()
	plan, err := connectors[kind].PlanInstall(context.Background(), p.in)
	if err != nil {
		p.Fatal(err)
	}
	if err := Apply(plan); err != nil {
		p.Fatal(err)
	}
	return plan
}

func (p *person) uninstall(kind bridge.AgentKind) Plan {
	p.Helper()
	plan, err := PlanRemoval(kind, p.in.State)
	if err != nil {
		p.Fatal(err)
	}
	if err := Apply(plan); err != nil {
		p.Fatal(err)
	}
	return plan
}

// tree is every file and folder of the home: mode, link target and content.
func (p *person) tree() map[string]string {
	p.Helper()
	tree := map[string]string{}
	err := filepath.WalkDir(p.in.Home, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(p.in.Home, path)
		info, err := entry.Info()
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir():
			tree[name] = "folder " + info.Mode().String()
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			tree[name] = "link to " + target
			return err
		default:
			data, err := os.ReadFile(path)
			tree[name] = info.Mode().String() + "\n" + string(data)
			return err
		}
		return nil
	})
	if err != nil {
		p.Fatal(err)
	}
	return tree
}

// settled are homes in which every CLI was set up by its user already, with
// comments, odd indentation and entries of others.
var settled = map[string]string{
	".claude.json": "{\n    \"numStartups\": 7,\n    \"mcpServers\": {\n        \"other\": { \"command\": \"x\" }\n    },\n    \"projects\": {}\n}",
	".claude/settings.json": `{
  "permissions": {
    "allow": ["Bash(ls:*)"]
  },
  "hooks": {
    "Stop": [
      {
        "hooks": [{ "type": "command", "command": "say done" }]
      }
    ]
  }
}
`,
	".codex/config.toml": "# my codex\nmodel = \"m\"\n\n[mcp_servers.other]\ncommand = \"x\"\nargs = [\n  \"[not.a.table]\",\n]\n\n[profiles.\"a b\"]\nnote = '''\n[nor.this]\n'''",
	".codex/hooks.json":  "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"say done\",\"timeout\":3}]}]}}\n",
	".config/opencode/opencode.jsonc": `// my opencode
{
	"model": "m", // the best
	"mcp": {
		/* nothing else */
		"other": { "type": "local", "command": ["x"], },
	},
}
`,
	".config/opencode/.npmrc":                  "registry=http://127.0.0.1:1/\n",
	".gemini/antigravity-cli/settings.json":    "{\r\n  \"permissions\": {\r\n    \"allow\": [\r\n      \"x\"\r\n    ]\r\n  }\r\n}\r\n",
	".gemini/config/plugins/other/plugin.json": "{}",
}

// homes are the homes that the tests of MSG-11 start from.
func homes() map[string]map[string]string {
	return map[string]map[string]string{"empty": {}, "settled": settled}
}

func eachKind(t *testing.T, test func(p *person, kind bridge.AgentKind)) {
	t.Helper()
	for name, files := range homes() {
		for _, kind := range bridge.Kinds() {
			t.Run(name+"/"+string(kind), func(t *testing.T) { test(newPerson(t, files), kind) })
		}
	}
}

func TestMSG_11_UninstallRestoresEveryByte(t *testing.T) {
	eachKind(t, func(p *person, kind bridge.AgentKind) {
		before := p.tree()
		plan := p.install(kind)
		if len(plan.Edits) == 0 || cmp.Equal(before, p.tree()) {
			p.Fatal("nothing was installed")
		}
		p.uninstall(kind)
		if diff := cmp.Diff(before, p.tree()); diff != "" {
			p.Errorf("(-before +after)\n%s", diff)
		}
		if kinds, err := Installed(p.in.State); err != nil || len(kinds) != 0 {
			p.Errorf("still installed: %v, %v", kinds, err)
		}
	})
}

func TestMSG_11_ThePlanSaysEverythingThatChanges(t *testing.T) {
	eachKind(t, func(p *person, kind bridge.AgentKind) {
		before := p.tree()
		plan := p.install(kind)
		for name, content := range p.tree() {
			if content == before[name] || strings.HasPrefix(content, "folder") {
				continue
			}
			planned := false
			for _, edit := range plan.Edits {
				planned = planned || edit.Path == filepath.Join(p.in.Home, name) && strings.HasSuffix(content, "\n"+string(edit.After)) && edit.Adds != ""
			}
			if !planned {
				p.Errorf("%s changed and the plan does not say so", name)
			}
		}
	})
}

func TestMSG_11_InstallingTwiceChangesNothing(t *testing.T) {
	eachKind(t, func(p *person, kind bridge.AgentKind) {
		p.install(kind)
		before := p.tree()
		plan := p.install(kind)
		if !plan.Empty() {
			for _, edit := range plan.Edits {
				p.Errorf("%s: %s", edit.Path, cmp.Diff(string(edit.Before), string(edit.After)))
			}
			p.Error("the second plan is not empty")
		}
		if diff := cmp.Diff(before, p.tree()); diff != "" {
			p.Error(diff)
		}
	})
}

func TestMSG_11_ANewerBridgeReplacesTheEntriesOfAnOlderOne(t *testing.T) {
	eachKind(t, func(p *person, kind bridge.AgentKind) {
		before := p.tree()
		p.install(kind)
		old := p.in.Bridge
		p.in.Bridge = filepath.Join(filepath.Dir(filepath.Dir(old)), "moved", "bridge")
		p.install(kind)
		for name, content := range p.tree() {
			if strings.Contains(content, filepath.Dir(old)) || strings.Contains(content, "pro gram") {
				p.Errorf("%s still names the old binary:\n%s", name, content)
			}
		}
		p.uninstall(kind)
		if diff := cmp.Diff(before, p.tree()); diff != "" {
			p.Errorf("(-before +after)\n%s", diff)
		}
	})
}

func TestMSG_11_WhatOthersAddedSinceStays(t *testing.T) {
	tests := []struct {
		kind         bridge.AgentKind
		file         string
		change, want func(installed string) string
	}{
		{
			bridge.Claude, ".claude.json",
			func(s string) string { return strings.Replace(s, "{", `{"theme":"dark",`, 1) },
			func(string) string { return `{"theme":"dark"` + "\n}\n" },
		},
		{
			bridge.Claude, ".claude/settings.json",
			func(s string) string { return strings.Replace(s, `"allow": [`, `"allow": ["Bash(ls)", `, 1) },
			func(string) string { return "{\n  \"permissions\": {\n    \"allow\": [\"Bash(ls)\"\n    ]\n  }\n}\n" },
		},
		{
			bridge.Codex, ".codex/config.toml",
			func(s string) string {
				// codex appends a table inside our block, before the last comment.
				return strings.Replace(s, tomlEnd, "\n[projects.\"/p\"]\ntrust_level = \"trusted\"\n"+tomlEnd, 1) +
					"[mcp_servers.bridge.tools.spawn_codex]\napproval_mode = \"approve\"\n"
			},
			func(string) string { return "\n[projects.\"/p\"]\ntrust_level = \"trusted\"\n" },
		},
		{
			bridge.OpenCode, ".config/opencode/opencode.json",
			func(s string) string { return strings.Replace(s, `"mcp": {`, `"theme": "x", "mcp": { /* mine */`, 1) },
			func(string) string { return "{\n  \"theme\": \"x\", \"mcp\": { /* mine */\n  }\n}\n" },
		},
	}
	for _, test := range tests {
		t.Run(string(test.kind)+" "+test.file, func(t *testing.T) {
			p := newPerson(t, nil)
			p.install(test.kind)
			p.put(test.file, test.change(p.get(test.file)))
			changed := p.get(test.file)
			p.install(test.kind) // a second installation must not forget it either
			p.uninstall(test.kind)
			if diff := cmp.Diff(test.want(changed), p.get(test.file)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestMSG_11_NothingOfOthersIsOverwritten(t *testing.T) {
	tests := []struct {
		name string
		kind bridge.AgentKind
		file string
		text string
		says string
	}{
		{"claude server", bridge.Claude, ".claude.json", `{"mcpServers":{"bridge":{"command":"theirs"}}}`, "mcpServers.bridge"},
		{"claude server of the network tool", bridge.Claude, ".claude.json", `{"mcpServers":{"bridge":{"command":"/sbin/bridge","args":["link"]}}}`, "mcpServers.bridge"},
		{"claude server that is no object", bridge.Claude, ".claude.json", `{"mcpServers":[]}`, "mcpServers"},
		{
			"claude hook of another Bridge", bridge.Claude, ".claude/settings.json",
			`{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"/opt/bridge hook claude Stop --home /other"}]}]}}`, "/other",
		},
		{
			"claude hook of the default Bridge", bridge.Claude, ".claude/settings.json",
			`{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"/opt/bridge hook claude Stop"}]}]}}`, "bridge uninstall",
		},
		{"claude broken", bridge.Claude, ".claude/settings.json", `{"hooks":`, "not valid JSON"},
		{"codex server", bridge.Codex, ".codex/config.toml", "[mcp_servers.bridge]\ncommand = \"theirs\"\n", "mcp_servers.bridge"},
		{"codex servers inline", bridge.Codex, ".codex/config.toml", "mcp_servers = { other = { command = \"x\" } }\n", "mcp_servers"},
		{"codex broken", bridge.Codex, ".codex/config.toml", "[", "not valid TOML"},
		{
			"codex hook", bridge.Codex, ".codex/hooks.json",
			`{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"bridge hook codex Stop --home /other"}]}]}}`, "/other",
		},
		{"opencode server", bridge.OpenCode, ".config/opencode/opencode.json", `{"mcp":{"bridge":{"type":"remote","url":"x"}}}`, "mcp.bridge"},
		{"opencode plugin", bridge.OpenCode, ".config/opencode/plugin/bridge.js", "export {}", "did not write"},
		{"antigravity plugin", bridge.Antigravity, ".gemini/config/plugins/bridge/plugin.json", "{}", "did not write"},
	}
	for _, test := range tests {
		t.Run("MSG-11 "+test.name, func(t *testing.T) {
			p := newPerson(t, map[string]string{test.file: test.text})
			before := p.tree()
			_, err := connectors[test.kind].PlanInstall(context.Background(), p.in)
			if err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), filepath.Base(test.file)) {
				t.Errorf("the refusal does not name %q and %s: %v", test.says, test.file, err)
			}
			if code := bridge.CodeOf(err); code != bridge.Conflict && code != bridge.Invalid {
				t.Errorf("code %s", code)
			}
			if diff := cmp.Diff(before, p.tree()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMSG_11_ACopyOfEveryEditedFileIsKept(t *testing.T) {
	for _, kind := range bridge.Kinds() {
		p := newPerson(t, settled)
		plan := p.install(kind)
		for _, edit := range plan.Edits {
			if edit.Before == nil {
				continue
			}
			copies, err := filepath.Glob(filepath.Join(p.in.State, string(kind), filepath.Base(edit.Path)+".*"))
			if err != nil || len(copies) == 0 {
				t.Fatalf("%s: no copy (%v)", edit.Path, err)
			}
			data, err := os.ReadFile(copies[0])
			if err != nil || !bytes.Equal(data, edit.Before) {
				t.Errorf("%s: the copy differs (%v)", edit.Path, err)
			}
		}
	}
}

func TestMSG_11_LinksStayLinks(t *testing.T) {
	for _, kind := range []bridge.AgentKind{bridge.Claude, bridge.Codex, bridge.OpenCode} {
		p := newPerson(t, settled)
		for name := range settled {
			moved := filepath.Join("dotfiles", strings.ReplaceAll(name, "/", "_"))
			p.put(moved, settled[name])
			link := filepath.Join(p.in.Home, name)
			if err := os.Remove(link); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(p.in.Home, moved), link); err != nil {
				t.Skip("no links here")
			}
		}
		before := p.tree()
		p.install(kind)
		for name, content := range p.tree() {
			if strings.HasPrefix(before[name], "link") && content != before[name] {
				t.Errorf("%s is no link any more", name)
			}
		}
		p.uninstall(kind)
		if diff := cmp.Diff(before, p.tree()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestALinkToNowhereIsRefused(t *testing.T) {
	p := newPerson(t, nil)
	if err := os.Symlink(filepath.Join(p.in.Home, "gone"), filepath.Join(p.in.Home, ".claude.json")); err != nil {
		t.Skip("no links here")
	}
	if _, err := connectors[bridge.Claude].PlanInstall(context.Background(), p.in); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("got %v", err)
	}
}

func TestAFileThatChangedSinceThePlanIsNotTouched(t *testing.T) {
	p := newPerson(t, settled)
	plan, err := connectors[bridge.Claude].PlanInstall(context.Background(), p.in)
	if err != nil {
		t.Fatal(err)
	}
	p.put(".claude/settings.json", `{"new":1}`)
	before := p.tree()
	if err := Apply(plan); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff(before, p.tree()); diff != "" {
		t.Error(diff)
	}
}

func TestAFailureInTheMiddleUndoesWhatWasWritten(t *testing.T) {
	p := newPerson(t, nil)
	before := p.tree()
	plan, err := connectors[bridge.Claude].PlanInstall(context.Background(), p.in)
	if err != nil {
		t.Fatal(err)
	}
	last := &plan.Edits[len(plan.Edits)-1]
	blocked := filepath.Join(p.in.Home, "blocked")
	last.target = filepath.Join(blocked, "x", "settings.json")
	last.Path = last.target
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Apply(plan); err == nil {
		t.Fatal("it did not fail")
	}
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, p.tree()); diff != "" {
		t.Error(diff)
	}
	if kinds, err := Installed(p.in.State); err != nil || len(kinds) != 0 {
		t.Errorf("the manifest says %v, %v", kinds, err)
	}
}

func TestPermissionsThatTheUserGaveStay(t *testing.T) {
	p := newPerson(t, map[string]string{".claude/settings.json": `{"permissions":{"allow":["mcp__bridge"]}}`})
	p.install(bridge.Claude)
	p.put(".claude/settings.json", strings.Replace(p.get(".claude/settings.json"), "{", `{"x":1,`, 1))
	p.uninstall(bridge.Claude)
	var got any
	if err := json.Unmarshal([]byte(p.get(".claude/settings.json")), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"x": 1.0, "permissions": map[string]any{"allow": []any{"mcp__bridge"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAfterALostManifest(t *testing.T) {
	eachKind(t, func(p *person, kind bridge.AgentKind) {
		if kind == bridge.Antigravity {
			p.Skip("whole files without a mark: the same content is taken over, another one refused")
		}
		p.install(kind)
		if err := os.RemoveAll(p.in.State); err != nil {
			p.Fatal(err)
		}
		p.in.Bridge = filepath.Join(filepath.Dir(p.in.Bridge), "new", "bridge")
		p.install(kind)
		p.uninstall(kind)
		for name, content := range p.tree() {
			if strings.Contains(content, "pro gram") {
				p.Errorf("%s still holds what Bridge wrote:\n%s", name, content)
			}
		}
	})
}

func TestAChangedPluginIsNeitherReplacedNorRemoved(t *testing.T) {
	p := newPerson(t, nil)
	p.install(bridge.OpenCode)
	const name = ".config/opencode/plugin/bridge.js"
	p.put(name, p.get(name)+"// mine\n")
	if _, err := connectors[bridge.OpenCode].PlanInstall(context.Background(), p.in); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("installing again: %v", err)
	}
	plan := p.uninstall(bridge.OpenCode)
	if !strings.HasSuffix(p.get(name), "// mine\n") || len(plan.Notes) != 1 {
		t.Errorf("notes %v", plan.Notes)
	}
}

func TestAnNpmrcOfTheUserStaysAndThePlanSaysSo(t *testing.T) {
	p := newPerson(t, settled)
	plan := p.install(bridge.OpenCode)
	if len(plan.Notes) != 1 || !strings.Contains(plan.Notes[0], ".npmrc") {
		t.Errorf("notes %q", plan.Notes)
	}
	if got := p.get(".config/opencode/.npmrc"); got != settled[".config/opencode/.npmrc"] {
		t.Errorf("it holds %q", got)
	}
}

func TestAManifestOfTheFutureIsLeftAlone(t *testing.T) {
	p := newPerson(t, nil)
	p.install(bridge.Claude)
	if err := os.WriteFile(filepath.Join(p.in.State, manifestName), []byte(`{"version":2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := PlanRemoval(bridge.Claude, p.in.State); bridge.CodeOf(err) != bridge.Unsupported {
		t.Errorf("got %v", err)
	}
}

// Several hooks of ours stand side by side in one event's list; each is found
// again by what it is for, also when the binary has moved.
func TestMSG_11_SeveralHooksOfOneEvent(t *testing.T) {
	p := newPerson(t, nil)
	p.install(bridge.Claude)
	p.in.Bridge = "/moved/bridge"
	p.install(bridge.Claude)
	settings := p.get(".claude/settings.json")
	for _, event := range []string{"Stop", hooks.WakeEvent, hooks.WakeStandbyEvent} {
		if n := strings.Count(settings, "/moved/bridge hook claude "+event+" "); n != 1 {
			t.Errorf("%d hooks for %s:\n%s", n, event, settings)
		}
	}
}

// longForms are the hooks of an older Bridge in the middle of lists that hold
// others' hooks, before and behind them.
var longForms = map[bridge.AgentKind]struct{ file, text string }{
	bridge.Claude: {".claude/settings.json", `{
  "hooks": {
    "Stop": [
      { "hooks": [{ "type": "command", "command": "say first" }] },
      OURS(Stop),
      { "hooks": [{ "type": "command", "command": "say between" }] },
      OURS(Wake),
      OURS(WakeStandby),
      { "matcher": "x", "hooks": [{ "type": "command", "command": "/opt/bridge-hook else Stop" }] }
    ],
    "PostToolUse": [
      OURS(PostToolUse), // mine is next
      { "hooks": [{ "type": "command", "command": "say last" }] }
    ]
  }
}
`},
	bridge.Codex: {".codex/hooks.json", `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"say first"}]},OURS(Stop),
	{"hooks":[{"type":"command","command":"say last","timeout":3}]}]}}
`},
}

// withHooks puts Bridge's own hooks into one of the texts.
func withHooks(text string, in Input, kind bridge.AgentKind) string {
	for _, event := range []string{"Stop", "PostToolUse", hooks.WakeEvent, hooks.WakeStandbyEvent} {
		entry := hookEntry{Type: "command", Command: in.hookLine(kind, event), Timeout: 5}
		if event == hooks.WakeEvent || event == hooks.WakeStandbyEvent {
			entry.Timeout, entry.AsyncRewake = wakeSeconds, true
		}
		text = strings.Replace(text, "OURS("+event+")", string(encode(hookGroup{Hooks: []hookEntry{entry}})), 1)
	}
	return text
}

// lists are the commands of each event's hooks, in their order.
func lists(t *testing.T, text string) map[string][]string {
	t.Helper()
	tree, _, err := parseJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	events, _ := plain(tree).(map[string]any)["hooks"].(map[string]any)
	for event, groups := range events {
		for _, group := range groups.([]any) {
			for _, hook := range group.(map[string]any)["hooks"].([]any) {
				found[event] = append(found[event], hook.(map[string]any)["command"].(string))
			}
		}
	}
	return found
}

// An older Bridge wrote the long form of its hooks. The next installation
// replaces each where it stands, whether the manifest knows of it or not, and
// taking it back leaves what is not ours.
func TestMSG_11_TheLongFormOfAHookIsReplacedWhereItStands(t *testing.T) {
	for kind, older := range longForms {
		for name, before := range map[string]func(p *person){
			"with the manifest": func(p *person) {
				p.install(kind)
				p.put(older.file, withHooks(older.text, p.in, kind))
				p.install(kind)
			},
			"without the manifest": func(p *person) { p.put(older.file, withHooks(older.text, p.in, kind)) },
		} {
			t.Run(string(kind)+" "+name, func(t *testing.T) {
				p := newPerson(t, nil)
				before(p)
				old, theirs := p.in, lists(t, p.get(older.file))
				p.in.Hook = filepath.Join(filepath.Dir(p.in.Bridge), "bridge-hook")
				p.install(kind)
				now := lists(t, p.get(older.file))
				for event, want := range theirs {
					for i, command := range want {
						for _, ours := range []string{event, hooks.WakeEvent, hooks.WakeStandbyEvent} {
							if command == old.hookLine(kind, ours) {
								want[i] = p.in.hookLine(kind, ours)
							}
						}
					}
					if diff := cmp.Diff(want, now[event]); diff != "" {
						t.Errorf("%s (-want +got)\n%s", event, diff)
					}
				}
				if left := p.get(older.file); strings.Contains(left, "bridge' hook") || strings.Contains(left, "bridge hook") {
					t.Errorf("the long form is still there:\n%s", left)
				}
				if plan := p.install(kind); !plan.Empty() {
					t.Errorf("installing again changes %+v", plan.Edits)
				}
				p.uninstall(kind)
				if left := p.get(older.file); strings.Contains(left, "pro gram") || !strings.Contains(left, "say first") || !strings.Contains(left, "say last") {
					t.Errorf("taken back:\n%s", left)
				}
			})
		}
	}
}

// A package without bridge-hook goes back to the long form, where it stands too.
func TestMSG_11_WithoutTheProgramOfHooksTheLongFormIsWritten(t *testing.T) {
	for _, kind := range []bridge.AgentKind{bridge.Claude, bridge.Codex, bridge.Antigravity} {
		p := newPerson(t, settled)
		before := p.tree()
		p.install(kind)
		long := p.tree()
		p.in.Hook = filepath.Join(filepath.Dir(p.in.Bridge), "bridge-hook")
		if p.install(kind); cmp.Equal(long, p.tree()) {
			t.Errorf("%s: bridge-hook is not written", kind)
		}
		p.in.Hook = ""
		p.install(kind)
		if diff := cmp.Diff(long, p.tree()); diff != "" {
			t.Errorf("%s (-before +after)\n%s", kind, diff)
		}
		p.in.Hook = filepath.Join(filepath.Dir(p.in.Bridge), "bridge-hook")
		p.install(kind)
		p.uninstall(kind)
		if diff := cmp.Diff(before, p.tree()); diff != "" {
			t.Errorf("%s taken back (-before +after)\n%s", kind, diff)
		}
	}
}
