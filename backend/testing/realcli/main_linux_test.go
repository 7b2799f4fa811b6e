package realcli_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/agent/prove/scripted"
	"bridge/backend/testing/realcli"
	"bridge/backend/testing/testkit"
)

// TestMain moves the whole run into a network namespace of its own, so that
// model, broker and CLIs meet on a loopback from which nothing leads outside.
// The same program is also the MCP server and the hook that the harness tests
// give to the CLIs.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "probe-") {
		os.Exit(probe(os.Args[1:]))
	}
	if scripted.Isolated() {
		if err := scripted.Enter(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	}
	if code, done := realcli.Apart(longest...); done {
		os.Exit(code)
	}
	_, err := findCLIs()
	if err != nil {
		unusable = err
		os.Exit(m.Run())
	}
	code, err := realcli.Isolate()
	if err != nil {
		unusable = fmt.Errorf("this system permits no namespaces: %w", err)
		code = m.Run()
	}
	os.Exit(code)
}

// longest are the tests that take the longest, the longest first.
var longest = []string{
	"TestCAN_01_EachRouteIntoTheRealAgentsWorks", "TestRealSessionsTalk", "TestClaudesModEntersTheOwnersWords", "TestCAN_04_ABrokenRouteIntoClaudeIsNamed",
	"TestCAN_04_ABrokenRouteIntoOpenCodeIsNamed", "TestRealAgentsWorkForAPairedPC", "TestCAN_04_ABrokenRouteIntoCodexIsNamed",
}

// unusable says why no real CLI can be run.
var unusable error

// findCLIs looks where the product's own task puts them, or where
// BRIDGE_TEST_CLIS says.
func findCLIs() (scripted.CLIs, error) {
	return realcli.FindCLIs(cmp.Or(os.Getenv("BRIDGE_TEST_CLIS"), filepath.Join("..", "..", "..", ".cache", "clis")))
}

// world is what a test, or one step of it, works with.
type world struct {
	*testing.T
	*scene
}

// scene is a home with the three CLIs in it and the model behind them.
type scene struct {
	whole     *testing.T // lives as long as the scene
	home      *scripted.Home
	model     *scripted.FakeModel
	page      *dashboard // once the product is served
	terminals []*scripted.Terminal
	logs      []string // files that a failure shows, as patterns
}

// step is one step of a test. What follows needs it: a failure ends the test.
func (w *world) step(name string, do func(w *world)) {
	w.Helper()
	if !w.Run(name, func(t *testing.T) { do(&world{t, w.scene}) }) {
		w.FailNow()
	}
}

// newWorld skips the test where the CLIs cannot be run, or fails it when
// BRIDGE_REQUIRE_CLIS=1 says that they must.
func newWorld(t *testing.T, projects ...string) *world {
	t.Helper()
	if unusable != nil {
		if os.Getenv("BRIDGE_REQUIRE_CLIS") == "1" {
			t.Fatal(unusable)
		}
		t.Skipf("SKIPPED, no real CLI was run: %v", unusable)
	}
	clis, err := findCLIs()
	must(t, err)
	model, err := scripted.StartFakeModel()
	must(t, err)
	root, err := os.MkdirTemp("", "")
	must(t, err)
	home, err := scripted.NewHome(root, clis, model, projects...)
	must(t, err)
	w := &world{t, &scene{whole: t, home: home, model: model}}
	t.Cleanup(w.close)
	return w
}

// close shows what is needed to understand a failure, then ends everything.
func (w *world) close() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.Context()), testkit.Patience)
	defer cancel()
	if w.Failed() {
		for _, terminal := range w.terminals {
			w.Logf("screen of %s:\n%s", terminal.Name(), strings.TrimSpace(terminal.Screen()))
		}
		w.Logf("the model's last requests:\n%s", w.model.Tail(25))
		for _, pattern := range w.logs {
			paths, _ := filepath.Glob(pattern)
			for _, path := range paths {
				raw, err := os.ReadFile(path)
				w.Logf("%s (%v):\n%s", path, err, raw[max(0, len(raw)-8000):])
			}
		}
	}
	for _, terminal := range w.terminals {
		terminal.Close(ctx) //nolint:errcheck // Close of the home kills what is left
	}
	err := errors.Join(w.home.Close(ctx), w.model.Close())
	if err != nil {
		w.Error(err)
	}
}

// open starts an interactive CLI and waits until its prompt can be typed into.
func (w *world) open(name, project, ready string, argv ...string) *scripted.Terminal {
	w.Helper()
	terminal, err := w.home.Open(soon(w.T), name, w.home.Project(project), argv...)
	must(w.T, err)
	w.terminals = append(w.terminals, terminal)
	must(w.T, terminal.Until(soon(w.T), ready, func(screen string) bool { return strings.Contains(screen, ready) }))
	return terminal
}

// request waits for the first request that fits.
func (w *world) request(what string, fits func(scripted.Request) bool) scripted.Request {
	w.Helper()
	r, err := w.model.Wait(soon(w.T), what, fits)
	must(w.T, err)
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// openOpenCode starts an interactive opencode and waits for its composer.
func (w *world) openOpenCode(name, project string, args ...string) *scripted.OpenCodeTerminal {
	w.Helper()
	terminal, err := w.home.OpenOpenCode(soon(w.T), name, w.home.Project(project), args...)
	must(w.T, err)
	w.terminals = append(w.terminals, terminal.Terminal)
	const ready = "ctrl+p commands"
	must(w.T, terminal.Until(soon(w.T), ready, func(screen string) bool { return strings.Contains(screen, ready) }))
	return terminal
}
