package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bridge/backend/core/bridge"
	"bridge/backend/testing/testkit"
)

func TestRWM_13_MountedSettings(t *testing.T) {
	for name, flags := range map[string]uintptr{"writable": 0, "read-only": unix.MS_RDONLY} {
		t.Run(name, func(t *testing.T) {
			home, host := newHome(t), filepath.Join(t.TempDir(), "host.json")
			testkit.PrivateMounts(t)
			writeConfig(t, home, "")
			if err := os.WriteFile(host, []byte("{\"port\": 4000}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			testkit.Bind(t, host, home.ConfigFile(), flags)
			_, err := home.UpdateConfig(func(c *Config) error { c.Port = 5000; return nil })
			data, readErr := os.ReadFile(host)
			if readErr != nil {
				t.Fatal(readErr)
			}
			if flags == 0 {
				if err != nil || !strings.Contains(string(data), "5000") {
					t.Errorf("got %v: the host has %s", err, data)
				}
			} else if bridge.CodeOf(err) != bridge.Storage || !strings.Contains(err.Error(), "config.json could not be saved: it is mounted read-only. Mount it writable") || string(data) != "{\"port\": 4000}\n" {
				t.Errorf("got %v: the host has %s", err, data)
			}
			if left, err := filepath.Glob(filepath.Join(home.Dir(), ".config*")); err != nil || len(left) != 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}
