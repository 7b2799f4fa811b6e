package setup

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
)

var modFiles = []string{
	".claude/skills/bridge/.claude-plugin/plugin.json", ".claude/skills/bridge/hooks/hooks.json", ".claude/skills/bridge/hooks/register.js",
}

func TestCHT_20_TheModIsInstalledWithItsOwnCommandAndTakenBack(t *testing.T) {
	p := newPerson(t, nil)
	plan := p.install(bridge.Claude)
	for _, name := range modFiles {
		planned := false
		for _, edit := range plan.Edits {
			planned = planned || edit.Path == filepath.Join(p.in.Home, name) && edit.Adds != ""
		}
		if !planned || !strings.Contains(p.get(name), claudeModMark) && !strings.HasSuffix(name, ".js") {
			t.Errorf("%s is not planned, or bears no mark:\n%s", name, p.get(name))
		}
	}
	want := "const COMMAND = " + string(encode([]string{p.in.Bridge, "plugin", "claude", "--home", p.in.BridgeHome}))
	if module := p.get(modFiles[2]); !strings.Contains(module, want) {
		t.Errorf("the module does not name its program: want %s in\n%.2000s", want, module)
	}
	p.uninstall(bridge.Claude)
	if _, err := os.Stat(filepath.Join(p.in.Home, ".claude", "skills")); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
}

// Every running claude loads a module anew that is written: so it is not, unless
// it changed.
func TestCHT_20_TheSameModIsNotWrittenAgain(t *testing.T) {
	p := newPerson(t, nil)
	p.install(bridge.Claude)
	before, err := os.Stat(filepath.Join(p.in.Home, modFiles[2]))
	if err != nil {
		t.Fatal(err)
	}
	p.install(bridge.Claude)
	same, err := os.Stat(filepath.Join(p.in.Home, modFiles[2]))
	if err != nil || !os.SameFile(before, same) || same.ModTime() != before.ModTime() {
		t.Errorf("it was written again (%v)", err)
	}
	p.in.Bridge = filepath.Join(p.in.Home, "elsewhere", "bridge")
	p.install(bridge.Claude)
	changed, err := os.Stat(filepath.Join(p.in.Home, modFiles[2]))
	if err != nil || os.SameFile(before, changed) { // a new file under the old name
		t.Errorf("it was not replaced by a rename (%v)", err)
	}
	if module := p.get(modFiles[2]); !strings.Contains(module, string(encode(p.in.Bridge))) {
		t.Error("the new one does not name the new program")
	}
}

func TestCHT_20_AFolderOfThatNameThatIsNotOursIsLeftAlone(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"a skill":         {".claude/skills/bridge/SKILL.md": "mine"},
		"another plugin":  {".claude/skills/bridge/.claude-plugin/plugin.json": `{"name":"bridge"}`},
		"a part of a mod": {".claude/skills/bridge/hooks/register.js": "export function register() {}"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPerson(t, files)
			plan := p.install(bridge.Claude)
			if len(plan.Notes) == 0 || !strings.Contains(strings.Join(plan.Notes, " "), "is left alone") {
				t.Errorf("the notes do not say so: %q", plan.Notes)
			}
			for _, edit := range plan.Edits {
				if strings.Contains(edit.Path, "skills") {
					t.Errorf("it edits %s", edit.Path)
				}
			}
			if !strings.Contains(p.get(".claude.json"), "bridge") {
				t.Error("the rest is not installed")
			}
			p.uninstall(bridge.Claude)
			for name, text := range files {
				if p.get(name) != text {
					t.Errorf("%s was changed", name)
				}
			}
		})
	}
}

func TestCHT_20_AnOlderModIsReplacedAfterALostManifest(t *testing.T) {
	p := newPerson(t, nil)
	p.install(bridge.Claude)
	if err := os.RemoveAll(p.in.State); err != nil {
		t.Fatal(err)
	}
	p.in.Bridge = filepath.Join(p.in.Home, "elsewhere", "bridge")
	plan, err := connectors[bridge.Claude].PlanInstall(context.Background(), p.in)
	if err != nil || len(plan.Notes) != 0 {
		t.Fatalf("notes %q, %v", plan.Notes, err)
	}
	if err := Apply(plan); err != nil {
		t.Fatal(err)
	}
	if module := p.get(modFiles[2]); !strings.Contains(module, string(encode(p.in.Bridge))) {
		t.Error("the old module was kept")
	}
}
