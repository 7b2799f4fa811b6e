package agent

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"bridge/backend/bridge"
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
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
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
