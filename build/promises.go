package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"bridge/backend/platform/disk"
)

// promisesFile is the page that says which tests hold which requirement.
const promisesFile = "docs/promises.md"

// areas are the titles of the groups of requirements, by the letters of their rows.
var areas = map[string]string{
	"AUT": "authentication of the page", "CAN": "new versions of agents", "CHT": "words of the owner to sessions", "CTX": "context that Bridge uses", "DEC": "decisions",
	"DOC": "documentation and command line", "DSK": "desktop app, service and page", "HUB": "teams over a hub", "JOB": "jobs", "KND": "kinds of agents",
	"MSG": "sessions and messages", "NED": "what needs the owner", "PGE": "page", "PRF": "proof", "QUI": "chatter between agents", "RMT": "paired PCs",
	"RWM": "real people's machines", "SEC": "security", "STO": "storage and backups", "VER": "versions and migrations",
}

// promise is a test that holds rows of the requirements.
type promise struct {
	rows   []string // MSG-06
	folder string   // within the checkout, with slashes
	test   string   // without the rows
	code   bool     // it is the name of a Go function
}

// runPromises writes docs/promises.md, or with -check fails when that page differs from
// what the tests say.
func runPromises(_ context.Context, p project, args []string) error {
	flags := flag.NewFlagSet("promises", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	check := flags.Bool("check", false, "write nothing, and fail when the page is stale")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		return badArgument(fmt.Sprintf("promises %s: it takes -check only", strings.Join(args, " ")))
	}
	found, err := findPromises(p.root)
	if err != nil {
		return err
	}
	page := promisesPage(found)
	file := p.at(filepath.FromSlash(promisesFile))
	if !*check {
		return disk.WriteAtomic(file, page, 0o644)
	}
	current, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !bytes.Equal(withoutCarriageReturns(current), page) {
		return fmt.Errorf("%s is stale: run `go run ./build promises`", promisesFile)
	}
	return nil
}

// withoutCarriageReturns returns a text as it was before git gave it the line ends of
// Windows.
func withoutCarriageReturns(text []byte) []byte {
	return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
}

// findPromises returns the tests below root that name rows, of Go and of the page.
func findPromises(root string) (found []promise, err error) {
	err = walkTests(root, []string{testEnding, ".test.ts", ".test.tsx", ".spec.ts"}, func(folder, name string, text []byte) error {
		read := pagePromisesOf
		if strings.HasSuffix(name, testEnding) {
			read = goPromises
		}
		promises, err := read(folder, text)
		found = append(found, promises...)
		return err
	})
	return found, err
}

var (
	functionRows = regexp.MustCompile(`^(?:Test|Fuzz)((?:[A-Z]{3}_\d{2}_)+)(\w+)$`)
	textRows     = regexp.MustCompile(`^((?:[A-Z]{3}-\d{2}(?: |$))+)(.*)$`)
	pageText     = regexp.MustCompile(`(?m)(?:\(|^\s*)(?:'((?:[A-Z]{3}-\d{2}(?: |'))[^'\n]*)'|"((?:[A-Z]{3}-\d{2}(?: |"))[^"\n]*)"|` + "`((?:[A-Z]{3}-\\d{2}(?: |`))[^`\\n]*)`)")
)

// goPromises reads a file of Go tests: the names of its functions, and the texts of
// subtests that begin with rows. A subtest for a row that its function names is left out.
func goPromises(folder string, text []byte) (found []promise, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), folder, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, declared := range file.Decls {
		within := promise{folder: folder}
		if function, ok := declared.(*ast.FuncDecl); ok && function.Recv == nil {
			name := function.Name.Name
			if rows := functionRows.FindStringSubmatch(name); rows != nil {
				within = promise{rows: rowsOf(rows[1]), folder: folder, test: rows[2], code: true}
				found = append(found, within)
			} else if strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") {
				within.test, within.code = name, true
			}
		}
		if folder == "build" { // its tests have names of other tests as their data
			continue
		}
		ast.Inspect(declared, func(node ast.Node) bool {
			if call, ok := node.(*ast.CallExpr); ok && isReport(call) {
				return false
			}
			if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if value, err := strconv.Unquote(literal.Value); err == nil {
					found = append(found, within.step(value)...)
				}
			}
			return true
		})
	}
	return found, nil
}

