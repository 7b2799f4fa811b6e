package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
)

func TestQUI_02_PausesAreKeptInAFile(t *testing.T) {
	home, err := config.ResolveHome(t.TempDir(), os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	file := config.PausesFile{Home: home}
	if got, err := file.Pauses(); err != nil || len(got) != 0 {
		t.Errorf("at first %v, %v", got, err)
	}
	for _, want := range [][]config.Pause{{{A: "1", B: "2", At: 5}, {A: "2", B: "3", At: 6}}, {}} {
		if err := file.SetPauses(want); err != nil {
			t.Fatal(err)
		}
		got, err := file.Pauses()
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
	}
	if err := file.SetPauses(make([]config.Pause, 1001)); bridge.CodeOf(err) != bridge.Invalid {
		t.Errorf("too many: %v", err)
	}
}

func TestQUI_02_TheFileOfPausesIsReadTolerantly(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []config.Pause
		code bridge.Code
	}{
		"edited by hand":  {"\ufeff{\"version\": 1, \"pauses\": [{\"a\": \"1\", \"b\": \"2\", \"note\": \"x\"}], \"more\": 1}\r\n", []config.Pause{{A: "1", B: "2"}}, ""},
		"without pauses":  {`{"version": 1}`, nil, ""},
		"damaged":         {`{"version": 1, "pauses": [`, nil, bridge.Storage},
		"of another type": {`{"version": 1, "pauses": {"a": 1}}`, nil, bridge.Storage},
		"newer":           {`{"version": 2, "pauses": []}`, nil, bridge.Unsupported},
	} {
		dir := t.TempDir()
		home, err := config.ResolveHome(dir, os.Getenv)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, config.PausesStore)
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := config.PausesFile{Home: home}.Pauses()
		after, readErr := os.ReadFile(path)
		if diff := cmp.Diff(tt.want, got); diff != "" || bridge.CodeOf(err) != tt.code || readErr != nil || string(after) != tt.text {
			t.Errorf("%s: %v; the file is %q, %v\n%s", name, err, after, readErr, diff)
		}
	}
}
