package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
)

func TestRWM_11_AMemberOfTheSettingsThatIsThereTwiceIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"{\n\"port\": 4000,\n\"port\": 5000}":                                           `the member "port" is there twice, on lines 2 and 3`,
		"{\"jobs\": {\"maxJobs\": 1,\n\"maxJobs\": 2}}":                                 `the member "maxJobs" is there twice, on lines 1 and 2`,
		"{\"network\": {},\n\n\"theirs\": {}, \"network\": {}}":                         `the member "network" is there twice, on lines 1 and 3`,
		"\ufeff{\r\n\"theirs\": 1,\r\n\"theirs\": 2\r\n}":                               `the member "theirs" is there twice, on lines 2 and 3`,
		"{\"agents\": {\"acp\": {\"x\": {\"command\": \"/x\",\n\"command\": \"/y\"}}}}": `the member "command" is there twice, on lines 1 and 2`,
	} {
		home := newHome(t)
		writeConfig(t, home, text)
		if _, err := home.Config(); bridge.CodeOf(err) != bridge.Invalid || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), home.ConfigFile()) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
		if _, err := home.UpdateConfig(func(c *Config) error { c.AutoWake = true; return nil }); err == nil || readConfigFile(t, home) != text {
			t.Errorf("%q was changed (%v): %q", text, err, readConfigFile(t, home))
		}
	}
}

func TestRWM_12_SettingsBehindAByteOrderMark(t *testing.T) {
	home := newHome(t)
	writeConfig(t, home, "\ufeff{\"jobs\": {\"maxJobs\": 3}}\r\n")
	before, err := home.Config()
	if err != nil || before.Jobs.MaxJobs != 3 {
		t.Fatalf("got %+v, %v", before.Jobs, err)
	}
	for _, port := range []int{4000, 5000} {
		after, err := home.UpdateConfig(func(c *Config) error { c.Port = port; return nil })
		if err != nil || after.Port != port || after.Jobs.MaxJobs != 3 {
			t.Fatalf("got %+v, %v", after, err)
		}
		if got := readConfigFile(t, home); !strings.HasPrefix(got, "\ufeff{") || strings.Count(got, "\ufeff") != 1 {
			t.Errorf("the file holds %q", got)
		}
		if again, err := home.Config(); err != nil || again.Port != port {
			t.Errorf("read again: %+v, %v", again, err)
		}
	}
}

func TestRWM_12_StoresBehindAByteOrderMark(t *testing.T) {
	home := newHome(t)
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(home.Dir(), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(AutoWakeStore, "\ufeff{\"version\": 1, \"sessions\": {}}\r\n")
	put(NeedsStore, "\ufeff{\"version\": 1, \"putAway\": [\"a\"]}\r\n")
	shared := Shared{Home: home, Now: time.Now}
	if _, err := shared.ReadAutoWake(); err != nil {
		t.Errorf("%s: %v", AutoWakeStore, err)
	}
	if stored, err := (NeedsFile{home}).PutAway(); err != nil || len(stored.IDs) != 1 {
		t.Errorf("%s: %+v, %v", NeedsStore, stored, err)
	}
	put(AutoWakeStore, "{\"version\": 1,\n\"version\": 1}")
	put(NeedsStore, "{\"version\": 1,\n\"version\": 1}")
	if _, err := shared.ReadAutoWake(); bridge.CodeOf(err) != bridge.Storage {
		t.Errorf("%s with a member twice: %v", AutoWakeStore, err)
	}
	if _, err := (NeedsFile{home}).PutAway(); bridge.CodeOf(err) != bridge.Storage {
		t.Errorf("%s with a member twice: %v", NeedsStore, err)
	}
}

func TestRWM_13_SettingsBehindALinkStayThere(t *testing.T) {
	home := newHome(t)
	dotfile := filepath.Join(t.TempDir(), "bridge.json")
	if err := os.WriteFile(dotfile, []byte("{\"port\": 4000}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dotfile, home.ConfigFile()); err != nil {
		t.Skip("no links here")
	}
	if _, err := home.UpdateConfig(func(c *Config) error { c.Port = 5000; return nil }); err != nil {
		t.Fatal(err)
	}
	target, err := os.Readlink(home.ConfigFile())
	if data, readErr := os.ReadFile(dotfile); err != nil || readErr != nil || target != dotfile || !strings.Contains(string(data), "5000") {
		t.Errorf("the link leads to %q (%v), and the file holds %s (%v)", target, err, data, readErr)
	}
	if err := os.Remove(dotfile); err != nil {
		t.Fatal(err)
	}
	if _, err := home.UpdateConfig(func(c *Config) error { c.Port = 6000; return nil }); bridge.CodeOf(err) != bridge.Storage {
		t.Errorf("behind a link to nowhere: %v", err)
	}
	if target, err := os.Readlink(home.ConfigFile()); err != nil || target != dotfile {
		t.Errorf("the link to nowhere is gone: %q, %v", target, err)
	}
}

func TestRWM_13_SettingsWithAHardLinkKeepIt(t *testing.T) {
	home := newHome(t)
	writeConfig(t, home, "{\"port\": 4000}\n")
	other := filepath.Join(home.Dir(), "other")
	if err := os.Link(home.ConfigFile(), other); err != nil {
		t.Skip("no hard links here")
	}
	if _, err := home.UpdateConfig(func(c *Config) error { c.Port = 5000; return nil }); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(other); err != nil || string(data) != readConfigFile(t, home) || !strings.Contains(string(data), "5000") {
		t.Errorf("by its other name it holds %s (%v)", data, err)
	}
}
