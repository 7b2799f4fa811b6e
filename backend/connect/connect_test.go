package connect

import (
	"errors"
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

// Hooks call the small program where a package put it, and the long form where
// there is none.
func TestMSG_11_TheProgramOfHooksIsTheOneBesideBridge(t *testing.T) {
	dir := t.TempDir()
	put := func(name string) string {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o700)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tests := []struct{ name, program, beside, want string }{
		{name: "a package", program: "package/bridge", beside: "package/bridge-hook", want: "package/bridge-hook"},
		{name: "on Windows", program: "windows/bridge.exe", beside: "windows/bridge-hook.exe", want: "windows/bridge-hook.exe"},
		{name: "built for another system", program: "cross/bridge-linux-arm64", beside: "cross/bridge-hook-linux-arm64", want: "cross/bridge-hook-linux-arm64"},
		{name: "built alone", program: "alone/bridge"},
		{name: "a folder of that name", program: "folder/bridge", beside: "folder/bridge-hook/file"},
		{name: "another name", program: "other/console", beside: "other/bridge-hook"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			program := put(tt.program)
			if tt.beside != "" {
				put(tt.beside)
			}
			want := ""
			if tt.want != "" {
				want = filepath.Join(dir, filepath.FromSlash(tt.want))
			}
			if got := hookProgram(program); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "package", "bridge"), link); err != nil {
		t.Skip("no links here")
	}
	want, err := filepath.EvalSymlinks(filepath.Join(dir, "package", "bridge-hook"))
	if got := hookProgram(link); err != nil || got != want {
		t.Errorf("through a link: %q, want %q (%v)", got, want, err)
	}
}