// isReport reports whether a call is of a method that prints what a test found, such as
// t.Errorf: its text may begin with a row, and names no test.
func isReport(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"Error", "Errorf", "Fatal", "Fatalf", "Log", "Logf", "Skip", "Skipf"}, method.Sel.Name)
}

// rowsOf returns the rows of a function's name: MSG-06 and STO-01 of MSG_06_STO_01_.
func rowsOf(name string) (rows []string) {
	for pair := range slices.Chunk(strings.Split(strings.TrimSuffix(name, "_"), "_"), 2) {
		rows = append(rows, strings.Join(pair, "-"))
	}
	return rows
}

// step returns the promise of a text within a function, if it begins with rows that the
// function does not name.
func (p promise) step(text string) []promise {
	parts := textRows.FindStringSubmatch(text)
	if parts == nil {
		return nil
	}
	rows := slices.DeleteFunc(strings.Fields(parts[1]), func(row string) bool { return slices.Contains(p.rows, row) })
	if len(rows) == 0 {
		return nil
	}
	summary := oneLine(parts[2])
	switch {
	case summary != "":
		return []promise{{rows: rows, folder: p.folder, test: summary}}
	case p.test != "":
		return []promise{{rows: rows, folder: p.folder, test: p.test, code: true}}
	}
	return nil
}

// pagePromisesOf reads a file of the page's tests: the texts that begin with rows where a
// test is named.
func pagePromisesOf(folder string, text []byte) (found []promise, err error) {
	for _, match := range pageText.FindAllSubmatch(text, -1) {
		found = append(found, promise{folder: folder}.step(string(bytes.Join(match[1:], nil)))...)
	}
	return found, nil
}

// placeholder is what a text has where a value is put in, by fmt or by TypeScript.
var placeholder = regexp.MustCompile(`%[+#]?[svqdtx]|\$\{[^}]*\}`)

// oneLine returns a text in one line, without placeholders and the marks of Markdown.
func oneLine(text string) string {
	text = placeholder.ReplaceAllString(text, "…")
	text = strings.NewReplacer("|", "/", "`", "'", "<", "‹", ">", "›", "*", "∗", "_", "\\_").Replace(text)
	return strings.Trim(strings.Join(strings.Fields(text), " "), " ,:")
}

// promisesPage returns the page: a section for each area, and a line for each row and
// folder.
func promisesPage(found []promise) []byte {
	rows := map[string]map[string]map[string]bool{} // row, folder, test
	for _, promise := range found {
		test := promise.test
		if promise.code {
			test = "`" + test + "`"
		}
		for _, row := range promise.rows {
			if rows[row] == nil {
				rows[row] = map[string]map[string]bool{}
			}
			if rows[row][promise.folder] == nil {
				rows[row][promise.folder] = map[string]bool{}
			}
			rows[row][promise.folder][test] = true
		}
	}
	var page bytes.Buffer
	page.WriteString(promisesHead)
	area := ""
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		if letters, _, _ := strings.Cut(row, "-"); letters != area {
			area = letters
			fmt.Fprintf(&page, "\n## %s: %s\n\n| row | where | tests |\n|---|---|---|\n", area, cmp.Or(areas[area], "other"))
		}
		cell := row
		for _, folder := range slices.Sorted(maps.Keys(rows[row])) {
			tests := slices.SortedFunc(maps.Keys(rows[row][folder]), func(a, b string) int {
				return cmp.Or(strings.Compare(strings.ToLower(a), strings.ToLower(b)), strings.Compare(a, b))
			})
			fmt.Fprintf(&page, "| %s | %s | %s |\n", cell, path.Clean(folder), strings.Join(tests, "; "))
			cell = ""
		}
	}
	return page.Bytes()
}

const promisesHead = `# What holds each requirement

Each requirement has a row, such as MSG-06. A test that holds a requirement has the row in its name.
` + "`go run ./build promises`" + ` writes this page from these names, and a test fails when the page is stale.

A name in ` + "`this type`" + ` is a Go function without its first letters: ` + "`go test -run MSG_06 ./backend/storage/store`" + ` runs those of a row.
A name in words is a step within a Go test, or a test of the page.
`
