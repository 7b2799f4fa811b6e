// Command reference writes the pages of docs/reference that the programs themselves can
// tell: the commands of bridge and bridge-hub, the tools of a session, the doctor's
// findings, the addresses of the page, the agents and the schema of config.json. It also writes the
// man pages and the shells' completions. `go run ./build
// docs` runs it in the checkout.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"bridge/backend/doors/cli"
	"bridge/backend/doors/hubcli"
	"bridge/backend/platform/disk"
)

// The files, below the checkout.
const (
	commandsFile = "docs/reference/commands.md"
	toolsFile    = "docs/reference/tools.md"
	toolsSource  = "backend/doors/mcpserver/testdata/tools.json"
)

func main() {
	check := flag.Bool("check", false, "write nothing, and fail when a page is stale")
	flag.Parse()
	if err := run(".", *check); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

// run writes the pages below root, or with check fails when one differs from what the
// programs say.
func run(root string, check bool) error {
	pages, err := write(root)
	if err != nil {
		return err
	}
	for name, page := range pages {
		file := filepath.Join(root, filepath.FromSlash(name))
		if !check {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				return err
			}
			if err := disk.WriteAtomic(file, page, 0o644); err != nil {
				return err
			}
			continue
		}
		current, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if !bytes.Equal(bytes.ReplaceAll(current, []byte("\r\n"), []byte("\n")), page) {
			return fmt.Errorf("%s is stale: run `go run ./build docs`", name)
		}
	}
	return checkLeft(root, pages, check)
}

// checkLeft removes the man pages of commands that are gone, or with check fails if there
// is one.
func checkLeft(root string, pages map[string][]byte, check bool) error {
	for _, folder := range []string{manFolder + "/bridge", manFolder + "/bridge-hub"} {
		entries, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(folder)))
		if err != nil {
			return err
		}
		for _, entry := range entries {
			name := folder + "/" + entry.Name()
			switch {
			case pages[name] != nil:
			case check:
				return fmt.Errorf("%s is of no command: run `go run ./build docs`", name)
			default:
				if err := os.Remove(filepath.Join(root, filepath.FromSlash(name))); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// write returns each page by its file.
func write(root string) (map[string][]byte, error) {
	commands, err := commandsPage()
	if err != nil {
		return nil, err
	}
	source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(toolsSource)))
	if err != nil {
		return nil, err
	}
	tools, err := toolsPage(source)
	if err != nil {
		return nil, err
	}
	addresses, err := httpPage(root)
	if err != nil {
		return nil, err
	}
	schema, err := schemaPage(root)
	if err != nil {
		return nil, err
	}
	pages := map[string][]byte{commandsFile: commands, toolsFile: tools, doctorFile: doctorPage(), httpFile: addresses, schemaFile: schema, agentsFile: agentsPage()}
	for _, generate := range []func() (map[string][]byte, error){manPages, completions} {
		files, err := generate()
		if err != nil {
			return nil, err
		}
		maps.Copy(pages, files)
	}
	pages[llmsFile], err = llmsPage(root, pages)
	return pages, err
}

const commandsHead = "# Commands\n\n" +
	"This page is generated: `go run ./build docs` writes it from the programs. Every command prints the same with `--help`. " +
	"See also [exit codes](exit-codes.md).\n\n"

func commandsPage() ([]byte, error) {
	page := bytes.NewBufferString(commandsHead)
	hub := &hubcli.App{Getenv: os.Getenv}
	for _, root := range []*cobra.Command{new(cli.App).Commands(), hub.Commands()} {
		if err := describe(page, root); err != nil {
			return nil, err
		}
	}
	return append(bytes.TrimRight(page.Bytes(), "\n"), '\n'), nil
}

// describe adds a command and those below it, without what is hidden or not the
// program's own.
func describe(page *bytes.Buffer, cmd *cobra.Command) error {
	cmd.DisableAutoGenTag = true
	var text bytes.Buffer
	if err := doc.GenMarkdownCustom(cmd, &text, func(name string) string { return name }); err != nil {
		return fmt.Errorf("describe %s: %w", cmd.CommandPath(), err)
	}
	own, _, _ := strings.Cut(text.String(), "### Options inherited from parent commands")
	own, _, _ = strings.Cut(own, "### SEE ALSO")
	lines := slices.DeleteFunc(strings.Split(own, "\n"), func(line string) bool { return strings.HasPrefix(line, "  -h, --help ") })
	own = strings.Join(lines, "\n")
	own = strings.NewReplacer("### Options\n\n```\n```\n", "", "### Synopsis\n\n", "", "### Examples", "Examples:", "### Options", "Options:").Replace(own)
	page.WriteString(strings.TrimRight(own, "\n") + "\n\n")
	for _, below := range cmd.Commands() {
		if !below.IsAvailableCommand() || below.Name() == "help" {
			continue
		}
		if err := describe(page, below); err != nil {
			return err
		}
	}
	return nil
}

const toolsHead = "# Tools of a session\n\n" +
	"This page is generated: `go run ./build docs` writes it from the tools that Bridge's MCP server offers. An argument in bold is required. " +
	"A session has `ask_acp` and `spawn_acp` if `config.json` names such an agent; here it names `goose`.\n\n"

// toolsPage returns the page of the tools that source lists, in the form of an answer to
// tools/list.
func toolsPage(source []byte) ([]byte, error) {
	var tools []struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		InputSchema struct {
			Properties map[string]struct {
				Description string `json:"description"`
			} `json:"properties"`
			Required []string `json:"required"`
		} `json:"inputSchema"`
	}
	if err := json.Unmarshal(source, &tools); err != nil {
		return nil, fmt.Errorf("%s: %w", toolsSource, err)
	}
	var page strings.Builder
	page.WriteString(toolsHead)
	for _, tool := range tools {
		fmt.Fprintf(&page, "## %s\n\n%s\n\n", tool.Name, tool.Description)
		arguments := slices.Sorted(maps.Keys(tool.InputSchema.Properties))
		if len(arguments) == 0 {
			continue
		}
		page.WriteString("| argument | meaning |\n|---|---|\n")
		for _, name := range arguments {
			cell := "`" + name + "`"
			if slices.Contains(tool.InputSchema.Required, name) {
				cell = "**" + cell + "**"
			}
			meaning := strings.NewReplacer("\n", " ", "|", `\|`).Replace(tool.InputSchema.Properties[name].Description)
			fmt.Fprintf(&page, "| %s | %s |\n", cell, meaning)
		}
		page.WriteString("\n")
	}
	return []byte(strings.TrimRight(page.String(), "\n") + "\n"), nil
}
