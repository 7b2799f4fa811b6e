// Package archtest holds the structure. It reads the sources and checks
// that every package imports only lower layers, that rules do no I/O, that
// packages say what they are for, that nothing is too large to be read, that
// the words that were given up stay away, and that
// every removal of stored data is one that somebody has thought about. Its tests
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

// layers gives every backend package its layer. A package may import only what
// stands on a lower one.
var layers = map[string]int{
	// Words.
	"bridge": 0,
	// Rules: no I/O. A session is a target of decisions; mail asks for a
	// session's wake policy; a remote job is a job; what jobs ask needs the owner; a host's hook names a session;
	// the way of the owner's words is a transport of chat.
	"decision": 10, "chat": 10, "search": 10, "reserved": 10,
	"session": 11, "reach": 11,
	"mail": 12, "host": 12,
	"job": 13, "job/runs": 14,
	"remote": 15, "needs": 15, "question": 15, "prompt": 15, "rule": 15,
	// Names that the hub and its clients agree on.
	"hub/subject": 16, "hub/box": 16,
	// How a command of any program ends.
	"cli/outcome": 16, "cli/usage": 17,
	// What the page is answered with: the words of the rules, and nothing of the link
	// or of a store, which stand above.
	"dashboard/shape": 16,
	// Adapters: one per technology. Each of store's own packages is one part of
	// what its databases need; ipc's api is what its two ends say to each other.
	"disk": 20, "proc": 20, "cli/terminal": 20,
	"wire": 21, "sqlitex": 21, "config": 21, "sandbox": 21, "sandbox/connects": 22, "gitwork": 22, "shellenv": 21, "orphans": 22,
	"store/schema": 22, "store/upgrade": 23, "store/fulltext": 23, "store/transfer": 23, "store/kept": 23, "store": 24,
	"ipc/api": 22, "ipc": 23, "link/cpace": 22, "link": 23, "hub/own": 24, "hub/enrol": 25, "hub": 25, "hub/crew": 25, "hub/server": 26, "hub/command": 27,
	"agent/clidata": 23, "agent/driver/run": 23, "agent/driver/jobstate": 23, "agent/driver/acp": 24, "agent/appserver": 24, "agent": 24, "agent/driver": 25, "agent/setup": 25, "agent/models": 25, "agent/programs": 25,
	// Programs: what keeps the storage, who is connected, what jobs do.
	"maintain/inventory": 29, "maintain/lease": 30, "maintain/check": 31, "maintain/snapshot": 32, "maintain/restore": 33, "maintain/archive": 33,
	"maintain":    34,
	"broker/feed": 26, "broker/turns": 26, "broker/wake": 26, "broker/lookup": 26, "broker/notices": 26, "broker/mailbox": 27, "broker/presence": 28, "broker/serving": 29, "broker/entry": 30, "broker": 31, "connect": 30, "rules": 30,
	"runner": 31, "jobs/record": 30, "jobs/landing": 31, "jobs/away": 32, "jobs": 33, "questions": 32, "prompts": 32, "prompts/threads": 33, "peering": 33, "remotejobs": 34, "files": 34, "sharing": 34,
	// Doors, what opens them, and the way in.
	"dashboard/exchange": 38, "dashboard/activity": 39, "dashboard/guard": 39, "dashboard/storage": 39, "dashboard/runs": 39, "dashboard/network": 39, "dashboard/queue": 39,
	"dashboard": 40, "mcpserver": 40, "hook": 40,
	"worker": 43, "worker/mcp": 44, "worker/runjob": 44, "daemon": 45,
	"cli/demo": 48, "cli/service": 48, "cli/pairs": 48, "cli/report": 48, "cli": 50,
	// Tests only: no product package may import these.
	"trial": 100, "archtest": 100, "brokertest": 100, "realcli": 100, "agent/driver/drivertest": 100, "agent/driver/standin": 100, "peering/peeringtest": 100, "hub/hubtest": 100, "soak/history": 100,
}

// lowestAdapter is the layer from which packages may touch the machine.
const lowestAdapter = 20

// ioPackages are what words and rules may not import.
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

// isTool reports whether the file is part of no product binary: a test, what
// only tests use, or the task runner.
func (s source) isTool() bool {
	return strings.HasSuffix(s.path, "_test.go") || strings.HasPrefix(s.path, "build/") || layers[s.dir()] == layers["archtest"]
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
		layer, known := layers[own]
		if !known {
			problems = append(problems, fmt.Sprintf("%s: package %s has no layer: give it one in archtest/layers.go", source.path, own))
			continue
		}
		for _, imported := range importsOf(source) {
			if problem := checkImport(own, layer, imported); problem != "" {
				problems = append(problems, source.path+": "+problem)
			}
		}
	}
	return problems
}

func checkImport(own string, layer int, imported string) string {
	if layer < lowestAdapter && slices.Contains(ioPackages, imported) {
		return fmt.Sprintf("%s holds rules and may not import %q: declare a port and let an adapter do it", own, imported)
	}
	if !strings.HasPrefix(imported, "bridge/") {
		return ""
	}
	other, inBackend := strings.CutPrefix(imported, backendPath)
	if !inBackend {
		return fmt.Sprintf("the backend may not import %s: a main hands it over", imported)
	}
	below, known := layers[other]
	if !known || below >= layer {
		return fmt.Sprintf("%s (layer %d) may not import %s (layer %d): imports only go down", own, layer, other, below)
	}
	return ""
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
	said := map[string]bool{}
	for _, source := range sources {
		if strings.HasSuffix(source.path, "_test.go") {
			continue
		}
		folder, doc := path.Dir(source.path), source.file.Doc.Text()
		name := source.file.Name.Name
		right := strings.HasPrefix(doc, "Package "+name+" ") || name == "main" && strings.HasPrefix(doc, "Command ")
		said[folder] = said[folder] || right
	}
	var problems []string
	for folder, right := range said {
		if !right {
			problems = append(problems, folder+`: no package comment that begins "Package <name> ..." (or "Command <name> ..." for a main)`)
		}
	}
	slices.Sort(problems)
	return problems
}
