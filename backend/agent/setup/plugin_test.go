package setup

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/testing/testkit"
)

// The plugin's own tests, with a stand-in for opencode and one for our process.
func TestOpenCodePlugin(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("SKIPPED, the plugin was not run: there is no node")
	}
	dir := t.TempDir()
	child, err := filepath.Abs(filepath.Join("testdata", "plugin_child.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	plugin := filepath.Join(dir, "bridge.mjs")
	command := encode([]string{node, child})
	text := strings.Replace(opencodePlugin, opencodePluginCommand, "const COMMAND = "+string(command), 1)
	if err := os.WriteFile(plugin, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, node, filepath.Join("testdata", "plugin_test.mjs"), plugin, dir).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestTheInstalledPluginNamesItsCommand(t *testing.T) {
	p := newPerson(t, nil)
	p.install("opencode")
	want := "const COMMAND = " + string(encode([]string{p.in.Bridge, "plugin", "opencode", "--home", p.in.BridgeHome}))
	if text := p.get(".config/opencode/plugin/bridge.js"); strings.Count(text, want) != 1 || !strings.HasPrefix(text, opencodePluginMark) {
		t.Errorf("the plugin lacks %s", want)
	}
}
