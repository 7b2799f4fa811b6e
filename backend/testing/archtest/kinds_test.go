package archtest

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// kindNamed finds the constant of an agent kind, and its name as a whole string.
var kindNamed = regexp.MustCompile(`\bbridge\.(?:Claude|Codex|OpenCode|Antigravity)\b|"(?:claude|codex|opencode|antigravity)"`)

// kindsOwn finds the files and folders of one kind, by their names.
var kindsOwn = regexp.MustCompile(`claude|codex|opencode|antigravity`)

// namingKinds are the files of shared code that name a kind, with a reason. A file may go,
// none may come. Those of tables have one line for each kind.
var namingKinds = map[string]string{
	"backend/agent/kinds/kinds.go":                   "the table of settings, models and stores",
	"backend/agent/driver/driver.go":                 "the table of drivers",
	"backend/agent/prove/kinds_linux.go":             "the table of how bridge prove drives each agent",
	"backend/agent/prove/scripted/cli.go":            "the programs that bridge prove runs",
	"backend/agent/prove/scripted/session.go":        "their command lines",
	"backend/agent/prove/scripted/terminal_linux.go": "opencode's command line in a terminal",
	"backend/core/mail/via.go":                       "evidence texts of stored messages",
	"backend/core/reserved/reserved.go":              "folders of agents that jobs may not change; more agents than Bridge's kinds",
	"backend/platform/config/config.go":              "the member of config.json about Claude's channel",
	"backend/doors/dashboard/dto/settings.go":        "the same for the page",
	"backend/doors/dashboard/settings.go":            "the same for the page",
	"backend/doors/daemon/daemon.go":                 "the program of codex's queue command",
	"backend/doors/cli/access/allow.go":              "the example of a setting",
	"backend/doors/cli/demo/demo.go":                 "the sessions of the demo",
}

// TestKND_07_SharedCodeNamesNoOtherKind checks that code outside of the files of one kind
// asks for the kind's traits, and does not compare kinds.
func TestKND_07_SharedCodeNamesNoOtherKind(t *testing.T) {
	var naming []string
	for name, content := range productFiles(t) {
		if path.Ext(name) == ".go" && !kindsOwn.MatchString(name) && kindNamed.MatchString(content) {
			naming = append(naming, name)
		}
	}
	slices.Sort(naming)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(namingKinds)), naming); diff != "" {
		t.Errorf("the list differs from the files that name a kind (-listed +there): ask bridge.TraitsOf instead\n%s", diff)
	}
	for name, reason := range namingKinds {
		if reason == "" {
			t.Errorf("%s has no reason", name)
		}
	}
}
