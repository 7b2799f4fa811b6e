package worker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/platform/config"
	"bridge/backend/platform/sandbox"
	"bridge/backend/testing/testkit"
)

func TestAWrongCommandLineIsRefused(t *testing.T) {
	for _, tt := range []struct{ name, line, want string }{
		{"none", "", "is started by Bridge itself"},
		{"one that only bridge has", "serve", "is started by Bridge itself"},
		{"an unknown flag", "count --tow 2", "unknown flag: --tow"},
		{"what the command itself refuses", "count", "--to is missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("BRIDGE_HOME", filepath.Join(t.TempDir(), "h"))
			err := perform(t.Context(), "bridge-count", strings.Fields(tt.line), "test", time.Now, map[string]Command{"count": count})
			if outcome.Code(err) != outcome.Usage || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("it is answered with %v", err)
			}
			if _, err := os.Stat(os.Getenv("BRIDGE_HOME")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a home was made: %v", err)
			}
		})
	}
}

func count(flags *pflag.FlagSet) Run {
	target := flags.Int("to", 0, "")
	return func(context.Context, Program, []string) error {
		if *target == 0 {
			return &outcome.UsageError{Err: errors.New("--to is missing")}
		}
		return nil
	}
}

// Where no broker can run, the one who asks is told why, and by which code.
func TestMSG_01_AWorkerIsToldWhyNoBrokerStarts(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for bridge is a shell script")
	}
	folder := t.TempDir()
	home, err := config.ResolveHome(filepath.Join(folder, "h"), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	console := filepath.Join(folder, "bridge")
	for _, tt := range []struct {
		name, script, job string
		demo              bool
		code              bridge.Code
		want              string
	}{
		{name: "a lost store", script: `echo '{"code":"denied","error":"the store is lost"}'`, code: bridge.Denied, want: "the store is lost"},
		{name: "a program that fails", script: "exit 1", code: bridge.Storage, want: "a broker could not be started"},
		{name: "one that says something else", script: "echo hello", code: bridge.Storage, want: "a broker could not be started"},
		{name: "none", code: bridge.Unavailable, want: "bridge is not beside"},
		{name: "within a job", script: "echo '{}'", job: "codex-job-0a1b2c3d", code: bridge.Unavailable, want: "codex-job-0a1b2c3d, a delegated job, starts none"},
		{name: "in a demo's home", script: "echo '{}'", demo: true, code: bridge.Denied, want: "the home of a demo"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := Program{Home: home, Console: console, Getenv: func(name string) string { return map[string]string{sandbox.JobVariable: tt.job}[name] }}
			p.CheckHome = p.askConsole
			if tt.script == "" {
				p.Console = ""
				p.CheckHome = p.askConsole
			} else if err := testkit.WriteProgram(console, []byte("#!/bin/sh\n[ \"$1\" = check-home ] || touch "+folder+"/started\n"+tt.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			if tt.demo {
				if err := errors.Join(os.MkdirAll(home.Dir(), 0o700), os.WriteFile(filepath.Join(home.Dir(), config.DemoMark), nil, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			_, err := p.StartBroker()(t.Context())
			if bridge.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("it is answered with %v (%s)", err, bridge.CodeOf(err))
			}
			if _, err := os.Stat(filepath.Join(folder, "started")); err == nil {
				t.Error("something was started")
			}
		})
	}
}
