//go:build !windows

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
)

func TestRWM_10_AFolderOfAnotherUsersIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a folder away")
	}
	dir := shortDir(t)
	own, others, empty := filepath.Join(dir, "own"), filepath.Join(dir, "others"), filepath.Join(dir, "empty")
	for _, folder := range []string{own, others, empty, filepath.Join(others, ".bridge"), filepath.Join(own, "others")} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{others, filepath.Join(own, "others")} {
		if err := os.Chown(folder, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		home, flag string
		refused    string // the folder that is named
	}{
		"root's own":                                {home: own},
		"a home of another user's":                  {home: others, refused: others},
		"a folder of root's in it":                  {home: others, flag: filepath.Join(others, ".bridge"), refused: others},
		"a folder that is not there":                {home: own, flag: filepath.Join(others, "a/b"), refused: others},
		"an own folder elsewhere":                   {home: others, flag: empty},
		"one of another user's in an own":           {home: own, flag: filepath.Join(own, "others"), refused: filepath.Join(own, "others")},
		"a folder that is not there, in root's":     {home: own, flag: filepath.Join(own, "a/b")},
		"a home of another user's, by the variable": {home: filepath.Join(others, "sub"), refused: others},
	} {
		t.Run(name, func(t *testing.T) {
			home, err := OpenHome(tt.flag, func(name string) string { return map[string]string{"HOME": tt.home}[name] })
			if tt.refused == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if bridge.CodeOf(err) != bridge.Denied || !strings.HasPrefix(err.Error(), tt.refused+" belongs to ") {
				t.Errorf("OpenHome = %v, want a refusal of %s", err, tt.refused)
			}
			if err := home.Ensure(); bridge.CodeOf(err) != bridge.Denied {
				t.Errorf("Ensure = %v", err)
			}
		})
	}
}
