package setup

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tailscale/hujson"

	"bridge/backend/core/bridge"
)

var yes, no = true, false

// denying is a person who wants the rules, and whose program and home need no quotes.
func denying(t *testing.T, files map[string]string) *person {
	t.Helper()
	p := newPerson(t, files)
	p.in.Bridge, p.in.BridgeHome = "/opt/bridge/bridge", ""
	p.in.DenyOwner = &yes
	return p
}

// ownRules are settings in which the owner has rules of the same kind, one of them the same.
var ownRules = map[string]string{
	".claude/settings.json":      "{\r\n  \"permissions\": {\r\n    \"deny\": [\r\n      \"Bash(bridge approve:*)\",\r\n      \"Bash(rm:*)\"\r\n    ]\r\n  }\r\n}\r\n",
	".codex/rules/default.rules": "prefix_rule(pattern = [\"bridge\", \"approve\"], decision = \"forbidden\")\n",
	".config/opencode/opencode.jsonc": `{
  // mine
  "permission": {
    "*": "allow",
    "bash": {"*": "ask", "bridge approve *": "deny", "bridge answer *": "ask"}, // careful
  },
}
`,
	".gemini/antigravity-cli/settings.json": `{"permissions":{"deny":["command(rm)"]}}`,
}

// ruleFiles are the files that hold the rules.
var ruleFiles = map[bridge.AgentKind]string{
	bridge.Claude: ".claude/settings.json", bridge.Codex: ".codex/rules/bridge.rules", bridge.OpenCode: ".config/opencode/opencode.json",
}

// ruleFile is the kind's file as it is now, "" where there is none.
func (p *person) ruleFile(kind bridge.AgentKind) string {
	tree := p.tree()
	_, text, _ := strings.Cut(tree[ruleFiles[kind]]+tree[ruleFiles[kind]+"c"], "\n")
	return text
}

// The rules come by the owner's word alone, stay until he takes them back, and leave what he
// has of the same kind as it was, also where the file was changed since.
func TestSEC_07_RulesComeAndGoByTheOwnersWord(t *testing.T) {
	starts := homes()
	starts["own rules"] = ownRules
	for name, files := range starts {
		for _, kind := range bridge.Kinds() {
			t.Run("SEC-07 "+name+"/"+string(kind), func(t *testing.T) {
				p := denying(t, files)
				before := p.tree()
				p.in.DenyOwner = nil
				p.install(kind)
				without := p.tree()
				if text := p.ruleFile(kind); strings.Contains(text, "finish") {
					t.Fatalf("rules were not asked for:\n%s", text)
				}
				p.in.DenyOwner = &yes
				plan := p.install(kind)
				with, text := p.tree(), p.ruleFile(kind)
				if kind == bridge.Antigravity {
					if !slices.ContainsFunc(plan.Notes, func(note string) bool { return strings.Contains(note, "no rules that deny") }) {
						t.Errorf("nothing says that it has no rules: %q", plan.Notes)
					}
				} else {
					for _, words := range bridge.OwnerDecides() {
						if !strings.Contains(text, words[0]) {
							t.Errorf("there is no rule for %q:\n%s", words, text)
						}
					}
					if strings.Contains(text, "\r\n") != strings.Contains(before[ruleFiles[kind]], "\r\n") || strings.Contains(strings.ReplaceAll(text, "\r\n", ""), "\r") {
						t.Error("the line ends are mixed")
					}
					if !slices.ContainsFunc(plan.Edits, func(e Edit) bool {
						return strings.Contains(strings.ToLower(e.Adds), "denies sessions your own commands")
					}) {
						t.Errorf("the plan does not say so: %+v", plan.Edits)
					}
				}
				p.in.DenyOwner = nil
				if plan := p.install(kind); !plan.Empty() {
					t.Errorf("an install without the choice changes %+v", plan.Edits)
				}
				if diff := cmp.Diff(with, p.tree()); diff != "" {
					t.Errorf("an install without the choice (-before +after)\n%s", diff)
				}
				p.in.DenyOwner = &no
				p.install(kind)
				after := p.tree()
				delete(after, ".codex/rules") // the folder goes with an uninstall
				delete(without, ".codex/rules")
				if diff := cmp.Diff(without, after); diff != "" {
					t.Errorf("taken back, it leaves (-without +after)\n%s", diff)
				}
				p.in.DenyOwner = &yes
				p.install(kind)
				p.uninstall(kind)
				if diff := cmp.Diff(before, p.tree()); diff != "" {
					t.Errorf("an uninstall leaves (-before +after)\n%s", diff)
				}
			})
		}
	}
}

