package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"bridge/backend/doors/cli"
	"bridge/backend/doors/hubcli"
	"bridge/backend/platform/config"
	"bridge/backend/storage/maintain/check"
)

// The files and folders, below the checkout.
const (
	doctorFile       = "docs/reference/doctor.md"
	httpFile         = "docs/reference/http.md"
	schemaFile       = "docs/reference/config.schema.json"
	manFolder        = "docs/man"
	completionFolder = "installer/completions"
	dashboardFolder  = "backend/doors/dashboard"
	llmsFile         = "docs/llms.txt"
	configPage       = "docs/reference/config.md"
)

const doctorHead = "# Findings of the doctor\n\n" +
	"This page is generated: `go run ./build docs` writes it from the program. `bridge doctor` names these codes in brackets, and `bridge doctor --json` as `code`. " +
	"An error makes it exit with 1; a warning does not. In the column \"fix\", `--fix` means that `bridge doctor --fix` repairs it.\n\n" +
	"| code | severity | what it means | what to do | fix |\n|---|---|---|---|---|\n"

// doctorPage lists the codes of findings.
func doctorPage() []byte {
	page := bytes.NewBufferString(doctorHead)
	kinds := check.Kinds()
	for _, code := range slices.Sorted(maps.Keys(kinds)) {
		kind, fix := kinds[code], ""
		if kind.Fixable {
			fix = "`--fix`"
		}
		do := strings.ReplaceAll(kind.Do, "{restore}", "`bridge doctor --restore latest`")
		fmt.Fprintf(page, "| `%s` | %s | %s | %s | %s |\n", code, kind.Severity, kind.Means, do, fix)
	}
	return page.Bytes()
}

const httpHead = "# HTTP addresses of the page\n\n" +
	"This page is generated: `go run ./build docs` writes it from the program's table of addresses. The addresses are for Bridge's own page and may change with each version. " +
	"Scripts use the commands with `--json`.\n\n" +
	"Bridge listens on 127.0.0.1 only. Each request needs the cookie of a browser that you let in by `bridge open`. A `Mutation` also needs the page's own header.\n\n" +
	"| method | address | guard | parameters | what it does |\n|---|---|---|---|---|\n"

// httpPage lists the addresses in the dashboard's sources. It fails if one has no text in
// addressTexts, and if a text has no address.
func httpPage(root string) ([]byte, error) {
	routes, params, err := readRoutes(filepath.Join(root, filepath.FromSlash(dashboardFolder)))
	if err != nil {
		return nil, err
	}
	page, rest := bytes.NewBufferString(httpHead), maps.Clone(addressTexts)
	for _, route := range routes {
		key := route.method + " " + route.pattern
		text, known := addressTexts[key]
		if !known {
			return nil, fmt.Errorf("%s has no text: add one to addressTexts in build/reference/addresses.go", key)
		}
		delete(rest, key)
		parameters := ""
		if route.method == "GET" && len(params[route.pattern]) > 0 {
			parameters = "`" + strings.Join(params[route.pattern], "`, `") + "`"
		}
		fmt.Fprintf(page, "| %s | `%s` | %s | %s | %s |\n", route.method, route.pattern, route.guard, parameters, text)
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("addressTexts in build/reference/addresses.go has texts of no address: %q", slices.Sorted(maps.Keys(rest)))
	}
	return page.Bytes(), nil
}

// route is one address.
type route struct{ method, pattern, guard string }

// readRoutes reads the tables of addresses and their parameters from the sources.
func readRoutes(folder string) (routes []route, params map[string][]string, err error) {
	params = map[string][]string{}
	for _, name := range []string{"routes.go", "params.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(folder, name), nil, 0)
		if err != nil {
			return nil, nil, err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.CompositeLit:
				if len(node.Elts) == 4 {
					if method, isMethod := node.Elts[0].(*ast.SelectorExpr); isMethod {
						kind, _ := node.Elts[2].(*ast.SelectorExpr)
						routes = append(routes, route{strings.ToUpper(strings.TrimPrefix(method.Sel.Name, "Method")), literal(node.Elts[1]), kind.Sel.Name})
					}
				}
			case *ast.KeyValueExpr:
				if values, isList := node.Value.(*ast.CompositeLit); isList && strings.HasPrefix(literal(node.Key), "/") {
					for _, value := range values.Elts {
						params[literal(node.Key)] = append(params[literal(node.Key)], literal(value))
					}
				}
			}
			return true
		})
	}
	slices.SortFunc(routes, func(a, b route) int {
		return strings.Compare(a.pattern+" "+a.method, b.pattern+" "+b.method)
	})
	return routes, params, nil
}

func literal(expr ast.Expr) string {
	text, isText := expr.(*ast.BasicLit)
	if !isText {
		return ""
	}
	value, err := strconv.Unquote(text.Value)
	if err != nil {
		return ""
	}
	return value
}

