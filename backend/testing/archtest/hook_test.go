package archtest

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// hookMayLink is every package of others that the program of hooks may be made
// of, on any system: each costs every tool call of every agent. Think of
// `GODEBUG=inittrace=1` and of `go run ./build bench -only hooks` before you add one.
var hookMayLink = []string{
	"github.com/Microsoft/go-winio", "github.com/go-json-experiment/json", "github.com/go-json-experiment/json/jsontext", "github.com/google/uuid", "github.com/tailscale/hujson",
	"golang.org/x/sys/unix", "golang.org/x/sys/windows", "golang.org/x/text/unicode/norm",
}

// hookMustNot is what it may not be made of although it is Go's own or ours.
var hookMustNot = []string{
	"net/http", "database/sql", "crypto/tls", "html/template", "text/template", "encoding/gob", "embed",
	backendPath + "storage/store", backendPath + "agent", backendPath + "agent/setup", backendPath + "agent/clidata", backendPath + "broker", backendPath + "doors/dashboard", backendPath + "doors/mcpserver", backendPath + "doors/cli",
}

func TestTheProgramOfHooksLinksNothingHeavy(t *testing.T) {
	linked := linkedInto(module(t), "cmd/bridge-hook")
	if len(linked) < 20 || linked[backendPath+"doors/hook"] == "" {
		t.Fatalf("only %d packages found: the walk is broken", len(linked))
	}
	for name, by := range linked {
		first, _, _ := strings.Cut(name, "/")
		others := strings.Contains(first, ".")
		if slices.Contains(hookMustNot, name) || others && !slices.Contains(hookMayLink, name) {
			t.Errorf("bridge-hook links %s, for %s imports it", name, by)
		}
	}
	for _, name := range hookMayLink {
		if linked[name] == "" {
			t.Errorf("bridge-hook does not link %s any more: take it off the list", name)
		}
	}
}

// besideAgentsNot is what no program beside agents may be made of: there is one for each
// session and each job.
var besideAgentsNot = []string{
	"modernc.org/sqlite", "database/sql", "github.com/nats-io/nats.go", "github.com/spf13/cobra",
	backendPath + "storage/store", backendPath + "platform/sqlitex", backendPath + "broker", backendPath + "doors/dashboard", backendPath + "doors/daemon", backendPath + "network/hub", backendPath + "doors/cli",
}

// beside are the programs beside agents: a package that each needs, and what else it may not
// be made of.
var beside = map[string]struct {
	needs string
	not   []string
}{
	"bridge-mcp":    {"doors/mcpserver", []string{backendPath + "jobs/runner", backendPath + "agent/driver", backendPath + "jobs/gitwork"}},
	"bridge-worker": {"jobs/runner", []string{backendPath + "doors/mcpserver", "github.com/mark3labs/mcp-go/mcp", "github.com/mark3labs/mcp-go/server"}},
}

func TestTheProgramsBesideAgentsLinkNothingHeavy(t *testing.T) {
	for program, tt := range beside {
		linked := linkedInto(module(t), "cmd/"+program)
		if linked[backendPath+tt.needs] == "" {
			t.Fatalf("%s: only %d packages found: the walk is broken", program, len(linked))
		}
		for _, name := range append(tt.not, besideAgentsNot...) {
			if by := linked[name]; by != "" {
				t.Errorf("%s links %s, for %s imports it", program, name, by)
			}
		}
	}
}

// linkedInto is every package that the one in folder is made of, as far as this
// module's sources tell, with one that imports it.
func linkedInto(sources []source, folder string) map[string]string {
	imports := map[string][]string{}
	for _, s := range sources {
		if !strings.HasSuffix(s.path, "_test.go") {
			name := "bridge/" + path.Dir(s.path)
			imports[name] = append(imports[name], importsOf(s)...)
		}
	}
	linked := map[string]string{}
	for open := []string{"bridge/" + folder}; len(open) > 0; open = open[1:] {
		for _, name := range imports[open[0]] {
			if linked[name] == "" {
				linked[name] = open[0]
				open = append(open, name)
			}
		}
	}
	return linked
}

const hubServer = backendPath + "network/hub/server"

// TestHUB_01_NoOtherProgramHoldsTheHubsServer: a PC carries the client only.
func TestHUB_01_NoOtherProgramHoldsTheHubsServer(t *testing.T) {
	sources := module(t)
	const engine = "github.com/nats-io/nats-server/v2/server"
	for _, program := range []string{"cmd/bridge", "cmd/bridge-hook", "cmd/bridge-mcp", "cmd/bridge-worker", "cmd/bridge-desktop"} {
		for name, by := range linkedInto(sources, program) {
			if name == hubServer || strings.HasPrefix(name, "github.com/nats-io/nats-server") {
				t.Errorf("%s links %s, for %s imports it", program, name, by)
			}
		}
	}
	if linked := linkedInto(sources, "cmd/bridge-hub"); linked[engine] == "" {
		t.Error("bridge-hub does not link its engine: the walk is broken")
	}
}

// TestThePackagesThatProgramsMustNotLinkAreThere keeps a package that was moved or renamed
// from leaving the lists above without effect.
func TestThePackagesThatProgramsMustNotLinkAreThere(t *testing.T) {
	isThere := map[string]bool{}
	for _, s := range module(t) {
		isThere["bridge/"+path.Dir(s.path)] = true
	}
	own := slices.Concat(hookMustNot, besideAgentsNot, slices.Concat(beside["bridge-mcp"].not, beside["bridge-worker"].not))
	for _, name := range append(own, hubServer) {
		if strings.HasPrefix(name, backendPath) && !isThere[name] {
			t.Errorf("%s is on a list of packages that a program must not link, and is not there", name)
		}
	}
}
