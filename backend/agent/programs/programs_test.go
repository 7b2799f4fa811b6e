package programs

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"bridge/backend/core/bridge"
)

func TestDOC_07_AProgramThatIsGoneIsNamed(t *testing.T) {
	dir := t.TempDir()
	is := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"all/bridge", "all/bridge-hook", "bare/bridge", "file", "install/install.json"} {
		if err := os.MkdirAll(filepath.Dir(is(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(is(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	entry := func(program, hook string) string {
		return fmt.Sprintf(`{"bridge":%q,"files":[{"parts":[{"value":{"command":%q}}]}]}`, program, hook+" claude Stop")
	}
	for name, c := range map[string]struct{ entry, gone string }{
		"all are there":              {entry(is("all/bridge"), is("all/bridge-hook")), ""},
		"hooks in their long form":   {entry(is("bare/bridge"), is("bare/bridge")+" hook"), ""},
		"the program of hooks":       {entry(is("bare/bridge"), is("bare/bridge-hook")), is("bare/bridge-hook")},
		"the program":                {entry(is("none/bridge"), is("none/bridge")+" hook"), is("none/bridge")},
		"a file in its folder's way": {entry(is("file/bridge"), ""), is("file/bridge")},
		"no program is named":        {`{"files":[]}`, ""},
		"an empty entry":             {`null`, ""},
	} {
		if err := os.WriteFile(is(InstallFile), []byte(`{"version":1,"kinds":{"claude":`+c.entry+`}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		want := map[bridge.AgentKind]string{}
		if c.gone != "" {
			want[bridge.Claude] = c.gone
		}
		if got, err := Gone(dir); err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: gone = %v, %v, want %v", name, got, err, want)
		}
	}
	if got, err := Gone(t.TempDir()); err != nil || len(got) > 0 {
		t.Errorf("nothing was ever connected: %v, %v", got, err)
	}
}
