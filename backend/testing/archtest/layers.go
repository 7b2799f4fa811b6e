// Package archtest checks the structure. It reads the sources and checks
// that every package stands in a wing and imports only what is below it, that rules do no I/O, that
// packages say what they are for, that nothing is too large to be read, that
// the words that were given up stay away, and that
// every removal of stored data stands in a reviewed list. Its tests
// run it over the whole module.
//
// It parses the files itself: asking the go command would put another process
// between the sources and the answer, which the test cache does not see, so a
// stale pass could be reported.
package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// wing is a first-level folder of backend: packages that serve one purpose.
type wing struct {
	name string
	// floors are the packages by their folders within the wing, the lowest floor first. A
	// package imports only packages of lower floors. "." is the wing's own folder.
	floors [][]string
}

// wings are all wings, the lowest first. A package imports only packages of its own wing
// and of lower wings.
var wings = []wing{
	{"core", [][]string{ // ids, kinds, messages, errors, and the rules; no I/O
		{"bridge"},
		{"decision", "chat", "search", "reserved", "exchange", "proof"},
		{"session", "delivery"},
		{"mail", "hooks"},
		{"job"},
		{"job/runs"},
		{"remote", "needs", "question", "prompt", "rule"},
	}},
	{"platform", [][]string{ // files, processes, SQLite, the local link, settings, the sandbox
		{"disk", "proc", "lifecycle"},
		{"wire", "sqlitex", "config", "sandbox", "shellenv", "pageclient"},
		{"sandbox/connects", "orphans", "ipc/api"},
		{"ipc"},
	}},
	{"agent", [][]string{ // the agent CLIs: their programs, settings, stores and protocols
		{"clidata", "driver/run", "driver/jobstate", "prove/scripted", "setup/textdiff"},
		{".", "driver/acp", "appserver"},
		{"driver", "setup", "models", "programs", "prove"},
		{"kinds"},
		{"connect"},
	}},
	{"storage", [][]string{ // the store, and its maintenance: check, backup, restore, archive
		{"store/schema"},
		{"store/upgrade", "store/fulltext", "store/transfer", "store/cache"},
		{"store"},
		{"maintain/inventory"},
		{"maintain/lease", "rules"},
		{"maintain/check"},
		{"maintain/snapshot"},
		{"maintain/restore", "maintain/archive"},
		{"maintain"},
	}},
	{"broker", [][]string{ // sessions, messages, decisions, delivery
		{"events", "activity", "wake", "lookup", "notices"},
		{"mailbox"},
		{"presence"},
		{"mux"},
		{"entry", "costs", "exchanges", "proving"},
		{"."},
	}},
	{"owner", [][]string{ // questions to the owner, permission prompts
		{"questions", "prompts"},
		{"prompts/codexthreads"},
	}},
	{"jobs", [][]string{ // delegated jobs: queue, runner, git worktrees, landing
		{"gitwork"},
		{"jobfiles"},
		{"runner", "landing"},
		{"paired"},
		{"."},
	}},
	{"network", [][]string{ // paired PCs and teams
		{"hub/subject", "hub/seal"},
		{"link/cpace"},
		{"link"},
		{"hub/externalnats"},
		{"hub", "hub/join", "hub/provision"},
		{"hub/server"},
		{"pairing"},
		{"remotejobs", "files", "sharing"},
	}},
	{"doors", [][]string{ // the ways in: MCP server, hooks, dashboard, command lines, daemon
		{"cli/outcome", "dashboard/dto"},
		{"cli/usage"},
		{"cli/terminal"},
		{"hubcli"},
		{"dashboard/httpjson"},
		{"dashboard/activity", "dashboard/guard", "dashboard/storage", "dashboard/runs", "dashboard/network", "dashboard/needsview", "dashboard/drafts"},
		{"dashboard", "mcpserver", "hook"},
		{"worker"},
		{"worker/mcp", "worker/runjob"},
		{"daemon"},
		{"cli/demo", "cli/service", "cli/report", "cli/command", "cli/manual"},
		{"cli/settings", "cli/maintenance", "cli/access"},
		{"cli/pairs"},
		{"cli"},
	}},
}

// testWing is the wing of tests: no package of the product may import it.
const testWing = "testing"

// testTools are packages of other wings that only tests use.
var testTools = []string{"agent/driver/drivertest", "agent/driver/standin", "network/pairing/pairingtest", "network/hub/hubtest"}

// pureBesideCore are the packages without I/O that stand outside of core. They import only
// core and each other.
var pureBesideCore = []string{"network/hub/subject", "network/hub/seal", "doors/cli/outcome", "doors/cli/usage", "doors/dashboard/dto"}

// place is the position of a package: its wing, and its floor there. Both count from 0.
type place struct{ wing, floor int }

// isBelow reports whether a package at p may be imported by one at other.
func (p place) isBelow(other place) bool {
	return p.wing < other.wing || p.wing == other.wing && p.floor < other.floor
}

// places returns the position of each package of the product, by its folder below backend.
func places() map[string]place {
	found := map[string]place{}
	for i, wing := range wings {
		for j, floor := range wing.floors {
			for _, name := range floor {
				found[path.Join(wing.name, name)] = place{i, j}
			}
		}
	}
	return found
}

var placeOf = places()

// isPure reports whether a package may do no I/O.
func isPure(own string) bool {
	return strings.HasPrefix(own, "core/") || slices.Contains(pureBesideCore, own)
}

