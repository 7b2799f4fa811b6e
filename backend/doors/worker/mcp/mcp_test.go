package mcp

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"bridge/backend/doors/cli/outcome"
	"bridge/backend/doors/worker"
	"bridge/backend/platform/config"
)

func TestAWrongCommandLineIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name    string
		command worker.Command
		args    []string
		want    string
	}{
		{"no kind", Serve, nil, "--agent KIND is missing"},
		{"an unknown kind", Serve, []string{"--agent=emacs"}, `unknown agent kind "emacs"`},
		{"a plugin of two kinds", Plugin, []string{"claude", "codex"}, "one kind of agent"},
		{"a plugin of an unknown kind", Plugin, []string{"emacs"}, `unknown agent kind "emacs"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			nothing := func(string) string { return "" }
			home, err := config.ResolveHome(filepath.Join(t.TempDir(), "h"), nothing)
			flags := pflag.NewFlagSet("t", pflag.ContinueOnError)
			run := tt.command(flags)
			if err := errors.Join(err, flags.Parse(tt.args)); err != nil {
				t.Fatal(err)
			}
			err = run(t.Context(), worker.Program{Home: home, Getenv: nothing}, flags.Args())
			if outcome.Code(err) != outcome.Usage || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("it is answered with %v", err)
			}
			if _, err := os.Stat(home.Dir()); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a home was made: %v", err)
			}
		})
	}
}

func TestCHT_03_TheChannelCountsAsOpenOnlyWhenAFlagNamesIt(t *testing.T) {
	for line, want := range map[string]bool{
		"claude":                          false,
		"claude --channels server:bridge": true,
		"claude --channels=plugin:x@y,server:bridge":                            true,
		"claude --dangerously-load-development-channels server:a server:bridge": true,
		"claude --channels server:bridges":                                      false,
		"claude --channels server:a -p server:bridge":                           false,
		"claude server:bridge":                                                  false,
	} {
		if got := namesChannel(strings.Fields(line)); got != want {
			t.Errorf("namesChannel(%q) = %v, want %v", line, got, want)
		}
	}
}
