package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bridge/backend/core/bridge"
	"bridge/backend/testing/testkit"
)

// variables gives a getenv of these NAME, value pairs.
func variables(pairs ...string) func(string) string {
	values := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return values[name] }
}

func newHome(t *testing.T) Home {
	t.Helper()
	home, err := ResolveHome(filepath.Join(t.TempDir(), "home"), variables())
	if err != nil {
		t.Fatal(err)
	}
	if err := home.Ensure(); err != nil {
		t.Fatal(err)
	}
	return home
}

func writeConfig(t *testing.T, home Home, text string) {
	t.Helper()
	if err := os.WriteFile(home.ConfigFile(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readConfigFile(t *testing.T, home Home) string {
	t.Helper()
	data, err := os.ReadFile(home.ConfigFile())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestResolveHomePrefersFlagThenVariable(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	getenv := variables(userHomeVariable, root, "BRIDGE_HOME", filepath.Join(root, "variable"))
	tests := []struct {
		name, flag string
		getenv     func(string) string
		want       string
		isDefault  bool
	}{
		{name: "the flag wins", flag: filepath.Join(root, "flag"), getenv: getenv, want: filepath.Join(root, "flag")},
		{name: "then the variable", getenv: getenv, want: filepath.Join(root, "variable")},
		{name: "else ~/.bridge", getenv: variables(userHomeVariable, root), want: filepath.Join(root, ".bridge"), isDefault: true},
		{name: "the default by its full name", flag: filepath.Join(root, "x", "..", ".bridge"), getenv: getenv, want: filepath.Join(root, ".bridge"), isDefault: true},
		{name: "a tilde that no shell expanded", flag: "~/mine", getenv: getenv, want: filepath.Join(root, "mine")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			home, err := ResolveHome(tt.flag, tt.getenv)
			if err != nil || home.Dir() != tt.want || home.IsDefault() != tt.isDefault {
				t.Errorf("ResolveHome = %q default=%v, %v; want %q default=%v", home.Dir(), home.IsDefault(), err, tt.want, tt.isDefault)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(root, ".bridge")); !os.IsNotExist(err) {
		t.Error("ResolveHome made a folder")
	}
}

func TestMSG_02_TokenIsMadeOnceAndStaysPrivate(t *testing.T) {
	home := newHome(t)
	if _, err := home.ExistingToken(); bridge.CodeOf(err) != bridge.NotFound {
		t.Errorf("ExistingToken before any = %v, want NotFound", err)
	}
	var wg sync.WaitGroup
	got := make([]Secret, 16)
	for i := range got {
		wg.Go(func() {
			token, err := home.Token()
			if err != nil {
				t.Error(err)
			}
			got[i] = token
		})
	}
	wg.Wait()
	for _, token := range got {
		if token != got[0] || len(token) < minSecretChars {
			t.Fatalf("racing processes got different tokens: %q and %q", string(token), string(got[0]))
		}
	}
	launch, err := home.LaunchSecret()
	if err != nil || launch == got[0] {
		t.Errorf("launch secret = token, or error %v", err)
	}
	for _, path := range []string{home.TokenFile(), home.LaunchSecretFile()} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != testkit.Mode(0o600) {
			t.Errorf("%s: mode %v, %v; want 0600", path, info.Mode(), err)
		}
	}
	if err := os.Chmod(home.TokenFile(), 0o644); err != nil {
		t.Fatal(err)
	}
	if token, err := home.Token(); err != nil || token != got[0] {
		t.Errorf("Token again = %v", err)
	}
	if info, err := os.Stat(home.TokenFile()); err != nil || info.Mode().Perm() != testkit.Mode(0o600) {
		t.Errorf("an opened-up token stayed open: %v, %v", info.Mode(), err)
	}
}

// On Windows a missing folder and a file in its place give the same error.
func TestPRF_07_AMissingHomeIsNoFile(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, code := range map[string]bridge.Code{"missing": bridge.NotFound, filepath.Join("missing", "too"): bridge.NotFound, "file": bridge.Invalid} {
		home, err := ResolveHome(filepath.Join(folder, name), variables())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := home.ExistingToken(); bridge.CodeOf(err) != code {
			t.Errorf("%s: the token: %v, want %s", name, err, code)
		}
		config, err := home.Config()
		if isFile := code == bridge.Invalid; bridge.CodeOf(err) == bridge.Invalid != isFile || !isFile && config.Port != DefaultPort {
			t.Errorf("%s: the settings: %+v, %v", name, config, err)
		}
	}
}

func TestADamagedTokenIsNamedAndKept(t *testing.T) {
	for _, damage := range []string{"", "short\n", "two words that are long enough", strings.Repeat("x", maxSecretChars+1)} {
		home := newHome(t)
		if err := os.WriteFile(home.TokenFile(), []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := home.Token()
		if err == nil || !strings.Contains(err.Error(), home.TokenFile()) {
			t.Errorf("token %q: error = %v, want one that names the file", damage, err)
		}
		if data, err := os.ReadFile(home.TokenFile()); err != nil || string(data) != damage {
			t.Errorf("token %q was changed to %q, %v", damage, data, err)
		}
	}
}

func TestAUT_03_SecretsDoNotPrint(t *testing.T) {
	secret := Secret("the-real-value-of-it")
	encoded, err := json.Marshal(map[string]any{"token": secret})
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "token", secret)
	for _, text := range []string{fmt.Sprint(secret), fmt.Sprintf("%v %s %q %#v %+v", secret, secret, secret, secret, secret), string(encoded), log.String()} {
		if strings.Contains(text, string(secret)) {
			t.Errorf("the secret shows in %s", text)
		}
	}
}

// told compares what settings tell.
var told = cmpopts.IgnoreUnexported(Jobs{})

func TestConfigDefaults(t *testing.T) {
	got, err := newHome(t).Config()
	want := Config{
		Version: 1, Port: 4777, WakeOnDirect: true, MaxHops: 6, Mail: Mail{WakesPerHour: 30, SecondsBetweenWakes: 60, Exchange: 8}, Agents: map[bridge.AgentKind]Agent{}, Desktop: Desktop{Notifications: true}, Claude: Claude{StatusLine: true},
		Jobs: Jobs{Enabled: true, MaxJobs: 8, MaxAccess: "edit", MaxDelegateDepth: 2, MaxLogBytes: 1 << 30, MaxProcesses: 4096}, Network: Network{Port: 4778}, AnswerPrompts: "off",
		Backups: Backups{EveryHours: 24, Keep: 7}, Prove: ProveAuto,
	}
	if diff := cmp.Diff(want, got, told); diff != "" || err != nil {
		t.Errorf("error %v, difference:\n%s", err, diff)
	}
}

func TestConfigNamesTheBadValue(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{name: "a number out of bounds", text: `{"maxHops": 101}`, want: "maxHops must be between 0 and 100, not 101"},
		{name: "a negative number", text: `{"maxHops": -1}`, want: "maxHops must be between 0 and 100, not -1"},
		{name: "QUI-03 wakes below none", text: `{"mail": {"wakesPerHour": -1}}`, want: "mail.wakesPerHour must be between 0 and 3600, not -1"},
		{name: "QUI-03 too many wakes", text: `{"mail": {"wakesPerHour": 3601}}`, want: "mail.wakesPerHour must be between 0 and 3600, not 3601"},
		{name: "QUI-03 a negative time", text: `{"mail": {"secondsBetweenWakes": -1}}`, want: "mail.secondsBetweenWakes must be between 0 and 3600, not -1"},
		{name: "QUI-03 too long a time", text: `{"mail": {"secondsBetweenWakes": 3601}}`, want: "mail.secondsBetweenWakes must be between 0 and 3600, not 3601"},
		{name: "QUI-02 an exchange below none", text: `{"mail": {"exchange": -1}}`, want: "mail.exchange must be between 0 and 1000, not -1"},
		{name: "QUI-02 too long an exchange", text: `{"mail": {"exchange": 1001}}`, want: "mail.exchange must be between 0 and 1000, not 1001"},
		{name: "a port out of bounds", text: `{"port": 70000}`, want: "port must be between 0 and 65535, not 70000"},
		{name: "a text for a switch", text: `{"autoWake": "yes"}`, want: "autoWake must be true or false, not a string"},
		{name: "RMT-06 a link port out of bounds", text: `{"network": {"port": -1}}`, want: "network.port must be between 0 and 65535, not -1"},
		{name: "RMT-06 a relative root", text: `{"network": {"remoteJobs": {"allowRoots": ["src"]}}}`, want: `network.remoteJobs.allowRoots must be absolute folders: "src" is not`},
		{name: "RMT-06 an unknown agent", text: `{"network": {"remoteJobs": {"agents": ["acp"]}}}`, want: `there are no remote jobs of "acp"`},
		{name: "RMT-06 a peer that cannot be", text: `{"network": {"remoteJobs": {"allowPeers": ["*"]}}}`, want: "network.remoteJobs.allowPeers: a PC's name has letters"},
		{name: "RMT-06 a name to listen at", text: `{"network": {"listen": ["everywhere"]}}`, want: `not "everywhere"`},
		{name: "HUB-02 a seal that is no switch", text: `{"network": {"hub": {"seal": "yes"}}}`, want: "network.hub.seal must be true or false, not a string"},
		{name: "RMT-06 text instead of a switch", text: `{"network": {"enabled": "yes"}}`, want: "network.enabled must be true or false, not a string"},
		{name: "a fraction", text: `{"port": 1.5}`, want: "port must be a whole number, not a number 1.5"},
		{name: "a nested member", text: `{"agents": {"claude": {"bin": 7}}}`, want: "agents.claude.bin must be a string, not a number"},
		{name: "a name", text: `{"name": "a b"}`, want: "name: the name \"a b\" holds"},
		{name: "a version that is none", text: `{"version": "x"}`, want: `version must be a whole number from 1, not "x"`},
		{name: "no jobs at once", text: `{"jobs": {"maxJobs": 0}}`, want: "jobs.maxJobs must be between 1 and 50, not 0"},
		{name: "RWM-22 a folder of no place", text: `{"jobs": {"writable": ["~/.m2", "cache"]}}`, want: `jobs.writable must list absolute folders or folders below ~/, not "cache"`},
		{name: "SEC-08 a job without room for processes", text: `{"jobs": {"maxProcesses": 8}}`, want: "jobs.maxProcesses must be at least 64, not 8"},
		{name: "SEC-11 a log without room", text: `{"jobs": {"maxLogBytes": 1000}}`, want: "jobs.maxLogBytes must be at least 1048576, not 1000"},
		{name: "too many jobs at once", text: `{"jobs": {"maxJobs": 51}}`, want: "jobs.maxJobs must be between 1 and 50, not 51"},
		{name: "an unknown access", text: `{"jobs": {"maxAccess": "full"}}`, want: `jobs.maxAccess: unknown access "full": use read, ask or edit`},
		{name: "no access", text: `{"jobs": {"maxAccess": ""}}`, want: "jobs.maxAccess: unknown access"},
		{name: "jobs that delegate too deep", text: `{"jobs": {"maxDelegateDepth": 4}}`, want: "jobs.maxDelegateDepth must be between 1 and 3, not 4"},
		{name: "a variable with its value", text: `{"jobs": {"environment": ["KEY=secret"]}}`, want: `jobs.environment must hold names of variables without their values`},
		{name: "JOB-28 a number for a variable", text: `{"jobs": {"env": {"KEY": 1}}}`, want: "jobs.env.KEY must be a string, not a number"},
		{name: "JOB-28 a list of variables", text: `{"jobs": {"env": ["KEY"]}}`, want: "jobs.env must be a JSON object"},
		{name: "JOB-28 a variable without a name", text: `{"jobs": {"env": {"": "x"}}}`, want: `jobs.env must have names of variables, not ""`},
		{name: "JOB-28 a name with its value", text: `{"jobs": {"env": {"A=B": "x"}}}`, want: `jobs.env must have names of variables, not "A=B"`},
		{name: "JOB-28 a job's own mark", text: `{"jobs": {"env": {"bridge_job": "x"}}}`, want: `jobs.env must not have "bridge_job"`},
		{name: "JOB-28 a zero byte", text: `{"jobs": {"env": {"KEY": "a\u0000b"}}}`, want: "jobs.env.KEY holds a zero byte"},
		{name: "JOB-28 a value that no system takes", text: `{"jobs": {"env": {"KEY": "` + strings.Repeat("x", 65_537) + `"}}}`, want: "jobs.env.KEY has 65537 bytes, and a variable may have 65536"},
		{name: "a variable of Bridge", text: `{"jobs": {"environment": ["BRIDGE_JOB_TOKEN"]}}`, want: `jobs.environment must not hold "BRIDGE_JOB_TOKEN"`},
		{name: "a set-up of nothing", text: `{"jobs": {"setUp": [" "]}}`, want: "jobs.setUp must begin with a program"},
		{name: "a set-up in one text", text: `{"jobs": {"setUp": "make"}}`, want: "jobs.setUp must be a "},
		{name: "a switch of jobs", text: `{"jobs": {"enabled": 1}}`, want: "jobs.enabled must be true or false, not a number"},
		{name: "half a file", text: `{"port": 1`, want: "the file ends too early"},
		{name: "an empty file", text: ``, want: "the file is empty"},
		{name: "a list", text: `[]`, want: "it is not a JSON object"},
		{name: "null", text: `null`, want: "it is not a JSON object"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			home := newHome(t)
			writeConfig(t, home, tt.text)
			_, err := home.Config()
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), home.ConfigFile()) {
				t.Errorf("error = %v\nwant the file's name and %q", err, tt.want)
			}
			if _, err := home.UpdateConfig(func(c *Config) error { c.Port = 1; return nil }); err == nil {
				t.Error("UpdateConfig of a bad file = nil")
			}
			if got := readConfigFile(t, home); got != tt.text {
				t.Errorf("the file was changed to %q", got)
			}
		})
	}
}

// What is wrong with jobs alone keeps nothing else from being read, and allows no job.
func TestJOB_26_WrongSettingsOfJobsRefuseJobsAlone(t *testing.T) {
	for text, want := range map[string]string{
		`{"maxAccess": "root"}`:                  `jobs.maxAccess: unknown access "root"`,
		`{"maxAccess": ["edit"]}`:                "jobs.maxAccess must be a string",
		`{"maxAccess": 7, "enabled": true}`:      "jobs.maxAccess must be a string",
		`{"env": {"KEY": 1}}`:                    "jobs.env.KEY must be a string",
		`{"env": {"": "x"}}`:                     "jobs.env must have names",
		`"on"`:                                   "jobs must be a JSON object, not a string",
		`{"maxJobs": 0, "maxAccess": "edit"}`:    "jobs.maxJobs must be between",
		`{"enabled": true, "maxAccess": "full"}`: "jobs.maxAccess",
	} {
		home := newHome(t)
		for _, member := range []string{"jobs", "Jobs"} {
			writeConfig(t, home, `{"maxHops": 3, "`+member+`": `+text+`, "autoWake": true}`)
			settings, err := home.Settings(func(string) string { return "" })
			if err != nil || settings.MaxHops != 3 || !settings.AutoWake {
				t.Errorf("%s: Settings = %+v, %v", text, settings, err)
			}
			if problem := settings.Jobs.Problem(); bridge.CodeOf(problem) != bridge.Invalid || !strings.Contains(problem.Error(), want) || !strings.Contains(problem.Error(), "config.json") {
				t.Errorf("%s: the problem is %v, want %s", text, problem, want)
			}
			if settings.Jobs.Enabled || settings.Jobs.MaxAccess != "" {
				t.Errorf("%s allows %+v", text, settings.Jobs)
			}
			if _, err := home.Config(); err == nil {
				t.Errorf("%s is no error of the file", text)
			}
			if _, err := home.UpdateConfig(func(c *Config) error { c.MaxHops = 4; return nil }); err == nil {
				t.Errorf("%s: the file was changed", text)
			}
		}
	}
	home := newHome(t)
	writeConfig(t, home, `{"port": -1, "jobs": {"maxAccess": "root"}}`)
	if _, err := home.Settings(func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), "port") {
		t.Errorf("another wrong value beside it: %v", err)
	}
}