// What somebody changed in the meantime stays, and the rules go all the same.
func TestSEC_07_RulesGoFromAFileThatWasChanged(t *testing.T) {
	for _, kind := range []bridge.AgentKind{bridge.Claude, bridge.OpenCode} {
		for _, taken := range []string{"by an install", "by an uninstall"} {
			for name, files := range map[string]map[string]string{"empty": {}, "own rules": ownRules} {
				t.Run("SEC-07 "+string(kind)+" "+taken+" "+name, func(t *testing.T) {
					p := denying(t, files)
					p.install(kind)
					file := ruleFiles[kind]
					if kind == bridge.OpenCode && len(files) > 0 {
						file += "c"
					}
					p.put(file, strings.Replace(p.get(file), "{", `{"theme": "dark",`, 1))
					if taken == "by an install" {
						p.in.DenyOwner = &no
						p.install(kind)
					} else {
						p.uninstall(kind)
					}
					text := p.get(file)
					if strings.Contains(text, "finish") || strings.Contains(text, "token") {
						t.Errorf("rules are left:\n%s", text)
					}
					own := len(files) > 0
					if !strings.Contains(text, `"theme": "dark"`) || strings.Contains(text, `bridge approve`) != own || strings.Contains(text, `"deny": [`) != (own && kind == bridge.Claude) || strings.Contains(text, `"bash"`) != (own && kind == bridge.OpenCode) {
						t.Errorf("the owner's own is not as it was:\n%s", text)
					}
				})
			}
		}
	}
}

// claude's rules name the commands by each name of the program, and the files of this home
// alone; the folder in which jobs work is none of them.
func TestSEC_07_TheRulesOfClaude(t *testing.T) {
	for name, tt := range map[string]struct {
		program, home string
		want, not     []string
		note          string
	}{
		"usual home": {
			program: "/opt/bridge/bridge",
			want: []string{
				"Bash(bridge approve:*)", "Bash(bridgectl answer:*)", "Bash(/opt/bridge/bridge rules:*)", "Bash(bridge needs --away:*)",
				"Bash(bridge install:*)", "Read(~/.bridge/token)", "Edit(~/.bridge/token)", "Edit(~/.bridge/config.json)", "Read(~/.bridge/network/**)", "Edit(~/.bridge/approvals/**)",
			},
			not: []string{"Bash(bridge send:*)", "Bash(bridge needs:*)", "Bash(bridge status:*)", "Read(~/.bridge/config.json)"},
		},
		"another home": {
			program: "/opt/bridge/bridge", home: "/srv/bridge-2",
			want: []string{"Bash(bridge approve:*)", "Bash(bridge --home /srv/bridge-2 approve:*)", "Read(//srv/bridge-2/token)", "Edit(//srv/bridge-2/config.json)"},
			not:  []string{"Read(~/.bridge/token)"},
		},
		"names with blanks": {
			program: "/opt/my bridge/bridge", home: "/srv/my bridge",
			want: []string{"Bash(bridge approve:*)", "Read(//srv/my bridge/token)"},
			not:  []string{"Bash(/opt/my bridge/bridge approve:*)", "Bash(bridge --home /srv/my bridge approve:*)"},
		},
		"a name with a wildcard": {
			program: "/opt/bridge/bridge", home: "/srv/a*",
			want: []string{"Bash(bridge approve:*)"}, not: []string{"Read(//srv/a*/token)"},
			note: "no rules for files: the path /srv/a*",
		},
	} {
		t.Run("SEC-07 "+name, func(t *testing.T) {
			p := denying(t, nil)
			p.in.Bridge, p.in.BridgeHome = tt.program, tt.home
			plan := p.install(bridge.Claude)
			var settings struct{ Permissions struct{ Deny []string } }
			if err := json.Unmarshal([]byte(p.get(".claude/settings.json")), &settings); err != nil {
				t.Fatal(err)
			}
			got := settings.Permissions.Deny
			for _, rule := range tt.want {
				if !slices.Contains(got, rule) {
					t.Errorf("there is no %s in %q", rule, got)
				}
			}
			for _, rule := range got {
				if slices.Contains(tt.not, rule) || strings.Contains(rule, "worktrees") || strings.Contains(rule, ".bridge/**") {
					t.Errorf("there is %s", rule)
				}
			}
			if said := slices.ContainsFunc(plan.Notes, func(note string) bool {
				return strings.Contains(note, "no rules for files") && strings.Contains(note, tt.note)
			}); said != (tt.note != "") {
				t.Errorf("the notes are %q", plan.Notes)
			}
		})
	}
}

