package connect

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"bridge/backend/agent/setup"
	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
	"bridge/backend/testing/testkit"
)

// agentsIn are those of an own home and an empty PATH.
func agentsIn(t *testing.T, dir string) Agents {
	t.Helper()
	getenv := func(name string) string { return map[string]string{"HOME": t.TempDir()}[name] }
	home, err := config.ResolveHome(dir, getenv)
	if err != nil {
		t.Fatal(err)
	}
	return Agents{Home: home, Getenv: getenv, Program: filepath.FromSlash("/opt/my programs/bridge")}
}

func TestTheCommandLineNamesProgramAndHome(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("paths are written otherwise")
	}
	a := agentsIn(t, filepath.Join(t.TempDir(), "h"))
	want := `'/opt/my programs/bridge' doctor --drill --home ` + a.Home.Dir()
	if got := a.CommandLine("doctor", "--drill"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestMSG_11_WhatIsNotThereIsListedAndNothingIsMade(t *testing.T) {
	a := agentsIn(t, filepath.Join(t.TempDir(), "h"))
	list := a.List(t.Context())
	if len(list) != len(bridge.Kinds()) {
		t.Fatalf("%d kinds", len(list))
	}
	for _, agent := range list {
		if agent.Found || agent.Connected || agent.Detail == "" || agent.Missing == nil {
			t.Errorf("%+v", agent)
		}
	}
	if _, err := os.Stat(a.Home.Dir()); !os.IsNotExist(err) {
		t.Errorf("looking made the home: %v", err)
	}
}

func TestMSG_11_ARefusalKeepsPlansFromBeingMade(t *testing.T) {
	a := agentsIn(t, t.TempDir())
	a.Refusal = "this home goes away"
	for name, plan := range map[string]func() error{
		"connect":    func() error { _, err := a.Plan(t.Context(), bridge.Claude, setup.Choices{}); return err },
		"disconnect": func() error { _, err := a.PlanRemoval(bridge.Claude); return err },
	} {
		if err := plan(); bridge.CodeOf(err) != bridge.Conflict || err.Error() != a.Refusal {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A settings file with a member twice is said where the agent is listed: what Bridge wrote
// into it is not what the agent reads.
func TestRWM_11_AConnectedAgentWithAMemberTwiceIsNotListedAsWhole(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in is a shell script")
	}
	user, programs := t.TempDir(), t.TempDir()
	t.Setenv("HOME", user)
	if err := testkit.WriteProgram(filepath.Join(programs, "claude"), []byte("#!/bin/sh\necho '2.1.329 (Claude Code)'\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	a := agentsIn(t, filepath.Join(t.TempDir(), "h"))
	a.Getenv = func(name string) string { return map[string]string{"HOME": user, "PATH": programs}[name] }
	plan, err := a.Plan(t.Context(), bridge.Claude, setup.Choices{})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Apply(plan); err != nil {
		t.Fatal(err)
	}
	missing := func() []string {
		t.Helper()
		for _, listed := range a.List(t.Context()) {
			if listed.Kind == bridge.Claude && listed.Connected {
				return listed.Missing
			}
		}
		t.Fatal("claude is not connected")
		return nil
	}
	if found := missing(); len(found) != 0 {
		t.Errorf("as Bridge left it: %v", found)
	}
	path := filepath.Join(user, ".claude", "settings.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.TrimSuffix(string(data), "}\n")+",\n\"hooks\": {}\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found := missing(); len(found) != 1 || !strings.Contains(found[0], path+": its member hooks is there twice, on lines ") {
		t.Errorf("with hooks twice: %v", found)
	}
}
