package agent

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/config"
	"bridge/backend/testing/testkit"
)

// program writes a shell script that stands in for a CLI.
func program(t *testing.T, path, script string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no shell scripts")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := testkit.WriteProgram(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDetect(t *testing.T) {
	dir := t.TempDir()
	onPath := program(t, filepath.Join(dir, "bin", "codex"), "echo codex-cli 0.169.0")
	named := program(t, filepath.Join(dir, "named", "codex-x"), "echo 0.150.0")
	configured := program(t, filepath.Join(dir, "configured"), "echo 1.2.3 nightly")
	mute := program(t, filepath.Join(dir, "mute"), "exit 3")
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name       string
		env        map[string]string
		configured string
		want       Found
		code       bridge.Code
		note       string
	}{
		{name: "on PATH", env: map[string]string{"PATH": "/nowhere:" + filepath.Dir(onPath)}, want: Found{Path: onPath, Version: "0.169.0"}},
		{
			name: "by the variable first", env: map[string]string{"PATH": filepath.Dir(onPath), "BRIDGE_CODEX_BIN": named}, configured: configured,
			want: Found{Path: named, Version: "0.150.0"}, note: "older than 0.160.1",
		},
		{
			name: "then as configured", env: map[string]string{"PATH": filepath.Dir(onPath)}, configured: configured,
			want: Found{Path: configured, Version: "1.2.3"}, note: "newer than 0.169.0",
		},
		{name: "without a version", env: map[string]string{"BRIDGE_CODEX_BIN": mute}, want: Found{Path: mute}, note: "did not tell"},
		{name: "a name that is no program", env: map[string]string{"PATH": filepath.Dir(onPath), "BRIDGE_CODEX_BIN": plain}, code: bridge.Invalid},
		{name: "nowhere", env: map[string]string{"PATH": filepath.Join(dir, "named")}, code: bridge.NotFound},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := Detect(context.Background(), bridge.Codex, Lookup{Env: func(name string) string { return test.env[name] }, Configured: test.configured})
			if bridge.CodeOf(err) != test.code {
				t.Fatalf("error %v", err)
			}
			if got.Path != test.want.Path || got.Version != test.want.Version || !strings.Contains(got.Note, test.note) || (test.note == "") != (got.Note == "") {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// A broker finds what the owner's terminal finds, by that one's PATH alone, and asks a CLI
// in that environment: it may be a script of a node that only that PATH has.
func TestRWM_07_ProgramsAreFoundByThePathOfTheTerminal(t *testing.T) {
	dir := t.TempDir()
	program(t, filepath.Join(dir, "own", "codex"), "echo 9.9.9")
	program(t, filepath.Join(dir, "login", "node-x"), "echo codex-cli 0.169.0")
	program(t, filepath.Join(dir, "login", "codex"), "exec node-x")
	var environ []string
	refreshed := 0
	where := Lookup{
		Env:     func(name string) string { return map[string]string{"PATH": filepath.Join(dir, "own")}[name] },
		Environ: func() []string { return environ },
		Refresh: func() bool {
			refreshed++
			environ = []string{"PATH=" + filepath.Join(dir, "login") + ":/usr/bin:/bin"}
			return true
		},
	}
	want := filepath.Join(dir, "login", "codex")
	detector := Detector{}
	for _, detect := range []func() (Found, error){
		func() (Found, error) { return Detect(t.Context(), bridge.Codex, where) },
		func() (Found, error) { return detector.Detect(t.Context(), bridge.Codex, where) },
	} {
		if got, err := detect(); err != nil || got.Path != want || got.Version != "0.169.0" {
			t.Errorf("found %+v, %v; want %s", got, err, want)
		}
	}
	if got, err := Fit(job.Spec{Kind: bridge.Codex}, config.Settings{}, where); err != nil || got.Command[0] != want {
		t.Errorf("a job gets %q, %v", got.Command, err)
	}
	if refreshed != 1 {
		t.Errorf("the shell was asked again %d times, want once: for what was not found", refreshed)
	}
	where.Refresh = func() bool { return false }
	if path, err := Locate(bridge.Claude, where); bridge.CodeOf(err) != bridge.NotFound {
		t.Errorf("claude is at %q, %v", path, err)
	}
}
