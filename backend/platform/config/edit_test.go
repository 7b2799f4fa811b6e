package config

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
)

func TestRMT_06_AFileThatChangedIsNotOverwritten(t *testing.T) {
	home := newHome(t)
	file := File{home}
	enable := func(c *Config) error { c.Network.Enabled = true; return nil }
	_, none, err := file.Read()
	if err != nil {
		t.Fatal(err)
	}
	writeConfig(t, home, `{"theirs":1}`)
	if _, err := file.Plan(none, enable); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("a file that came meanwhile: %v", err)
	}
	_, revision, err := file.Read()
	if err != nil {
		t.Fatal(err)
	}
	edit, err := file.Plan(revision, enable)
	if err != nil || edit.Before.Network.Enabled || !edit.After.Network.Enabled {
		t.Fatalf("the plan: %+v, %v", edit, err)
	}
	if got := readConfigFile(t, home); got != `{"theirs":1}` {
		t.Errorf("a plan wrote %s", got)
	}
	writeConfig(t, home, `{"theirs":2}`)
	if err := edit.Save(); bridge.CodeOf(err) != bridge.Conflict || readConfigFile(t, home) != `{"theirs":2}` {
		t.Errorf("saved over another's edit: %v, %s", err, readConfigFile(t, home))
	}
	if err := os.Remove(home.ConfigFile()); err != nil {
		t.Fatal(err)
	}
	if err := edit.Save(); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("saved over a file that was taken away: %v", err)
	}
	writeConfig(t, home, `{"theirs":1}`)
	if err := edit.Save(); err != nil || !strings.Contains(readConfigFile(t, home), "theirs") {
		t.Errorf("put back as it was: %v, %s", err, readConfigFile(t, home))
	}
	if _, again, _ := file.Read(); again == revision {
		t.Error("another file has the same revision")
	}
}

// However a file is laid out, it can be changed: to lay it out anew is no change by
// somebody else.
func TestAFileOfAnyLayoutIsChanged(t *testing.T) {
	for _, text := range []string{
		"", "{}", "{\n  \"theirs\": [1]\n}\n", "{\n\t\"theirs\": [\n\t\t1\n\t]\n}", "{\r\n    \"theirs\" : [ 1 ]\r\n}\r\n", "\n\n{ \"theirs\":[1] ,\n\n\"port\":4000}  \n",
	} {
		home := newHome(t)
		if text != "" {
			writeConfig(t, home, text)
		}
		_, err := home.UpdateConfig(func(c *Config) error { c.Desktop.Notifications = false; return nil })
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		after, err := home.Config()
		if err != nil || after.Desktop.Notifications || strings.Contains(text, "theirs") != strings.Contains(readConfigFile(t, home), "theirs") {
			t.Errorf("%q has become %q, %v", text, readConfigFile(t, home), err)
		}
	}
}

// A change leaves the blanks and line ends of the rest as they are.
func TestPRF_07_AChangeKeepsIndentationAndLineEnds(t *testing.T) {
	for name, tt := range map[string]struct{ before, after string }{
		"tabs":            {"{\n\t\"away\": false,\n\t\"desktop\": {\n\t\t\"theirs\": 1\n\t}\n}\n", "{\n\t\"away\": true,\n\t\"desktop\": {\n\t\t\"theirs\": 1\n\t}\n}\n"},
		"two blanks":      {"{\n  \"away\": false,\n  \"desktop\": {\n    \"theirs\": 1\n  }\n}\n", "{\n  \"away\": true,\n  \"desktop\": {\n    \"theirs\": 1\n  }\n}\n"},
		"CRLF":            {"{\r\n    \"away\": false,\r\n    \"theirs\": 1\r\n}\r\n", "{\r\n    \"away\": true,\r\n    \"theirs\": 1\r\n}\r\n"},
		"tabs in a value": {"{\n  \"away\": false,\n  \"theirs\": \"\\ta\"\n}\n", "{\n  \"away\": true,\n  \"theirs\": \"\\ta\"\n}\n"},
	} {
		home := newHome(t)
		writeConfig(t, home, tt.before)
		if _, err := home.UpdateConfig(func(c *Config) error { c.Away = true; return nil }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := regexp.MustCompile(`: +`).ReplaceAllString(readConfigFile(t, home), ": "); got != tt.after {
			t.Errorf("%s: %q has become %q", name, tt.before, got)
		}
		if err := (File{home}).SetMember("maxHops", "9"); err != nil {
			t.Errorf("%s: set: %v", name, err)
		}
		if got := readConfigFile(t, home); strings.Contains(got, "\r\n") != strings.Contains(tt.before, "\r\n") || strings.Contains(got, "\n\t") != strings.Contains(tt.before, "\n\t") {
			t.Errorf("%s: after a set: %q", name, got)
		}
	}
}

func TestRMT_06_AnEditThatChangesNothingConflictsWithNothing(t *testing.T) {
	home := newHome(t)
	writeConfig(t, home, `{}`)
	_, revision, err := File{home}.Read()
	if err != nil {
		t.Fatal(err)
	}
	edit, err := File{home}.Plan(revision, func(*Config) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	writeConfig(t, home, `{"port":1}`)
	if err := edit.Save(); err != nil || readConfigFile(t, home) != `{"port":1}` {
		t.Errorf("%v, %s", err, readConfigFile(t, home))
	}
}

func TestRMT_06_ANameIsTakenOutEverywhere(t *testing.T) {
	both := Sharing{AllowPeers: []string{"desk", "nas"}}
	n := Network{RemoteJobs: remote.RemoteJobs{AllowPeers: []string{"nas", "desk"}}, Messages: both, Decisions: both, Dashboard: both, Files: remote.Files{AllowPeers: both.AllowPeers, MaxBytes: 7}}
	if got := n.Names(); !slices.Equal(got, []string{"desk", "nas"}) {
		t.Errorf("named are %v", got)
	}
	if got := n.Without("desk").Names(); !slices.Equal(got, []string{"nas"}) {
		t.Errorf("without desk there are %v", got)
	}
	if got := n.Names(); !slices.Equal(got, []string{"desk", "nas"}) {
		t.Errorf("the settings before are written into: %v", got)
	}
}
