package setup_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bridge/backend/agent/prove/scripted"
	"bridge/backend/testing/realcli"
)

// TestMain moves the run into a network namespace of its own when there are real
// CLIs to run, so that nothing they do leaves this machine. The same program is
// also the stand-in for `bridge` and `bridge-hook` that they start.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "bridge-hook" {
		os.Exit(standIn(append([]string{"hook"}, os.Args[1:]...)))
	}
	if len(os.Args) > 1 && slices.Contains([]string{"mcp", "hook", "plugin"}, os.Args[1]) {
		os.Exit(standIn(os.Args[1:]))
	}
	if scripted.Isolated() {
		if err := scripted.Enter(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	}
	if slices.ContainsFunc(os.Args, func(arg string) bool { return strings.HasPrefix(arg, "-test.fuzz") }) {
		os.Exit(m.Run()) // go starts this program again for each worker
	}
	if code, done := realcli.Apart(); done {
		os.Exit(code)
	}
	if _, err := findCLIs(); err != nil {
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

// unusable says why no real CLI can be run.
var unusable error

func findCLIs() (scripted.CLIs, error) {
	return realcli.FindCLIs(cmp.Or(os.Getenv("BRIDGE_TEST_CLIS"), filepath.Join("..", "..", "..", ".cache", "clis")))
}
