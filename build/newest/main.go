// Command newest tries the routes into the newest agent CLIs beside the pinned ones, and
// prints both as two columns (CAN-05). It installs the newest ones. A broken route of a new
// version is reported and fails nothing: it is the vendor's change. It exits 1 if the
// pinned CLIs cannot be tried.
//
// Run it in the checkout, after `go run ./build clis` and a build of the programs:
//
//	go run ./build/newest [KIND...]
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"bridge/backend/testing/realcli"
)

// triedAgent is what `bridge prove --json` answers about an agent, as far as the table
// shows it.
type triedAgent struct {
	Kind    string       `json:"kind"`
	Version string       `json:"version"`
	Routes  []triedRoute `json:"routes"`
}

type triedRoute struct {
	Route    string `json:"route"`
	State    string `json:"state"`
	Step     string `json:"step"`
	Expected string `json:"expected"`
	Got      string `json:"got"`
}

func main() {
	var program, pinned, newest string
	flag.StringVar(&program, "bridge", filepath.Join("bin", "bridge"), "the program bridge")
	flag.StringVar(&pinned, "pinned", filepath.Join(".cache", "clis"), "the `folder` of the pinned CLIs, with their package.json")
	flag.StringVar(&newest, "newest", filepath.Join(".cache", "clis-newest"), "the `folder` for the newest ones")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	known, err := tryRoutes(ctx, program, pinned, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "newest:", err)
		os.Exit(1)
	}
	var tried []triedAgent
	if err = install(ctx, pinned, newest); err == nil {
		tried, err = tryRoutes(ctx, program, newest, flag.Args())
	}
	fmt.Print(newestTable(known, tried))
	if err != nil {
		fmt.Println("The newest agent CLIs are not tried:", err)
	}
}

// install installs the packages of the pinned folder at their newest versions into
// another folder. It fails if npm does.
func install(ctx context.Context, pinned, newest string) error {
	text, err := os.ReadFile(filepath.Join(pinned, "package.json"))
	if err != nil {
		return err
	}
	packages, err := latestVersions(text)
	if err != nil {
		return err
	}
	npmrc, err := os.ReadFile(filepath.Join(pinned, ".npmrc"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(newest, 0o755); err != nil {
		return err
	}
	for name, data := range map[string][]byte{"package.json": []byte(`{"private": true}`), ".npmrc": npmrc} {
		if err := os.WriteFile(filepath.Join(newest, name), data, 0o644); err != nil {
			return err
		}
	}
	fmt.Println("installing the newest agent CLIs, about 1 GB, into", newest)
	args := []string{"install", "--no-save", "--no-package-lock", "--ignore-scripts", "--loglevel=error"}
	npm := exec.CommandContext(ctx, "npm", append(args, packages...)...)
	npm.Dir, npm.Stdout, npm.Stderr = newest, os.Stdout, os.Stderr
	return npm.Run()
}

// latestVersions returns the packages of a package.json as npm names their newest
// versions: "opencode-ai@latest". It fails if the text is no JSON.
func latestVersions(pinned []byte) (packages []string, err error) {
	var file struct{ Dependencies map[string]string }
	if err := json.Unmarshal(pinned, &file); err != nil {
		return nil, fmt.Errorf("read package.json: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(file.Dependencies)) {
		packages = append(packages, name+"@latest")
	}
	return packages, nil
}

// tryRoutes runs `bridge prove` with the CLIs of a folder. It fails if that cannot try any
// route; a broken one is part of the answer.
func tryRoutes(ctx context.Context, program, folder string, kinds []string) ([]triedAgent, error) {
	clis, err := realcli.FindCLIs(folder)
	if err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp("", "bridge-newest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(home)
	fmt.Println("trying the routes into the CLIs of", folder)
	command := exec.CommandContext(ctx, program, append([]string{"prove", "--json"}, kinds...)...)
	command.Env = append(os.Environ(), "BRIDGE_HOME="+home,
		"BRIDGE_CLAUDE_BIN="+clis.Claude, "BRIDGE_CODEX_BIN="+clis.Codex, "BRIDGE_OPENCODE_BIN="+clis.OpenCode)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, os.Stderr
	ran := command.Run()
	var answer struct{ Agents []triedAgent }
	if err := json.Unmarshal(output.Bytes(), &answer); err != nil || len(answer.Agents) == 0 {
		return nil, errors.Join(ran, fmt.Errorf("`bridge prove` answered %q", strings.TrimSpace(output.String())))
	}
	return answer.Agents, nil
}

// newestTable returns the two columns, and below them each broken route of the newest
// versions with the step in which it ended.
func newestTable(pinned, newest []triedAgent) string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "agent\tpinned\tnewest")
	for _, agent := range pinned {
		column := "not tried"
		at := slices.IndexFunc(newest, func(other triedAgent) bool { return other.Kind == agent.Kind })
		if at >= 0 {
			column = newest[at].words()
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", agent.Kind, agent.words(), column)
	}
	_ = table.Flush() // a builder takes everything
	for _, agent := range newest {
		agent.explain(&text)
	}
	return text.String()
}

// words returns the version and the routes that are broken: "2.1.332: wake broken".
func (a triedAgent) words() string {
	broken := a.broken()
	if len(broken) == 0 {
		return a.Version + ": all routes work"
	}
	var names []string
	for _, route := range broken {
		names = append(names, route.Route)
	}
	return a.Version + ": " + strings.Join(names, ", ") + " broken"
}

func (a triedAgent) broken() (broken []triedRoute) {
	for _, route := range a.Routes {
		if route.State == "broken" {
			broken = append(broken, route)
		}
	}
	return broken
}

// explain writes what each broken route should have brought, and what it brought.
func (a triedAgent) explain(out io.Writer) {
	for _, route := range a.broken() {
		fmt.Fprintf(out, "%s %s, %s, in the step %q:\n  expected %s\n  got      %s\n", a.Kind, a.Version, route.Route, route.Step, route.Expected, route.Got)
	}
}