// schemaPage returns the JSON schema of config.json, with the meanings of the page about
// the settings.
func schemaPage(root string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(configPage)))
	if err != nil {
		return nil, err
	}
	schema := config.Schema(meanings(string(text)))
	data, err := json.MarshalIndent(schema, "", "  ")
	return append(data, '\n'), err
}

// meanings returns what the page says of each setting, by its path.
func meanings(page string) map[string]string {
	found, prefix := map[string]string{}, ""
	for line := range strings.Lines(page) {
		switch {
		case strings.HasPrefix(line, "## General"):
			prefix = ""
		case strings.HasPrefix(line, "## "):
			prefix = strings.ToLower(strings.TrimSpace(line[3:])) + "."
		case strings.HasPrefix(line, "| `"):
			if cells := strings.Split(line, "|"); len(cells) > 4 {
				found[prefix+strings.Trim(cells[1], " `")] = strings.TrimSpace(strings.ReplaceAll(cells[3], "`", ""))
			}
		}
	}
	return found
}

const llmsHead = "# Bridge\n\n" +
	"> Bridge connects the sessions of coding agents (Claude Code, Codex, opencode, Antigravity) on a computer: they send each other messages, follow pinned decisions, " +
	"give each other jobs, and ask their user. It runs locally; `bridge help` and `bridge COMMAND --help` describe every command.\n\n## Pages\n\n"

// llmsPage returns the index of the documentation for language models: each page with its
// title and its first paragraph. A page that is about to be written counts, too.
func llmsPage(root string, written map[string][]byte) ([]byte, error) {
	page := bytes.NewBufferString(llmsHead)
	for _, folder := range []string{"guide", "teams", ".", "reference"} {
		entries, err := os.ReadDir(filepath.Join(root, "docs", folder))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		names := map[string]bool{}
		for _, entry := range entries {
			names[path.Join(folder, entry.Name())] = true
		}
		for name := range written {
			if below := strings.TrimPrefix(name, "docs/"); below != name && path.Dir(below) == folder {
				names[below] = true
			}
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if path.Ext(name) != ".md" || name == "README.md" || name == "promises.md" {
				continue
			}
			text := written["docs/"+name]
			if text == nil {
				if text, err = os.ReadFile(filepath.Join(root, "docs", filepath.FromSlash(name))); err != nil {
					return nil, err
				}
			}
			title, about := opening(string(text))
			fmt.Fprintf(page, "- [%s](%s): %s\n", title, name, about)
		}
	}
	return page.Bytes(), nil
}

// opening returns the title of a page and its first sentence.
func opening(text string) (title, about string) {
	code := false
	for line := range strings.Lines(strings.ReplaceAll(text, "\r\n", "\n")) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "```"):
			code = !code
		case line == "" || code:
		case title == "":
			title = strings.TrimLeft(line, "# ")
		case !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "`"):
			first, _, _ := strings.Cut(strings.TrimPrefix(line, "This page is generated: `go run ./build docs` writes it from "), ". ")
			return title, strings.TrimSuffix(first, ".") + "."
		}
	}
	return title, title + "."
}

// manPages returns a man page for each command, by its file.
func manPages() (map[string][]byte, error) {
	pages := map[string][]byte{}
	hub := &hubcli.App{Getenv: os.Getenv}
	for _, root := range []*cobra.Command{new(cli.App).Commands(), hub.Commands()} {
		if err := addManPages(pages, manFolder+"/"+root.Name(), root); err != nil {
			return nil, err
		}
	}
	return pages, nil
}

func addManPages(pages map[string][]byte, folder string, cmd *cobra.Command) error {
	cmd.DisableAutoGenTag = true
	never := time.Unix(0, 0)
	var page bytes.Buffer
	err := doc.GenMan(cmd, &doc.GenManHeader{Section: "1", Source: "Bridge", Manual: "Bridge", Date: &never}, &page)
	if err != nil {
		return fmt.Errorf("the man page of %s: %w", cmd.CommandPath(), err)
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	text := strings.Replace(page.String(), `"Jan 1970"`, `""`, 1)
	pages[folder+"/"+name+".1"] = []byte(text)
	for _, below := range cmd.Commands() {
		if !below.IsAvailableCommand() || below.Name() == "help" {
			continue
		}
		if err := addManPages(pages, folder, below); err != nil {
			return err
		}
	}
	return nil
}

// completions returns the shells' completion files of a program by its names.
func completions() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, name := range []string{"bridge", "bridgectl"} {
		root := new(cli.App).Commands()
		root.Use = name
		var bash, zsh, fish bytes.Buffer
		if err := root.GenBashCompletionV2(&bash, true); err != nil {
			return nil, err
		}
		if err := root.GenZshCompletion(&zsh); err != nil {
			return nil, err
		}
		if err := root.GenFishCompletion(&fish, true); err != nil {
			return nil, err
		}
		files[completionFolder+"/"+name+".bash"] = bash.Bytes()
		files[completionFolder+"/_"+name] = zsh.Bytes()
		files[completionFolder+"/"+name+".fish"] = fish.Bytes()
	}
	return files, nil
}
