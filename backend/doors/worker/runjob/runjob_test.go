package runjob

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/doors/worker"
	"bridge/backend/platform/config"
	"bridge/backend/testing/testkit"
)

func nothing(string) string { return "" }

func aHome(t *testing.T) config.Home {
	t.Helper()
	home, err := config.ResolveHome(filepath.Join(t.TempDir(), "h"), nothing)
	if err != nil {
		t.Fatal(err)
	}
	return home
}

func TestJOB_07_WhatIsNoJobOfTheHomeIsRefused(t *testing.T) {
	home, elsewhere := aHome(t), filepath.Join(t.TempDir(), "jobs", "codex-job-0a1b2c3d")
	if err := os.MkdirAll(elsewhere, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"none", nil, outcome.Usage, "the folder of one job"},
		{"two", []string{"a", "b"}, outcome.Usage, "the folder of one job"},
		{"one that is not there", []string{filepath.Join(home.Dir(), "jobs", "codex-job-0a1b2c3d")}, outcome.Failed, "there is no such job"},
		{"one of another home", []string{elsewhere}, outcome.Usage, "is no job of the home"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := Command(pflag.NewFlagSet("t", pflag.ContinueOnError))(t.Context(), worker.Program{Home: home, Getenv: nothing}, tt.args)
			if outcome.Code(err) != tt.code || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("it is answered with %v (%d)", err, outcome.Code(err))
			}
			if _, err := os.Stat(home.Dir()); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a home was made: %v", err)
			}
		})
	}
}

// A job whose agent could reach nobody is not begun; bridge serves where it stands alone.
func TestAJobWithoutItsToolsIsNotBegun(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for claude is a shell script")
	}
	home, folder := aHome(t), t.TempDir()
	script := []byte("#!/bin/sh\necho '2.1.329 (Claude Code)'\n")
	complete, alone := filepath.Join(folder, "whole"), filepath.Join(folder, "alone")
	for _, dir := range []string{complete, alone} {
		if err := errors.Join(os.Mkdir(dir, 0o700), testkit.WriteProgram(filepath.Join(dir, worker.RunnerName), nil, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	server := filepath.Join(complete, worker.MCPName)
	if err := errors.Join(home.Ensure(), testkit.WriteProgram(filepath.Join(folder, "claude"), script, 0o700), testkit.WriteProgram(server, nil, 0o700)); err != nil {
		t.Fatal(err)
	}
	getenv := func(name string) string { return map[string]string{"PATH": folder}[name] }
	tests := []struct{ name, dir, console, server, refused string }{
		{"beside its server", complete, "", server, ""},
		{"beside both", complete, "/programs/bridge", server, ""},
		{"with bridge elsewhere", alone, "/programs/bridge", "/programs/bridge", ""},
		{"alone", alone, "", "", "bridge-mcp is not beside " + filepath.Join(alone, worker.RunnerName)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := program{worker.Program{Home: home, Getenv: getenv, Own: filepath.Join(tt.dir, worker.RunnerName), Console: tt.console}, nil}
			spec, err := p.fitJob(job.Spec{Kind: bridge.Claude, Access: job.AccessRead})
			if (err == nil) != (tt.refused == "") || err != nil && !strings.Contains(err.Error(), tt.refused) || spec.Bridge.Command != tt.server {
				t.Errorf("it is given %q, %v", spec.Bridge.Command, err)
			}
		})
	}
}
