package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
)

func TestNED_01_TheLast1000ThatWerePutAwayAreRemembered(t *testing.T) {
	dir := t.TempDir()
	home, err := config.ResolveHome(dir, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	file := config.NeedsFile{Home: home}
	if got, err := file.PutAway(); err != nil || len(got.IDs) != 0 {
		t.Errorf("at first %v, %v", got, err)
	}
	full := config.PutAway{Version: 1}
	for i := range 1000 {
		full.IDs = append(full.IDs, fmt.Sprintf("mail:%d", i))
	}
	if err := disk.WriteJSON(filepath.Join(dir, "needs.json"), full); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"mail:1000", "mail:1001"} {
		if err := file.SetPutAway(id, true); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.SetPutAway("mail:500", false); err != nil {
		t.Fatal(err)
	}
	got, err := file.PutAway()
	if err != nil || len(got.IDs) != 999 || got.IDs[0] != "mail:2" || got.IDs[998] != "mail:1001" || slices.Contains(got.IDs, "mail:500") {
		t.Errorf("%d remembered, %v", len(got.IDs), err)
	}
}

func TestNED_01_WhatCannotBeReadIsLeftAsItIs(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		code bridge.Code
	}{
		"damaged": {`{"version":1,"putAway":[`, bridge.Storage},
		"newer":   {`{"version":2,"putAway":{}}`, bridge.Storage},
		"later":   {`{"version":2,"putAway":["x"]}`, bridge.Unsupported},
	} {
		dir := t.TempDir()
		home, err := config.ResolveHome(dir, os.Getenv)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "needs.json")
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		err = config.NeedsFile{Home: home}.SetPutAway("x", true)
		after, readErr := os.ReadFile(path)
		if bridge.CodeOf(err) != tt.code || readErr != nil || string(after) != tt.text {
			t.Errorf("%s: %v; the file is %q, %v", name, err, after, readErr)
		}
	}
}
