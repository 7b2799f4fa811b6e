package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
)

// commented is a file as people write it.
const commented = "// mine\n{\n\t\"port\": 4000, // the page\n\t/* not too many */\n\t\"jobs\": {\n\t\t\"maxJobs\": 3,\n\t},\n\t\"theirs\": 1, // kept\n}\n"

func TestDOC_11_SettingsKeepTheirComments(t *testing.T) {
	home := newHome(t)
	writeConfig(t, home, commented)
	before, err := home.Config()
	if err != nil || before.Port != 4000 || before.Jobs.MaxJobs != 3 {
		t.Fatalf("%+v, %v", before, err)
	}
	if _, err := home.UpdateConfig(func(c *Config) error { c.Port, c.Backups.Auto = 5000, true; return nil }); err != nil {
		t.Fatal(err)
	}
	file := File{home}
	if err := file.SetMember("jobs.maxJobs", "4"); err != nil {
		t.Fatal(err)
	}
	text := readConfigFile(t, home)
	for _, part := range []string{"// mine", "// the page", "/* not too many */", ", // kept", "5000", `"maxJobs": 4`} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is gone:\n%s", part, text)
		}
	}
	after, err := home.Config()
	if err != nil || after.Port != 5000 || after.Jobs.MaxJobs != 4 || !after.Backups.Auto {
		t.Errorf("%+v, %v", after, err)
	}
}

