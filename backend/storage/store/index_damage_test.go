package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
)

// TestVER_06_WhatIsNoFileInThePlaceOfTheIndexIsLeftAsItIs: a link may lead to
// anything.
func TestVER_06_WhatIsNoFileInThePlaceOfTheIndexIsLeftAsItIs(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "elsewhere.db")
	if err := os.WriteFile(elsewhere, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(path string) error{
		"a link":   func(path string) error { return os.Symlink(elsewhere, path) },
		"a folder": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		t.Run("VER-06 "+name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bridge.db")
			if err := make(indexPath(path)); err != nil {
				t.Fatal(err)
			}
			db := openIndexed(t, path)
			appendAll(t, db, note("m1", "alice", "a word", 1000, "bob"))
			eventually(t, "the search says what is there", func() bool {
				_, _, err := db.SearchWords(t.Context(), wordQuery(t, "word"))
				return bridge.CodeOf(err) == bridge.Storage && strings.Contains(err.Error(), "is not a regular file")
			})
			if info, err := os.Stat(elsewhere); err != nil || info.Size() != 0 {
				t.Errorf("what the link leads to: %v, %v", info, err)
			}
		})
	}
}
