package connect

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"bridge/backend/bridge"
	"bridge/backend/config"
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
	for _, one := range list {
		if one.Found || one.Connected || one.Detail == "" || one.Missing == nil {
			t.Errorf("%+v", one)
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
		"connect":    func() error { _, err := a.Plan(t.Context(), bridge.Claude, nil); return err },
		"disconnect": func() error { _, err := a.PlanRemoval(bridge.Claude); return err },
	} {
		if err := plan(); bridge.CodeOf(err) != bridge.Conflict || err.Error() != a.Refusal {
			t.Errorf("%s: %v", name, err)
		}
	}
}