// isTestTool reports whether only tests use a package.
func isTestTool(own string) bool {
	return strings.HasPrefix(own, testWing+"/") || slices.Contains(testTools, own)
}

// ioPackages are the packages of the standard library that a pure package may not import.
var ioPackages = []string{"os", "os/exec", "net", "net/http", "database/sql", "syscall"}

const backendPath = "bridge/backend/"

// source is one parsed file. Its path is relative to the module's root, with
// slashes.
type source struct {
	path string
	file *ast.File
	set  *token.FileSet
}

// dir is the file's folder within backend, or "" outside of it.
func (s source) dir() string {
	rest, inside := strings.CutPrefix(path.Dir(s.path), "backend/")
	if !inside {
		return ""
	}
	return rest
}

// isTool reports whether the file is part of no product binary: a test, a package that
// only tests use, or the task runner.
func (s source) isTool() bool {
	return s.isTest() || strings.HasPrefix(s.path, "build/")
}

// isTest reports whether the file is a test, or of a package that only tests use.
func (s source) isTest() bool {
	return strings.HasSuffix(s.path, "_test.go") || isTestTool(s.dir())
}

// load parses every Go file below the folders of root that exist.
func load(root string, folders ...string) ([]source, error) {
	var sources []source
	set := token.NewFileSet()
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(root, folder)); os.IsNotExist(err) {
			continue
		}
		err := fs.WalkDir(os.DirFS(root), folder, func(name string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "node_modules") {
				return fs.SkipDir
			}
			if !strings.HasSuffix(name, ".go") {
				return nil
			}
			file, err := parser.ParseFile(set, filepath.Join(root, name), nil, parser.ParseComments|parser.SkipObjectResolution)
			sources = append(sources, source{path: name, file: file, set: set})
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read the sources of %s: %w", folder, err)
		}
	}
	return sources, nil
}

// checkLayers returns one sentence for each import that goes sideways or up.
// Test files may import downwards and their own package's test tools.
func checkLayers(sources []source) []string {
	var problems []string
	for _, source := range sources {
		own := source.dir()
		if own == "" || source.isTool() {
			continue
		}
		if _, known := placeOf[own]; !known {
			problems = append(problems, fmt.Sprintf("%s: package %s has no layer: give it one in archtest/layers.go", source.path, own))
			continue
		}
		for _, imported := range importsOf(source) {
			if problem := checkImport(own, imported); problem != "" {
				problems = append(problems, source.path+": "+problem)
			}
		}
	}
	return problems
}

func checkImport(own, imported string) string {
	if isPure(own) && slices.Contains(ioPackages, imported) {
		return fmt.Sprintf("%s holds rules and may not import %q: declare a port and let an adapter do it", own, imported)
	}
	if !strings.HasPrefix(imported, "bridge/") {
		return ""
	}
	other, inBackend := strings.CutPrefix(imported, backendPath)
	if !inBackend {
		return fmt.Sprintf("the backend may not import %s: a main hands it over", imported)
	}
	if isPure(own) && !isPure(other) {
		return fmt.Sprintf("%s holds rules and may not import %s, which does I/O: imports only go down", own, other)
	}
	if below, known := placeOf[other]; !known || !below.isBelow(placeOf[own]) {
		return fmt.Sprintf("%s may not import %s: imports only go down, between wings and within one", own, other)
	}
	return ""
}

// checkWings returns one sentence for each folder directly below backend that is no wing,
// and for each package of the list of wings that has no file. Files directly in backend are
// refused as well.
func checkWings(sources []source) []string {
	isThere, strange := map[string]bool{}, map[string]bool{}
	for _, source := range sources {
		rest, inside := strings.CutPrefix(source.path, "backend/")
		if !inside {
			continue
		}
		isThere[source.dir()] = true
		name, _, _ := strings.Cut(rest, "/")
		if name != testWing && !slices.ContainsFunc(wings, func(w wing) bool { return w.name == name }) {
			strange[name] = true
		}
	}
	var problems []string
	for name := range strange {
		problems = append(problems, fmt.Sprintf("backend/%s is no wing: put it into one, see archtest/layers.go", name))
	}
	for name := range placeOf {
		if !isThere[name] {
			problems = append(problems, fmt.Sprintf("archtest/layers.go lists %s, which has no Go file", name))
		}
	}
	slices.Sort(problems)
	return problems
}

func importsOf(source source) []string {
	var paths []string
	for _, spec := range source.file.Imports {
		if unquoted, err := strconv.Unquote(spec.Path.Value); err == nil {
			paths = append(paths, unquoted)
		}
	}
	return paths
}

// checkComments returns one sentence for each package without a package comment
// that begins as Go wants it.
func checkComments(sources []source) []string {
	named := map[string]bool{}
	for _, source := range sources {
		if strings.HasSuffix(source.path, "_test.go") {
			continue
		}
		folder, doc := path.Dir(source.path), source.file.Doc.Text()
		name := source.file.Name.Name
		right := strings.HasPrefix(doc, "Package "+name+" ") || name == "main" && strings.HasPrefix(doc, "Command ")
		named[folder] = named[folder] || right
	}
	var problems []string
	for folder, right := range named {
		if !right {
			problems = append(problems, folder+`: no package comment that begins "Package <name> ..." (or "Command <name> ..." for a main)`)
		}
	}
	slices.Sort(problems)
	return problems
}