func TestDOC_11_UnknownMembersAreNamed(t *testing.T) {
	home := newHome(t)
	writeConfig(t, home, `{
  "$schema": "x", "prot": 1,
  "jobs": {"maxjobs": 3, "env": {"ANY": "x"}},
  "maxAccess": "read",
  "agents": {"cluade": {}, "codex": {"bni": "x"}, "acp": {"goose": {"command": "goose"}}},
  "zzz": 1
}`)
	got, err := File{home}.Unknown()
	want := []UnknownMember{
		{"prot", 2, "port"},
		{"jobs.maxjobs", 3, "jobs.maxJobs"},
		{"maxAccess", 4, "jobs.maxAccess"},
		{"agents.cluade", 5, "agents.claude"},
		{"agents.codex.bni", 5, "agents.codex.bin"},
		{"zzz", 6, ""},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if text := got[0].Text(); text != `line 2: "prot" is not a setting. Did you mean "port"?` {
		t.Error(text)
	}
	writeConfig(t, home, commented)
	if got, err := (File{home}).Unknown(); err != nil || len(got) != 1 || got[0] != (UnknownMember{"theirs", 8, ""}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestDOC_11_AMemberIsSetShownAndTakenOut(t *testing.T) {
	home := newHome(t)
	file := File{home}
	for _, tt := range []struct{ key, value, want string }{
		{"port", "4801", "4801"},
		{"name", "desk", `"desk"`},
		{"name", "1234", `"1234"`},
		{"backups.auto", "true", "true"},
		{"agents.codex.bin", "/usr/bin/codex", `"/usr/bin/codex"`},
		{"jobs.env", `{"A": "b", "C": null}`, `{"A":"b","C":null}`},
		{"jobs.env.D", "e", `"e"`},
		{"jobs.writable", `["~/.m2"]`, `["~/.m2"]`},
		{"answerPrompts", "away", `"away"`},
		{"agents.acp.goose", `{"command": "goose"}`, `{"command":"goose"}`},
		{"desktop.quiet.from", "", `null`},
	} {
		if tt.value != "" {
			if err := file.SetMember(tt.key, tt.value); err != nil {
				t.Errorf("%s: %v", tt.key, err)
			}
		}
		if got, err := file.Member(tt.key); err != nil || string(got) != tt.want {
			t.Errorf("%s is %s, %v, want %s", tt.key, got, err, tt.want)
		}
	}
	for _, key := range []string{"port", "agents.codex.bin", "jobs.env.D"} {
		if err := file.UnsetMember(key); err != nil {
			t.Errorf("unset %s: %v", key, err)
		}
		if err := file.UnsetMember(key); bridge.CodeOf(err) != bridge.NotFound {
			t.Errorf("unset %s twice: %v", key, err)
		}
	}
	if config, err := home.Config(); err != nil || config.Port != DefaultPort || len(config.Jobs.Env) != 2 || config.Name != "1234" {
		t.Errorf("%+v, %v", config, err)
	}
	before := readConfigFile(t, home)
	for _, tt := range []struct{ key, value, want string }{
		{"prot", "1", `there is no setting "prot". Did you mean port?`},
		{"jobs.maxjob", "1", "Did you mean jobs.maxJobs?"},
		{"port", "70000", "port must be between 0 and 65535"},
		{"port", "many", "port must be a whole number, not a string"},
		{"jobs", "{}", "jobs has members: set one of jobs.allowToolLevelOnly"},
		{"port.x", "1", "there is no setting"},
	} {
		if err := file.SetMember(tt.key, tt.value); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s = %s: %v, want %s", tt.key, tt.value, err, tt.want)
		}
	}
	if got := readConfigFile(t, home); got != before {
		t.Errorf("a refused change wrote\n%s", got)
	}
}

// Names of other programs' members may have any character.
func TestDOC_11_AMemberIsTakenOutByItsExactName(t *testing.T) {
	home := newHome(t)
	writeConfig(t, home, `{"a/b": 1, "a~1b": 2, "a~b": 3, "a": {"b": 4}}`)
	for _, tt := range []struct{ key, want string }{
		{"a/b", `{"a~1b": 2, "a~b": 3, "a": {"b": 4}}`},
		{"a~b", `{"a~1b": 2, "a": {"b": 4}}`},
		{"a~1b", `{"a": {"b": 4}}`},
	} {
		if err := (File{home}).UnsetMember(tt.key); err != nil {
			t.Errorf("%s: %v", tt.key, err)
		}
		if got := strings.Join(strings.Fields(readConfigFile(t, home)), " "); got != tt.want {
			t.Errorf("without %s it is %s, want %s", tt.key, got, tt.want)
		}
	}
}

// Each setting has a value in force or none, and can be asked for.
func TestDOC_11_EachMemberCanBeAskedFor(t *testing.T) {
	file := File{newHome(t)}
	for _, key := range Members() {
		if value, err := file.Member(key); err != nil || len(value) == 0 {
			t.Errorf("%s: %s, %v", key, value, err)
		}
	}
}

func TestDOC_11_VariablesWinOverTheSettingsOfBackups(t *testing.T) {
	home := newHome(t)
	writeConfig(t, home, `{"backups": {"auto": true, "everyHours": 2, "keep": 3}}`)
	for _, tt := range []struct {
		auto, interval, keep string
		want                 string
	}{
		{"", "", "", "true 2h0m0s 3"}, {"0", "", "", "false 2h0m0s 3"}, {"1", "1000", "9", "true 1s 9"}, {"yes", "x", "-1", "true 2h0m0s 3"},
	} {
		settings, err := home.Settings(func(name string) string {
			return map[string]string{"BRIDGE_AUTO_BACKUP": tt.auto, "BRIDGE_BACKUP_INTERVAL_MS": tt.interval, "BRIDGE_BACKUP_RETENTION": tt.keep}[name]
		})
		if got := strings.TrimSpace(strings.Join([]string{boolText(settings.AutoBackup), settings.BackupInterval.String(), string(rune('0' + settings.BackupRetention))}, " ")); err != nil || got != tt.want {
			t.Errorf("%+v: %s, %v, want %s", tt, got, err, tt.want)
		}
	}
}

func boolText(on bool) string {
	if on {
		return "true"
	}
	return "false"
}

func TestDOC_10_AnUnusableValueOfAVariableIsNamed(t *testing.T) {
	for _, tt := range []struct{ variable, want string }{
		{"BRIDGE_PORT=abc", `BRIDGE_PORT is "abc": it must be a number from 0 to 65535`},
		{"BRIDGE_PORT=65536", `BRIDGE_PORT is "65536": it must be a number from 0 to 65535`},
		{"BRIDGE_PORT=0", ""},
		{"BRIDGE_PORT=", ""},
		{"BRIDGE_AUTO_BACKUP=yes", `BRIDGE_AUTO_BACKUP is "yes": it must be 0 or 1`},
		{"BRIDGE_AUTO_BACKUP=1", ""},
		{"BRIDGE_BACKUP_RETENTION=-1", `BRIDGE_BACKUP_RETENTION is "-1": it must be a number of backups`},
		{"BRIDGE_BACKUP_RETENTION=0", ""},
		{"BRIDGE_ARCHIVE_AGE_MS=30d", `BRIDGE_ARCHIVE_AGE_MS is "30d": it must be a number of milliseconds`},
		{"BRIDGE_MESSAGE_TTL_MS=99999999999999999999", `BRIDGE_MESSAGE_TTL_MS is "99999999999999999999": it must be a number of milliseconds`},
		{"BRIDGE_MESSAGE_TTL_MS=9000000000000000000", ""}, // capped at 292 years
		{"BRIDGE_LOG_LEVEL=loud", `BRIDGE_LOG_LEVEL is "loud": it must be debug, info, warn or error`},
		{"BRIDGE_LOG_LEVEL=WARN", ""},
		{"BRIDGE_PROVE=never", `BRIDGE_PROVE is "never": it must be auto or off`},
		{"BRIDGE_PROVE=auto", ""},
		{"OTHER_PORT=abc", ""},
	} {
		got := strings.Join(InvalidVariables([]string{tt.variable}), "\n")
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.variable, got, tt.want)
		}
	}
}

func TestDOC_10_AMisspeltVariableIsNamed(t *testing.T) {
	got := MisspeltVariables([]string{"PATH=/bin", "BRIDGE_PORT=1", "BRIDGE_PROT=1", "bridge_home=x", "BRIDGE_SOMETHING_ELSE=1", "BRIDGE_CLAUD_BIN=/x", "BRIDGE_ARCHIVE=1"})
	want := []string{
		"BRIDGE_ARCHIVE is no variable of Bridge. Did you mean BRIDGE_ARCHIVE_AGE_MS?",
		"BRIDGE_CLAUD_BIN is no variable of Bridge. Did you mean BRIDGE_CLAUDE_BIN?",
		"BRIDGE_PROT is no variable of Bridge. Did you mean BRIDGE_PORT?",
		"bridge_home is no variable of Bridge. Did you mean BRIDGE_HOME?",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
