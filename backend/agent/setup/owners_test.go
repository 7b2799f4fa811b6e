package setup

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// ownersFiles are the settings files of each kind that a person has before Bridge.
var ownersFiles = map[bridge.AgentKind][]string{
	bridge.Claude:      {".claude.json", ".claude/settings.json"},
	bridge.Codex:       {".codex/hooks.json", ".codex/config.toml"},
	bridge.OpenCode:    {".config/opencode/opencode.jsonc"},
	bridge.Antigravity: {".gemini/antigravity-cli/settings.json"},
}

// duplicated are files in which a member on Bridge's way is there twice.
var duplicated = []struct {
	kind       bridge.AgentKind
	name, text string
	want       string
}{
	{
		bridge.Claude, ".claude/settings.json",
		"{\n  \"hooks\": {},\n  \"model\": \"x\",\n  \"hooks\": {\"Stop\": []}\n}\n",
		"its member hooks is there twice, on lines 2 and 4,",
	},
	{bridge.Claude, ".claude/settings.json", "{\"hooks\": {\n\"Stop\": [],\n\"Stop\": []}}", "its member hooks.Stop is there twice, on lines 2 and 3,"},
	{bridge.Claude, ".claude/settings.json", "{\"permissions\": {},\r\n\"permissions\": {}}", "its member permissions is there twice, on lines 1 and 2,"},
	{bridge.Claude, ".claude/settings.json", "{\"permissions\": {\"allow\": [],\n\"allow\": []}}", "its member permissions.allow is there twice, on lines 1 and 2,"},
	{bridge.Claude, ".claude/settings.json", "\ufeff{\n\"hooks\": {},\n\"hook\\u0073\": {},\n\"hooks\": 1}", "its member hooks is there 3 times, on lines 2, 3, 4,"},
	{bridge.Claude, ".claude.json", `{"mcpServers": {}, "numStartups": 3, "mcpServers": {"mine": {"command": "true"}}}`, "its member mcpServers is there twice, both on line 1,"},
	{bridge.Claude, ".claude.json", "{\"mcpServers\": {\"bridge\": {},\n\"bridge\": {}}}", "its member mcpServers.bridge is there twice, on lines 1 and 2,"},
	{bridge.Codex, ".codex/hooks.json", "{\"hooks\": {},\n\"hooks\": {}}", "its member hooks is there twice, on lines 1 and 2,"},
	{
		bridge.OpenCode, ".config/opencode/opencode.jsonc",
		"// mine\n{\n\t\"mcp\": {}, // the first\n\t/* and\n\tone more */ \"mcp\": {},\n}\n",
		"its member mcp is there twice, on lines 3 and 5,",
	},
	{bridge.OpenCode, ".config/opencode/opencode.json", "{\"permission\": {},\n\"permission\": \"allow\"}", "its member permission is there twice, on lines 1 and 2,"},
	{bridge.Antigravity, ".gemini/antigravity-cli/settings.json", "{\"permissions\": {},\n\"permissions\": {}}", "its member permissions is there twice, on lines 1 and 2,"},
	{bridge.Codex, ".codex/config.toml", "model = \"a\"\n# mine\nmodel = \"b\"\n", "it is not valid TOML: duplicate key model, on lines 1 and 3."},
	{bridge.Codex, ".codex/config.toml", "\ufeff[mcp_servers.x]\r\ncommand = \"a\"\r\n\r\n[mcp_servers.x]\r\ncommand = \"b\"\r\n", "it is not valid TOML: duplicate key mcp_servers.x, on lines 1 and 4."},
	{bridge.Codex, ".codex/config.toml", "[[list]]\na = 1\n[[list]]\na = 1\n[list.in]\nb = 1\nb = 2\n", "it is not valid TOML: duplicate key list.2.in.b, on lines 6 and 7."},
	{bridge.Codex, ".codex/config.toml", "x = \"\n", "on line 1"},
}