// Codex gets a file of Bridge's own; one of that name which is the owner's stays, and an
// older codex gets none.
func TestSEC_07_TheRulesOfCodex(t *testing.T) {
	const file = ".codex/rules/bridge.rules"
	for name, tt := range map[string]struct {
		version, home, own, want, note string
	}{
		"usual home":   {version: "0.169.0", want: `pattern = [["bridge","bridgectl"],["allow","answer","approve","config","decide","deny",`},
		"another home": {version: "0.169.0", home: "/srv/b 2", want: `pattern = [["bridge","bridgectl"],"--home","/srv/b 2","needs","--away"]`},
		"older":        {version: "0.160.1", note: "were tried with 0.169.0"},
		"unknown":      {note: "were tried with 0.169.0"},
		"the owner's":  {version: "0.169.0", own: "# mine\n", want: "# mine\n", note: "is yours and is left alone"},
	} {
		t.Run("SEC-07 "+name, func(t *testing.T) {
			files := map[string]string{}
			if tt.own != "" {
				files[file] = tt.own
			}
			p := denying(t, files)
			p.in.CLI.Version, p.in.BridgeHome = tt.version, tt.home
			plan := p.install(bridge.Codex)
			_, got, _ := strings.Cut(p.tree()[file], "\n")
			if !strings.Contains(got, tt.want) || (got == "") != (tt.want == "") || tt.own != "" && got != tt.own {
				t.Errorf("the file holds\n%s", got)
			}
			if said := slices.ContainsFunc(plan.Notes, func(note string) bool {
				return strings.Contains(note, "deny your commands") && strings.Contains(note, tt.note)
			}); said != (tt.note != "") {
				t.Errorf("the notes are %q", plan.Notes)
			}
			p.uninstall(bridge.Codex)
			if diff := cmp.Diff(tt.own, strings.TrimPrefix(p.tree()[file], "-rw-------\n")); diff != "" {
				t.Errorf("an uninstall leaves (-want +got)\n%s", diff)
			}
		})
	}
}

// opencode takes the last rule that fits: Bridge's stand behind the owner's, say nothing
// where he says something, and are left out with a note where they would not count.
func TestSEC_07_TheRulesOfOpenCode(t *testing.T) {
	const file = ".config/opencode/opencode.json"
	for name, tt := range map[string]struct {
		permission, note string
		rules            bool
		own              map[string]string // rules of the owner's that stay
	}{
		"nothing":                      {permission: `{}`, rules: true},
		"rules for commands":           {permission: `{"bash": {"*": "ask", "git *": "allow"}}`, rules: true, own: map[string]string{"*": "ask", "git *": "allow"}},
		"a rule for all before":        {permission: `{"*": "ask", "bash": {"*": "allow"}}`, rules: true},
		"a rule for all behind":        {permission: `{"bash": {"*": "allow"}, "*": "ask"}`, note: `permission."*" stands behind bash and decides`},
		"rules for other tools behind": {permission: `{"bash": {"*": "allow"}, "mcp_*": "ask"}`, rules: true},
		"one rule for all tools":       {permission: `"ask"`, note: `Write {"*": "ask"} instead`},
		"one rule for all commands":    {permission: `{"bash": "allow"}`, note: `(permission.bash: allow). Write {"*": "allow"} instead`},
		"the owner says otherwise":     {permission: `{"bash": {"bridge approve *": "ask"}}`, rules: true, own: map[string]string{"bridge approve *": "ask"}},
		"his own stands before his rule for all": {
			permission: `{"bash": {"bridge approve *": "deny", "git *": "ask", "bri*": "allow"}}`, rules: true, own: map[string]string{"bri*": "allow"}, note: `permission.bash."bri*" stands behind`,
		},
	} {
		t.Run("SEC-07 "+name, func(t *testing.T) {
			before := `{"permission": ` + tt.permission + "}\n"
			p := denying(t, map[string]string{file: before})
			plan := p.install(bridge.OpenCode)
			var settings struct{ Permission json.RawMessage }
			standard, err := hujson.Standardize([]byte(p.get(file)))
			if err == nil {
				err = json.Unmarshal(standard, &settings)
			}
			if err != nil {
				t.Fatal(err)
			}
			var permission struct{ Bash map[string]string }
			isObject := json.Unmarshal(settings.Permission, &permission) == nil
			if got := permission.Bash["/opt/bridge/bridge finish *"] == "deny" && permission.Bash["bridgectl needs --away *"] == "deny"; got != tt.rules {
				t.Errorf("rules are there: %v; %s", got, settings.Permission)
			}
			for rule, want := range tt.own {
				if !isObject || permission.Bash[rule] != want {
					t.Errorf("of %q it says %q", rule, permission.Bash[rule])
				}
			}
			if text := string(settings.Permission); tt.rules && tt.note == "" && strings.LastIndex(text, `"bridge answer *"`) < strings.LastIndex(text, `"*"`) {
				t.Errorf("the owner's rule for all stands last: %s", text)
			}
			if said := slices.ContainsFunc(plan.Notes, func(note string) bool {
				return strings.Contains(note, "decides") || strings.Contains(note, "deny your commands")
			}); said != (tt.note != "") || !strings.Contains(strings.Join(plan.Notes, " "), tt.note) {
				t.Errorf("the notes are %q", plan.Notes)
			}
			p.uninstall(bridge.OpenCode)
			if got := p.get(file); got != before {
				t.Errorf("an uninstall leaves %s", got)
			}
		})
	}
}

// A manifest of before says nothing of rules, and one with them is read back.
func TestSEC_07_TheManifestRemembers(t *testing.T) {
	p := denying(t, nil)
	p.install(bridge.Claude)
	m, err := readManifest(filepath.Join(p.in.State))
	if err != nil || !m.Kinds[bridge.Claude].OwnerDenied {
		t.Fatalf("it says %+v, %v", m.Kinds[bridge.Claude], err)
	}
}