func TestVER_06_ANewerConfigIsRefusedUnchanged(t *testing.T) {
	home := newHome(t)
	const newer = `{"version": 2, "port": {"was": "a number once"}}`
	writeConfig(t, home, newer)
	_, err := home.Config()
	if bridge.CodeOf(err) != bridge.Unsupported || !strings.Contains(err.Error(), "written by a newer Bridge") {
		t.Errorf("Config = %v, want a clear refusal", err)
	}
	_, err = home.UpdateConfig(func(c *Config) error { c.AutoWake = true; return nil })
	if bridge.CodeOf(err) != bridge.Unsupported {
		t.Errorf("UpdateConfig = %v, want the refusal", err)
	}
	if got := readConfigFile(t, home); got != newer {
		t.Errorf("the file was changed to %q", got)
	}
}

func TestUpdateConfigKeepsWhatItDoesNotKnow(t *testing.T) {
	home := newHome(t)
	writeConfig(t, home, `{
		"zebra": {"deep": [1, 2.50, null]},
		"autoWake": false,
		"agents": {"claude": {"model": "x", "bin": "/old"}, "other": {"a": 1}},
		"big": 12345678901234567890
	}`)
	after, err := home.UpdateConfig(func(c *Config) error {
		c.AutoWake = true
		c.MaxHops = 3
		c.Agents[bridge.Claude] = Agent{Bin: "/new"}
		c.Agents[bridge.Codex] = Agent{Bin: "/codex"}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := home.Config(); err != nil || cmp.Diff(after, again, told) != "" {
		t.Errorf("what was returned is not what is stored: %v\n%s", err, cmp.Diff(after, again, told))
	}
	text := readConfigFile(t, home)
	want := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	for _, kept := range []string{`"deep": [1, 2.50, null]`, `"big": 12345678901234567890`, `"model": "x"`, `"other": {"a": 1}`, `"bin": "/new"`, `"bin":"/codex"`} {
		if !strings.Contains(withoutSpace(text), withoutSpace(kept)) {
			t.Errorf("%s is missing in\n%s", kept, text)
		}
	}
	if strings.Index(text, "zebra") > strings.Index(text, "autoWake") {
		t.Errorf("the order of the members changed:\n%s", text)
	}
	if _, written := want["wakeOnDirect"]; written {
		t.Errorf("a default that nobody set was written:\n%s", text)
	}
}

func withoutSpace(text string) string { return strings.Join(strings.Fields(text), "") }

func TestUpdateConfigWritesNothingWithoutNeed(t *testing.T) {
	home := newHome(t)
	if _, err := home.UpdateConfig(func(c *Config) error { c.AutoWake = false; return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(home.ConfigFile()); !os.IsNotExist(err) {
		t.Errorf("a file was made for the defaults: %v", err)
	}
	_, err := home.UpdateConfig(func(c *Config) error { c.MaxHops = 1000; return nil })
	if bridge.CodeOf(err) != bridge.Invalid || !strings.Contains(err.Error(), "maxHops") {
		t.Errorf("a bad value: %v, want Invalid that names it", err)
	}
	if _, err := os.Stat(home.ConfigFile()); !os.IsNotExist(err) {
		t.Errorf("a bad value was stored: %v", err)
	}
}

func TestMSG_07_MaxHopsDefaultsToSix(t *testing.T) {
	home := newHome(t)
	if config, err := home.Config(); err != nil || config.MaxHops != 6 {
		t.Errorf("maxHops = %d, %v; want 6", config.MaxHops, err)
	}
	for _, edge := range []int{0, 100} {
		if config, err := home.UpdateConfig(func(c *Config) error { c.MaxHops = edge; return nil }); err != nil || config.MaxHops != edge {
			t.Errorf("maxHops %d = %d, %v", edge, config.MaxHops, err)
		}
	}
}

// TestSTO_11_VariablesFallBackToTheirDefaults also covers MSG-12's two.
func TestSTO_11_VariablesFallBackToTheirDefaults(t *testing.T) {
	home := newHome(t)
	byDefault := map[string]time.Duration{
		"BRIDGE_MESSAGE_TTL_MS":         604800000 * time.Millisecond,
		"BRIDGE_QUEUED_MAIL_MAX_AGE_MS": 86400000 * time.Millisecond,
		"BRIDGE_BACKUP_INTERVAL_MS":     86400000 * time.Millisecond,
		"BRIDGE_ARCHIVE_AGE_MS":         2592000000 * time.Millisecond,
	}
	read := func(name, value string) time.Duration {
		settings, err := home.Settings(variables(name, value))
		if err != nil {
			t.Fatal(err)
		}
		return map[string]time.Duration{
			"BRIDGE_MESSAGE_TTL_MS":         settings.MessageTTL,
			"BRIDGE_QUEUED_MAIL_MAX_AGE_MS": settings.QueuedMailMaxAge,
			"BRIDGE_BACKUP_INTERVAL_MS":     settings.BackupInterval,
			"BRIDGE_ARCHIVE_AGE_MS":         settings.ArchiveAge,
		}[name]
	}
	for name, fallback := range byDefault {
		for _, invalid := range []string{"", "-1", "+1", "1.5", "1e3", " 1", "7d", "99999999999999999999"} {
			if got := read(name, invalid); got != fallback {
				t.Errorf("%s=%q gives %v, want the default %v", name, invalid, got, fallback)
			}
		}
		for value, want := range map[string]time.Duration{"0": 0, "1500": 1500 * time.Millisecond, "9223372036854775807": math.MaxInt64} {
			if got := read(name, value); got != want {
				t.Errorf("%s=%q gives %v, want %v", name, value, got, want)
			}
		}
	}
	for value, want := range map[string]int{"": 7, "x": 7, "-1": 7, "0": 0, "30": 30} {
		if settings, err := home.Settings(variables("BRIDGE_BACKUP_RETENTION", value)); err != nil || settings.BackupRetention != want {
			t.Errorf("BRIDGE_BACKUP_RETENTION=%q gives %d, %v; want %d", value, settings.BackupRetention, err, want)
		}
	}
	for value, want := range map[string]bool{"": false, "0": false, "true": false, "1": true} {
		if settings, err := home.Settings(variables("BRIDGE_AUTO_BACKUP", value)); err != nil || settings.AutoBackup != want {
			t.Errorf("BRIDGE_AUTO_BACKUP=%q gives %v, %v; want %v", value, settings.AutoBackup, err, want)
		}
	}
}

func TestVariablesOverruleTheFile(t *testing.T) {
	home := newHome(t)
	writeConfig(t, home, `{"name":"file","port":1,"agents":{"codex":{"bin":"/file"},"claude":{"bin":"/kept"}}}`)
	settings, err := home.Settings(variables("BRIDGE_PORT", "0", "BRIDGE_CODEX_BIN", "/variable", "BRIDGE_LOG_LEVEL", "debug"))
	if err != nil {
		t.Fatal(err)
	}
	if settings.Name != "file" || settings.Port != 0 || settings.Bin(bridge.Codex) != "/variable" ||
		settings.Bin(bridge.Claude) != "/kept" || settings.Bin(bridge.OpenCode) != "" || settings.LogLevel != slog.LevelDebug {
		t.Errorf("settings = %+v", settings)
	}
	settings, err = home.Settings(variables("BRIDGE_PORT", "70000", "BRIDGE_LOG_LEVEL", "loud"))
	if err != nil || settings.Port != 1 || settings.LogLevel != slog.LevelInfo {
		t.Errorf("invalid variables: %+v, %v; want the file's", settings, err)
	}
}