func TestRWM_11_AMemberThatIsThereTwiceIsRefused(t *testing.T) {
	for _, test := range duplicated {
		p := newPerson(t, map[string]string{test.name: test.text})
		before := p.tree()
		_, err := connectors[test.kind].PlanInstall(context.Background(), p.in)
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), filepath.Join(p.in.Home, test.name)) {
			t.Errorf("%q: got %v, want %s", test.text, err, test.want)
		}
		if code := bridge.CodeOf(err); code != bridge.Conflict && code != bridge.Invalid {
			t.Errorf("%q: its code is %s", test.text, code)
		}
		if diff := cmp.Diff(before, p.tree()); diff != "" {
			t.Error(diff)
		}
	}
}

// What is there twice after Bridge was connected is named when it is taken back, too, and
// by the look whether it is connected as Bridge left it, which plans an install.
func TestRWM_11_WhatCameTwiceSinceIsNamed(t *testing.T) {
	for _, test := range duplicated {
		p := newPerson(t, nil)
		p.install(test.kind)
		if err := os.Remove(filepath.Join(p.in.Home, test.name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		p.put(test.name, test.text)
		before := p.tree()
		isBridges := test.name != ".config/opencode/opencode.jsonc" // it wrote opencode.json
		want := test.want
		if test.kind == bridge.OpenCode {
			want = "is there twice" // which of its members is met first is no matter
		}
		if _, err := PlanRemoval(test.kind, p.in.State); isBridges && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("taken back from %q: got %v, want %s", test.text, err, want)
		}
		if _, err := connectors[test.kind].PlanInstall(context.Background(), p.in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("installed again in %q: got %v, want %s", test.text, err, want)
		}
		if diff := cmp.Diff(before, p.tree()); diff != "" {
			t.Error(diff)
		}
		if kinds, err := Installed(p.in.State); err != nil || len(kinds) != 1 {
			t.Errorf("installed: %v, %v", kinds, err)
		}
	}
}

// What is there twice elsewhere is the agent's affair: Bridge keeps its bytes.
func TestRWM_11_WhatIsTwiceElsewhereStays(t *testing.T) {
	for kind, files := range ownersFiles {
		texts := map[string]string{}
		for _, name := range files {
			if kind == bridge.Codex {
				continue // it reads no file with a member twice
			}
			texts[name] = "{\"theme\": 1,\n\"theme\": 2, \"a\": {\"hooks\": 1, \"hooks\": 2}}\n"
		}
		p := newPerson(t, texts)
		before := p.tree()
		p.install(kind)
		for name := range texts {
			if got := p.get(name); !strings.Contains(got, "\"theme\": 1,\n\"theme\": 2, \"a\": {\"hooks\": 1, \"hooks\": 2}") || !strings.Contains(got, "bridge") {
				t.Errorf("%s holds %s", name, got)
			}
		}
		p.uninstall(kind)
		if diff := cmp.Diff(before, p.tree()); diff != "" {
			t.Error(diff)
		}
	}
}

// windowsText is how an editor on Windows saves a file.
func windowsText(text string) string {
	return "\ufeff" + strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
}

// readBehindMark leaves out the files that their CLI does not read behind a mark.
func readBehindMark(files []string) []string {
	return slices.DeleteFunc(slices.Clone(files), func(name string) bool { return name == ".codex/hooks.json" })
}

// What Bridge could edit, but the CLI itself does not read, is refused by name.
func TestRWM_11_RWM_12_WhatTheAgentDoesNotReadIsRefused(t *testing.T) {
	for _, test := range []struct {
		kind       bridge.AgentKind
		name, text string
		want       string
	}{
		{bridge.Codex, ".codex/hooks.json", "\ufeff{\"hooks\": {}}", "Codex does not read it, because it begins with a byte order mark."},
		{bridge.Codex, ".codex/hooks.json", "\ufeff", "Codex does not read it, because it begins with a byte order mark."},
		{bridge.Codex, ".codex/hooks.json", "{\"hooks\": {\"Stop\": [{\"matcher\": \"a\",\n\"matcher\": \"b\"}]}}", "its member matcher is there twice, on lines 1 and 2, and Codex does not read such a file."},
		{bridge.Claude, ".claude.json", "{\n\"numStartups\": \n}", "it is not valid JSON"},
	} {
		p := newPerson(t, map[string]string{test.name: test.text})
		before := p.tree()
		_, err := connectors[test.kind].PlanInstall(context.Background(), p.in)
		if bridge.CodeOf(err) != bridge.Invalid || !strings.Contains(err.Error(), filepath.Join(p.in.Home, test.name)+": "+test.want) {
			t.Errorf("%q: got %v, want %s", test.text, err, test.want)
		}
		if diff := cmp.Diff(before, p.tree()); diff != "" {
			t.Error(diff)
		}
	}
}

// What the CLI reads only without comments is edited all the same, and its owner is told.
func TestRWM_11_CommentsThatTheAgentDoesNotReadAreNoted(t *testing.T) {
	for _, test := range []struct {
		kind       bridge.AgentKind
		name, text string
		want       string // "" for no note
	}{
		{bridge.Codex, ".codex/hooks.json", "{\n// mine\n\"hooks\": {}}", "Codex does not read it, because of a comment or a trailing comma on line 2."},
		{bridge.Claude, ".claude/settings.json", "{\n  \"model\": \"x\", /* mine */\n}", "Claude Code does not read it, because of a comment or a trailing comma on line 2."},
		{bridge.Claude, ".claude.json", "\ufeff{\n\"numStartups\": 3,\n}", "Claude Code does not read it, because of a comment or a trailing comma on line 2."},
		{bridge.Claude, ".claude.json", "\ufeff{\n\"numStartups\": \"// none,}\"\n}", ""},
		{bridge.OpenCode, ".config/opencode/opencode.json", "{\n// mine\n}", ""},
	} {
		p := newPerson(t, map[string]string{test.name: test.text})
		before := p.tree()
		notes := strings.Join(p.install(test.kind).Notes, "\n")
		if said := strings.Contains(notes, "does not read it"); said != (test.want != "") || said && !strings.Contains(notes, filepath.Join(p.in.Home, test.name)+": "+test.want) {
			t.Errorf("%q: noted %q, want %q", test.text, notes, test.want)
		}
		p.uninstall(test.kind)
		if diff := cmp.Diff(before, p.tree()); diff != "" {
			t.Error(diff)
		}
	}
}

// A file that came to be one that the CLI does not read can be rid of Bridge's entries.
func TestRWM_12_WhatTheAgentDoesNotReadAnyMoreIsTakenBack(t *testing.T) {
	p := newPerson(t, map[string]string{".codex/hooks.json": "{\n  \"mine\": 1\n}\n"})
	p.install(bridge.Codex)
	p.put(".codex/hooks.json", "\ufeff// since\n"+p.get(".codex/hooks.json"))
	p.uninstall(bridge.Codex)
	if got, want := p.get(".codex/hooks.json"), "\ufeff// since\n{\n  \"mine\": 1\n}\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRWM_12_AByteOrderMarkStays(t *testing.T) {
	for kind, files := range ownersFiles {
		files = readBehindMark(files)
		texts := map[string]string{}
		for _, name := range files {
			texts[name] = windowsText(settled[name])
		}
		p := newPerson(t, texts)
		before := p.tree()
		p.install(kind)
		for _, name := range files {
			got := p.get(name)
			if got == texts[name] || !strings.HasPrefix(got, "\ufeff") || strings.Count(got, "\ufeff") != 1 {
				t.Errorf("%s holds %q", name, got)
			}
		}
		if again, err := connectors[kind].PlanInstall(context.Background(), p.in); err != nil || !again.Empty() {
			t.Errorf("%s: a second time: %v, %+v", kind, err, again.Edits)
		}
		p.uninstall(kind)
		if diff := cmp.Diff(before, p.tree()); diff != "" {
			t.Error(diff)
		}
	}
}

// What the agent or the person changed since is kept, and so is the mark.
func TestRWM_12_AByteOrderMarkStaysWhereTheFileChangedSince(t *testing.T) {
	for name, test := range map[string]struct {
		kind        bridge.AgentKind
		text, added string
	}{
		".codex/config.toml":              {bridge.Codex, "\ufeffmodel = \"x\"\r\n[mcp_servers.mine]\r\ncommand = \"true\"\r\n", "\r\n[since]\r\na = 1\r\n"},
		".claude/settings.json":           {bridge.Claude, "\ufeff{\r\n  \"model\": \"x\"\r\n}\r\n", "\r\n"},
		".config/opencode/opencode.jsonc": {bridge.OpenCode, "\ufeff{\r\n  \"model\": \"x\", // mine\r\n}\r\n", "// since\r\n"},
	} {
		p := newPerson(t, map[string]string{name: test.text})
		p.install(test.kind)
		p.put(name, p.get(name)+test.added)
		p.uninstall(test.kind)
		if got := p.get(name); got != test.text+test.added {
			t.Errorf("%s holds %q", name, got)
		}
	}
}

// What is Bridge's behind a mark is known as Bridge's without the manifest, too.
func TestRWM_12_AfterALostManifest(t *testing.T) {
	for kind, files := range ownersFiles {
		p := newPerson(t, nil)
		if kind == bridge.OpenCode {
			files = []string{".config/opencode/opencode.json"}
		}
		for _, name := range readBehindMark(files) {
			p.put(name, windowsText(settled[name]))
		}
		before := p.tree()
		p.install(kind)
		if err := os.Remove(filepath.Join(p.in.State, manifestName)); err != nil {
			t.Fatal(err)
		}
		p.install(kind)
		p.uninstall(kind)
		for _, name := range readBehindMark(files) {
			if got := p.get(name); !strings.HasPrefix(got, "\ufeff") || strings.Contains(got, "pro gram") {
				t.Errorf("%s holds %q, and held %q", name, got, before[name])
			}
		}
	}
}

// With nothing but a mark, a file is empty.
func TestRWM_12_AFileOfTheMarkAlone(t *testing.T) {
	for kind, files := range ownersFiles {
		files = readBehindMark(files)
		texts := map[string]string{}
		for _, name := range files {
			texts[name] = "\ufeff"
		}
		p := newPerson(t, texts)
		before := p.tree()
		p.install(kind)
		for _, name := range files {
			if got := p.get(name); !strings.HasPrefix(got, "\ufeff") || !strings.Contains(got, "bridge") {
				t.Errorf("%s holds %q", name, got)
			}
		}
		p.uninstall(kind)
		if diff := cmp.Diff(before, p.tree()); diff != "" {
			t.Error(diff)
		}
	}
}

// A rule for all tools is seen behind a mark and behind comments, and not in a member
// that merely has nearly its name.
func TestRWM_12_OpenCodesRuleForAllToolsIsSeen(t *testing.T) {
	for text, seen := range map[string]bool{
		"\ufeff{\"permission\": \"allow\"}\r\n":         true,
		"\ufeff// mine\n{\"permission\": \"allow\",}\n": true,
		"{\"Permission\": \"allow\"}\n":                 false,
		"\ufeff{\"permission\": {\"bash\": \"ask\"}}\n": false,
	} {
		p := newPerson(t, map[string]string{".config/opencode/opencode.json": text})
		before := p.tree()
		plan := p.install(bridge.OpenCode)
		if noted := strings.Contains(strings.Join(plan.Notes, " "), "one rule for all tools"); noted != seen {
			t.Errorf("%q: noted %v", text, noted)
		}
		p.uninstall(bridge.OpenCode)
		if diff := cmp.Diff(before, p.tree()); diff != "" {
			t.Error(diff)
		}
	}
}

// The table that is written in line is named, not the one that could be added.
func TestRWM_11_ATableInLineIsNamed(t *testing.T) {
	doc := document{verdict: Input{}.verdict, parts: []part{
		{Path: []string{"mcp_servers", "bridge"}, Value: encode(map[string]string{"command": "x"})},
		{Path: []string{"hooks", "state", "k"}, Value: encode(map[string]string{"trusted_hash": "x"}), Ours: true},
	}}
	for text, want := range map[string]string{"hooks = { state = {} }\n": "it defines hooks in", "\ufeffmcp_servers = {}\n": "it defines mcp_servers in"} {
		if _, err := (tomlFile{}).merge([]byte(text), doc, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// A file with two names has them afterwards, and both show the same.
func TestRWM_13_HardLinksStay(t *testing.T) {
	for kind, files := range ownersFiles {
		p := newPerson(t, settled)
		for _, name := range files {
			other := filepath.Join(p.in.Home, "dotfiles", strings.ReplaceAll(name, "/", "_"))
			if err := os.MkdirAll(filepath.Dir(other), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Link(filepath.Join(p.in.Home, name), other); err != nil {
				t.Skip("no hard links here")
			}
		}
		same := func() {
			t.Helper()
			for _, name := range files {
				info, err := os.Stat(filepath.Join(p.in.Home, name))
				if err != nil {
					t.Fatal(err)
				}
				other, err := os.Stat(filepath.Join(p.in.Home, "dotfiles", strings.ReplaceAll(name, "/", "_")))
				if err != nil || !os.SameFile(info, other) {
					t.Errorf("%s is another file than in dotfiles (%v)", name, err)
				}
			}
		}
		before := p.tree()
		p.install(kind)
		same()
		p.uninstall(kind)
		same()
		if diff := cmp.Diff(before, p.tree()); diff != "" {
			t.Error(diff)
		}
	}
}

// A process that ended while it wrote a file in place is told of with the copy of what the
// file held, as long as the file is torn.
func TestRWM_13_ATornFileIsNamedWithItsCopy(t *testing.T) {
	p := newPerson(t, settled)
	p.install(bridge.Claude)
	whole := p.get(".claude/settings.json")
	saved := filepath.Join(p.in.State, filepath.Base(disk.TempName("settings.json")))
	if err := os.WriteFile(saved, []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	p.put(".claude/settings.json", whole[:len(whole)/2])
	_, err := connectors[bridge.Claude].PlanInstall(context.Background(), p.in)
	_, removal := PlanRemoval(bridge.Claude, p.in.State)
	for _, err := range []error{err, removal} {
		if bridge.CodeOf(err) != bridge.Invalid || !strings.Contains(err.Error(), "What the file held before is in "+saved) {
			t.Errorf("got %v", err)
		}
	}
	p.put(".claude/settings.json", whole)
	p.uninstall(bridge.Claude)
}

// A file that Bridge made and its owner keeps in dotfiles since is not taken away under
// the link to it.
func TestRWM_13_ALinkToAFileOfBridgesStays(t *testing.T) {
	for kind, files := range ownersFiles {
		p := newPerson(t, nil)
		p.install(kind)
		moved := map[string]string{}
		for _, name := range files {
			from, to := filepath.Join(p.in.Home, name), filepath.Join(p.in.Home, "dotfiles", strings.ReplaceAll(name, "/", "_"))
			if kind == bridge.OpenCode {
				from = strings.TrimSuffix(from, "c")
			}
			if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(from, to); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(to, from); err != nil {
				t.Skip("no links here")
			}
			moved[from] = to
		}
		p.uninstall(kind)
		for from, to := range moved {
			if target, err := os.Readlink(from); err != nil || target != to {
				t.Errorf("%s is no link any more: %v", from, err)
			}
			if data, err := os.ReadFile(from); err != nil || strings.Contains(string(data), "bridge") {
				t.Errorf("%s holds %q (%v)", from, data, err)
			}
		}
		p.install(kind)
	}
}

// A file that may not be written is named with what to do, and nothing was changed.
func TestRWM_13_AFileThatMayNotBeWrittenIsNamed(t *testing.T) {
	if runtime.GOOS == "windows" || os.Getuid() == 0 {
		t.Skip("SKIPPED: here every file may be written")
	}
	p := newPerson(t, settled)
	folder := filepath.Join(p.in.Home, ".claude")
	if err := os.MkdirAll(filepath.Join(folder, "skills"), 0o700); err != nil { // for the mod
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(folder, 0o700) }) //nolint:errcheck // the folder goes with the test
	before := p.tree()
	p.install(bridge.Claude) // in place: the folder alone takes no files
	p.uninstall(bridge.Claude)
	if diff := cmp.Diff(before, p.tree()); diff != "" {
		t.Error(diff)
	}
	if err := os.Chmod(filepath.Join(folder, "settings.json"), 0o400); err != nil {
		t.Fatal(err)
	}
	before = p.tree()
	plan, err := connectors[bridge.Claude].PlanInstall(context.Background(), p.in)
	if err != nil {
		t.Fatal(err)
	}
	if err := Apply(plan); bridge.CodeOf(err) != bridge.Storage || !strings.Contains(err.Error(), "Change its owner or its mode") {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff(before, p.tree()); diff != "" {
		t.Error(diff)
	}
}
