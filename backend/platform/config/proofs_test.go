package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/proof"
	"bridge/backend/platform/config"
)

func TestCAN_02_ProofsAreKeptInAFile(t *testing.T) {
	home, err := config.ResolveHome(t.TempDir(), os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	file := config.ProofsFile{Home: home}
	if got, err := file.Proofs(); err != nil || len(got) != 0 {
		t.Errorf("at first %v, %v", got, err)
	}
	for _, want := range [][]proof.Proof{
		{
			{Kind: bridge.Claude, Version: "1", At: 5, Problem: "no network namespace", Routes: []proof.Result{}},
			{Kind: bridge.Codex, Version: "0.171.0", At: 6, Routes: []proof.Result{
				{Route: proof.Connects, State: proof.Works},
				{Route: proof.Wake, State: proof.Broken, Step: "wake", Expected: "a turn", Got: "nothing", Since: "0.171.0", Worked: "0.170.0"},
				{Route: proof.ToChild, State: proof.NotOffered, Why: "it has no way"},
			}},
		},
		{},
	} {
		if err := file.SetProofs(want); err != nil {
			t.Fatal(err)
		}
		got, err := file.Proofs()
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
	}
}

func TestCAN_02_TheFileOfProofsIsReadTolerantly(t *testing.T) {
	strange := []proof.Proof{{Kind: bridge.Codex, Version: "1", Routes: []proof.Result{{Route: "teleport", State: proof.Works}}}}
	for name, tt := range map[string]struct {
		text string
		want []proof.Proof
		code bridge.Code
	}{
		"unknown members": {
			"\ufeff{\"version\": 1, \"proofs\": [{\"kind\": \"codex\", \"version\": \"1\", \"note\": 1, \"routes\": [{\"route\": \"teleport\", \"state\": \"works\", \"x\": 1}]}], \"more\": 1}\r\n",
			strange, "",
		},
		"without proofs":  {`{"version": 1}`, nil, ""},
		"damaged":         {`{"version": 1, "proofs": [`, nil, bridge.Storage},
		"of another type": {`{"version": 1, "proofs": {"kind": 1}}`, nil, bridge.Storage},
		"newer":           {`{"version": 2, "proofs": []}`, nil, bridge.Unsupported},
	} {
		dir := t.TempDir()
		home, err := config.ResolveHome(dir, os.Getenv)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, config.ProofsStore)
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := config.ProofsFile{Home: home}.Proofs()
		after, readErr := os.ReadFile(path)
		if diff := cmp.Diff(tt.want, got); diff != "" || bridge.CodeOf(err) != tt.code || readErr != nil || string(after) != tt.text {
			t.Errorf("%s: %v; the file is %q, %v\n%s", name, err, after, readErr, diff)
		}
	}
}

func TestCAN_02_AFileOfProofsThatCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	home, err := config.ResolveHome(dir, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, config.ProofsStore), 0o700); err != nil {
		t.Fatal(err)
	}
	file := config.ProofsFile{Home: home}
	if _, err := file.Proofs(); bridge.CodeOf(err) != bridge.Storage {
		t.Errorf("read: %v", err)
	}
	if err := file.SetProofs(nil); bridge.CodeOf(err) != bridge.Storage {
		t.Errorf("write: %v", err)
	}
}

func TestCAN_02_TheSettingProve(t *testing.T) {
	for text, want := range map[string]config.ProveMode{`{}`: config.ProveAuto, `{"prove":"auto"}`: config.ProveAuto, `{"prove":"off"}`: config.ProveOff, `{"prove":"never"}`: "", `{"prove":""}`: ""} {
		dir := t.TempDir()
		home, err := config.ResolveHome(dir, os.Getenv)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := home.Settings(func(string) string { return "" })
		if (err != nil) != (want == "") || err == nil && got.Prove != want {
			t.Errorf("%s: %q, %v", text, got.Prove, err)
		}
	}
}
