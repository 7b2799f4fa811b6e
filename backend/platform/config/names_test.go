package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
)

func TestSTO_01_WhatBridgeAndSQLiteKeepInAHomeIsKnown(t *testing.T) {
	for name, want := range map[string]bool{
		"bridge.db": true, "bridge.db-wal": true, "archive.db-shm": true, "broker.lock": true, "broker.lock-journal": true,
		"jobs.json.lock": true, "models-codex.json": true, "bridge.db.backup-2-to-9-20260101T000000.000Z": true, "owner-questions.db-wal": true,
		"bridge.db.bak": false, "models": false, "x.lock": false, "other.db": false, "other.db-wal": false, "notes.backup-1": false, "-wal": false,
	} {
		if IsKnownName(name) != want {
			t.Errorf("IsKnownName(%q) = %v", name, !want)
		}
	}
}

// fill makes a folder with these files in it; a name with a closing slash is a folder's.
func fill(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o700)
		} else if err == nil {
			err = os.WriteFile(path, []byte("{}"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestDOC_07_AFolderOfOtherFilesIsNoHome(t *testing.T) {
	for name, c := range map[string]struct {
		holds          []string
		isHome, exists bool
	}{
		"empty":                                {nil, true, false},
		"a volume of its own":                  {[]string{"lost+found/"}, true, false},
		"settings before the first start":      {[]string{"config.json"}, true, true},
		"a session that asked for its token":   {[]string{"token", "logs/bridge.log"}, true, true},
		"a restored store alone":               {[]string{"bridge.db"}, true, true},
		"a home with a note of its owner":      {[]string{"bridge.db", "token", "notes.txt"}, true, true},
		"a lost store, a note":                 {[]string{"launch-secret", "backups/", "notes.txt"}, true, true},
		"another program of the layout":        {[]string{"read-state/", "owner-questions.db", "dashboard.json", "helper.txt"}, true, true},
		"an unfinished write":                  {[]string{"config.json.4711.1690000000000.tmp"}, true, false},
		"a copy from before an upgrade":        {[]string{"bridge.db.backup-2-to-9-20260101T000000.000Z"}, true, true},
		"a project":                            {[]string{"main.go", "logs/"}, false, true},
		"another program's settings":           {[]string{"config.json", "credentials"}, false, true},
		"one file":                             {[]string{"notes.txt"}, false, false},
		"a hidden file":                        {[]string{".profile"}, false, false},
		"names that other programs have, too":  {[]string{"token", "inbox/", "archive/", "photos/"}, false, true},
		"the user's folder, with its own home": {[]string{".bridge/bridge.db", ".ssh/"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := fill(t, c.holds...)
			home, err := ResolveHome(dir, variables())
			if err != nil {
				t.Fatal(err)
			}
			if HomeExists(home) != c.exists && c.isHome {
				t.Errorf("HomeExists = %v", !c.exists)
			}
			for what, check := range map[string]func() error{
				"CheckContents": func() error { return CheckContents(home) },
				"Ensure":        home.Ensure,
				"OpenHome":      func() error { _, err := OpenHome(dir, variables()); return err },
			} {
				err := check()
				if c.isHome && err != nil {
					t.Errorf("%s = %v", what, err)
				}
				if !c.isHome && (bridge.CodeOf(err) != bridge.Invalid || !strings.Contains(err.Error(), "is no home of Bridge's")) {
					t.Errorf("%s = %v, want a refusal", what, err)
				}
			}
		})
	}
}
