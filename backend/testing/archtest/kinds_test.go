package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// kindTables are the files of shared code in which each kind has exactly one line. A new
// kind needs these lines and files of its own, and no other change of shared code.
var kindTables = []string{
	"backend/core/bridge/kinds.go",   // registered: the traits
	"backend/agent/driver/driver.go", // starters: the drivers of jobs
	"backend/agent/kinds/kinds.go",   // table: settings, models and stores
}

// namingKinds are the other files of shared code that name a kind, with the reason. A new
// kind need not be in them. A file may go, none may come.
var namingKinds = map[string]string{
	"backend/agent/prove/kinds_linux.go":             "the table of how bridge prove drives each agent that has a scripted model",
	"backend/agent/prove/scripted/cli.go":            "the programs that bridge prove runs",
	"backend/agent/prove/scripted/session.go":        "their command lines",
	"backend/agent/prove/scripted/terminal_linux.go": "opencode's command line in a terminal",
	"backend/core/mail/via.go":                       "evidence texts of stored messages",
	"backend/core/reserved/reserved.go":              "folders of agents that jobs may not change; more agents than Bridge's kinds",
	"backend/doors/daemon/daemon.go":                 "the program of codex's queue command, which agent.Queue runs",
	"backend/doors/cli/demo/demo.go":                 "the sessions of the demo",
}

// agentKind is one kind as its file in core/bridge declares it.
type agentKind struct {
	constant string // of its name
	traits   string // the variable of its traits
	name     string
}

var (
	kindConstant = regexp.MustCompile(`(?m)^const (\w+) AgentKind = "(\w+)"$`)
	kindTraits   = regexp.MustCompile(`(?m)^var (\w+) = Traits\{$`)
)

// agentKinds returns the kinds that have a file in core/bridge.
func agentKinds(t *testing.T) (kinds []agentKind) {
	t.Helper()
	for name, content := range productFiles(t) {
		if is, _ := path.Match("backend/core/bridge/kind_*.go", name); !is {
			continue
		}
		constant, traits := kindConstant.FindStringSubmatch(content), kindTraits.FindStringSubmatch(content)
		if constant == nil || traits == nil {
			t.Fatalf("%s declares no kind with traits", name)
		}
		kinds = append(kinds, agentKind{constant[1], traits[1], constant[2]})
	}
	if len(kinds) < 4 {
		t.Fatalf("only %d kinds are found: the search is broken", len(kinds))
	}
	return kinds
}

// linesNaming returns the lines of a source that name the kind: its constant, its traits, or
// its name as a whole string. Comments do not count.
func linesNaming(s source, kind agentKind) (lines []int) {
	inBridge := path.Dir(s.path) == "backend/core/bridge"
	ast.Inspect(s.file, func(node ast.Node) bool {
		names := false
		switch node := node.(type) {
		case *ast.SelectorExpr:
			of, isName := node.X.(*ast.Ident)
			names = isName && of.Name == "bridge" && node.Sel.Name == kind.constant
		case *ast.Ident:
			names = inBridge && (node.Name == kind.constant || node.Name == kind.traits)
		case *ast.BasicLit:
			text, err := strconv.Unquote(node.Value)
			names = node.Kind == token.STRING && err == nil && text == kind.name
		}
		if line := lineOf(s, node); names && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
		return true
	})
	return lines
}

func lineOf(s source, node ast.Node) int {
	if node == nil {
		return 0
	}
	return s.set.Position(node.Pos()).Line
}

// kindProblems returns one sentence for each shared file that names a kind and is not on a
// list, and for each table that has not exactly one line for a kind. naming are the files
// outside of the tables that name a kind.
func kindProblems(sources []source, kinds []agentKind) (problems, naming []string) {
	for _, s := range sources {
		folder := strings.TrimPrefix(path.Dir(s.path), "backend/")
		isOwn := slices.ContainsFunc(kinds, func(kind agentKind) bool { return strings.Contains(s.path, kind.name) })
		if s.isTest() || isOwn || isTestTool(folder) || strings.HasPrefix(s.path, "build/") {
			continue
		}
		for _, kind := range kinds {
			lines := linesNaming(s, kind)
			switch {
			case slices.Contains(kindTables, s.path):
				if len(lines) != 1 {
					problems = append(problems, fmt.Sprintf("%s has %d lines for %s, want 1: %v", s.path, len(lines), kind.name, lines))
				}
			case len(lines) > 0 && !slices.Contains(naming, s.path):
				naming = append(naming, s.path)
			}
		}
	}
	slices.Sort(naming)
	return problems, naming
}

// TestKND_07_AKindNeedsThreeLinesInSharedFiles checks that each kind has one line in each of
// the three tables, and that other code outside of the files of one kind asks for the kind's
// traits.
func TestKND_07_AKindNeedsThreeLinesInSharedFiles(t *testing.T) {
	problems, naming := kindProblems(module(t), agentKinds(t))
	for _, problem := range problems {
		t.Error(problem)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(namingKinds)), naming); diff != "" {
		t.Errorf("the list differs from the files that name a kind (-listed +there): ask bridge.TraitsOf instead\n%s", diff)
	}
	for name, reason := range namingKinds {
		if reason == "" {
			t.Errorf("%s has no reason", name)
		}
	}
}

func TestKND_07_EachNameOfAKindIsFound(t *testing.T) {
	kinds := []agentKind{{"Codex", "codex", "codex"}}
	for _, tt := range []struct {
		file, text      string
		problems, names int
	}{
		{"backend/p/p.go", "package p\nvar x = bridge.Codex", 0, 1},
		{"backend/p/p.go", "package p\nvar x = \"codex\"", 0, 1},
		{"backend/p/p.go", "package p\nvar x = `codex`", 0, 1},
		{"backend/p/p.go", "package p\n// bridge.Codex\nvar x = \"codex's queue\"", 0, 0},
		{"backend/p/p.go", "package p\nvar x struct { Codex int `json:\"codex\"` }", 0, 0},
		{"backend/p/codex.go", "package p\nvar x = bridge.Codex", 0, 0},
		{"backend/p/p_test.go", "package p\nvar x = bridge.Codex", 0, 0},
		{"backend/core/bridge/limits.go", "package bridge\nvar x = Codex", 0, 1},
		{"backend/core/bridge/kinds.go", "package bridge\nvar x = []Traits{\n\tcodex,\n}", 0, 0},
		{"backend/agent/kinds/kinds.go", "package kinds\nvar x = 1", 1, 0},
		{"backend/agent/kinds/kinds.go", "package kinds\nvar x = map[string]int{\n\tbridge.Codex: 1,\n}", 0, 0},
		{"backend/agent/kinds/kinds.go", "package kinds\nvar x = bridge.Codex\nvar y = bridge.Codex", 1, 0},
	} {
		problems, naming := kindProblems([]source{parse(t, tt.file, tt.text)}, kinds)
		if len(problems) != tt.problems || len(naming) != tt.names {
			t.Errorf("%s %q: %q, %q", tt.file, tt.text, problems, naming)
		}
	}
}
