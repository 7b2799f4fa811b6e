//go:build !windows

package daemon

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"bridge/backend/agent"
	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
	"bridge/backend/platform/shellenv"
	"bridge/backend/testing/testkit"
)

// Whatever a broker starts it finds by the PATH of the owner's terminal: the queue, the
// versions, the page's list, and what jobs need.
func TestRWM_07_ABrokerFindsWhatTheTerminalFinds(t *testing.T) {
	dir := t.TempDir()
	programs := map[string]string{"own": "9.9.9", "login": "0.169.0"}
	for folder, version := range programs {
		if err := errors.Join(os.Mkdir(filepath.Join(dir, folder), 0o700),
			testkit.WriteProgram(filepath.Join(dir, folder, "codex"), []byte("#!/bin/sh\necho "+version+"\n"), 0o700)); err != nil { //nolint:gosec // it is to be run
			t.Fatal(err)
		}
	}
	getenv := func(name string) string {
		return map[string]string{"PATH": filepath.Join(dir, "own"), "CODEX_HOME": "/codex", "HOME": dir}[name]
	}
	home, err := config.ResolveHome(filepath.Join(dir, "h"), getenv)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	d := &Daemon{opts: Options{Home: home, Getenv: getenv, Terminal: &shellenv.Terminal{
		Ask: func() ([]string, error) {
			asked++
			return []string{"PATH=" + filepath.Join(dir, "login") + ":/usr/bin:/bin", "KEY=k"}, nil
		},
		Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}}}
	want := filepath.Join(dir, "login", "codex")
	queue, err := d.queue()
	if err != nil || queue.Bin != want || !slices.Contains(queue.Environ, "KEY=k") || !slices.Contains(queue.Environ, "CODEX_HOME=/codex") {
		t.Errorf("the queue is %+v, %v", queue, err)
	}
	if found, err := d.cli(t.Context(), bridge.Codex); err != nil || found.Path != want || found.Version != "0.169.0" {
		t.Errorf("the version is of %+v, %v", found, err)
	}
	for _, item := range d.agents().List(t.Context()) {
		if item.Kind == bridge.Codex && (item.Path != want || item.Version != "0.169.0") {
			t.Errorf("the page lists %+v", item)
		}
	}
	if path, err := agent.Locate(bridge.Codex, lookup(d, "")); err != nil || path != want {
		t.Errorf("a job has %s, %v", path, err)
	}
	if asked != 1 {
		t.Errorf("the shell was asked %d times", asked)
	}
}
