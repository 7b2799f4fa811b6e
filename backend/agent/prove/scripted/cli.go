// Package scripted runs the real agent CLIs (claude, codex, opencode) without an
// account and without a network: in an empty home, with a scripted model on loopback in
// place of the vendor's. It prepares a Home as each CLI wants to find it, and starts
// sessions in terminals or headless. The package knows the CLIs and nothing of Bridge;
// package prove and the tests put the two together.
package scripted

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
)

// CLIs are the absolute paths of the programs, "" for one that is not there.
type CLIs struct {
	Claude, Codex, OpenCode string
}

// Home is one user's home folder with the CLIs on its PATH and nothing else of
// this machine's user. Every file it makes is under Root, which is short
// enough for Unix sockets.
type Home struct {
	Root string   // holds all of the following
	Dir  string   // HOME
	Bin  string   // first on PATH
	Tmp  string   // TMPDIR, beside HOME: codex refuses one above it
	More []string // more of the environment, NAME=value
	Less []string // names of what of it no process gets

	// Path is what follows Bin on PATH; "" for that of the system.
	Path string

	clis  CLIs
	model *FakeModel
}

const (
	fakeKey       = "sk-ant-fake-key-0123456789-abcdefghijklmnop"
	claudeVersion = "2.1.329" // whose questions the seed answers
)

// NewHome prepares a home under root (an empty folder) whose CLIs talk to the
// model. The CLIs trust the projects: `Project` makes them.
func NewHome(root string, clis CLIs, model *FakeModel, projects ...string) (*Home, error) {
	h := &Home{
		Root: root, Dir: filepath.Join(root, "home"), Bin: filepath.Join(root, "bin"), Tmp: filepath.Join(root, "tmp"),
		clis: clis, model: model,
	}
	folders := []string{h.Dir, h.Bin, h.Tmp}
	for _, name := range projects {
		folders = append(folders, h.Project(name))
	}
	for _, dir := range folders {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("making a home: %w", err)
		}
	}
	for name, path := range map[string]string{"claude": clis.Claude, "codex": clis.Codex, "opencode": clis.OpenCode} {
		if path == "" {
			continue
		}
		if err := os.Symlink(path, filepath.Join(h.Bin, name)); err != nil {
			return nil, fmt.Errorf("putting %s on the PATH: %w", name, err)
		}
	}
	files := map[string]string{
		".claude.json":                   h.claudeSeed(folders[3:]),
		".codex/config.toml":             h.codexConfig(folders[3:]),
		".config/opencode/opencode.json": h.openCodeConfig(),
		openCodeModels:                   "{}",
	}
	for name, text := range files {
		if err := h.write(name, text); err != nil {
			return nil, err
		}
	}
	return h, h.WriteProfile()
}

// WriteProfile has the login shell give its programs what Env has: a broker asks that
// shell what its jobs work in.
func (h *Home) WriteProfile() error {
	var exports strings.Builder
	for _, pair := range h.Env() {
		name, value, _ := strings.Cut(pair, "=")
		if !slices.Contains([]string{"HOME", "TMPDIR", "SHELL", "TERM", "LANG"}, name) {
			fmt.Fprintf(&exports, "export %s=%s\n", name, bridge.QuotePOSIX(value))
		}
	}
	return h.write(".profile", exports.String())
}

// Project is the absolute folder of a project in the home.
func (h *Home) Project(name string) string { return filepath.Join(h.Dir, name) }

// Append adds text to a file of the home.
func (h *Home) Append(name, text string) error {
	old, err := os.ReadFile(filepath.Join(h.Dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("adding to a file of the home: %w", err)
	}
	return h.write(name, string(old)+text)
}

// UseCodexDaemon lets codex serve its sessions from its background server, as it
// does for people who did not switch that off. It copies its package into the
// home, some 400 MB.
func (h *Home) UseCodexDaemon() error {
	return h.replaceInCodex("daemon_auto_start = false", "daemon_auto_start = true")
}

// CodexAsks has codex ask before it runs a command outside of its sandbox.
func (h *Home) CodexAsks() error {
	return h.replaceInCodex(`approval_policy = "never"`, `approval_policy = "on-request"`, `sandbox_mode = "danger-full-access"`, `sandbox_mode = "read-only"`)
}

// replaceInCodex replaces pairs of texts in codex's configuration.
func (h *Home) replaceInCodex(pairs ...string) error {
	const name = ".codex/config.toml"
	raw, err := os.ReadFile(filepath.Join(h.Dir, name))
	if err != nil {
		return fmt.Errorf("changing codex's configuration: %w", err)
	}
	return h.write(name, strings.NewReplacer(pairs...).Replace(string(raw)))
}

// Edit changes a JSON file of the home.
func (h *Home) Edit(name string, change func(settings map[string]any)) error {
	raw, err := os.ReadFile(filepath.Join(h.Dir, name))
	if err != nil {
		return fmt.Errorf("editing a file of the home: %w", err)
	}
	settings := object{}
	if err := json.Unmarshal(raw, &settings); err != nil {
		return fmt.Errorf("editing %s: %w", name, err)
	}
	change(settings)
	return h.write(name, mustJSON(settings))
}

func (h *Home) write(name, text string) error {
	path := filepath.Join(h.Dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("making a home: %w", err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("making a home: %w", err)
	}
	return nil
}

// openCodeModels is the file of the home in place of the catalogue of all providers that
// opencode has in itself: reading that takes half of the ten seconds of processor that one
// needs to start in a terminal.
const openCodeModels = ".config/opencode-models.json"

// Env is the whole environment of every process in the home: what each CLI
// needs to find the model and to leave the network alone.
func (h *Home) Env() []string {
	env := append([]string{
		"HOME=" + h.Dir,
		"PATH=" + h.Bin + ":" + cmp.Or(h.Path, "/usr/local/bin:/usr/bin:/bin"),
		"TMPDIR=" + h.Tmp,
		"SHELL=/bin/sh",
		"TERM=xterm-256color",
		"LANG=C.UTF-8",

		"ANTHROPIC_BASE_URL=" + h.model.URL(),
		"ANTHROPIC_API_KEY=" + fakeKey,
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL=1",
		"DISABLE_TELEMETRY=1",
		"DISABLE_ERROR_REPORTING=1",
		"DISABLE_AUTOUPDATER=1",

		"FAKE_KEY=" + fakeKey,
		"BRIDGE_PROVE=off", // its broker tries no agent by itself

		"OPENCODE_DISABLE_AUTOUPDATE=1",
		"OPENCODE_DISABLE_MODELS_FETCH=1",
		"OPENCODE_MODELS_PATH=" + filepath.Join(h.Dir, openCodeModels),
		"npm_config_offline=true",
	}, h.More...)
	return slices.DeleteFunc(env, func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.Contains(h.Less, name)
	})
}

// claudeSeed answers what an interactive claude asks a newcomer.
func (h *Home) claudeSeed(projects []string) string {
	trusted := object{}
	for _, dir := range projects {
		trusted[dir] = object{"allowedTools": []string{}, "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}
	}
	return mustJSON(object{
		"hasCompletedOnboarding": true, "lastOnboardingVersion": claudeVersion, "theme": "dark", "hasSeenAutoDefaultNudge": true,
		"customApiKeyResponses": object{"approved": []string{fakeKey[len(fakeKey)-20:]}, "rejected": []string{}},
		"projects":              trusted,
	})
}

// codexConfig names the model and switches off what reaches for the network.
func (h *Home) codexConfig(projects []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `model = "fake-model"
model_provider = "fake"
check_for_update_on_startup = false
approval_policy = "never"
sandbox_mode = "danger-full-access"

[analytics]
enabled = false

[feedback]
enabled = false

[otel]
exporter = "none"

[features]
plugins = false
remote_plugin = false
apps = false
daemon_auto_start = false

[tui]
show_tooltips = false

[model_providers.fake]
name = "fake"
base_url = "%s/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
request_max_retries = 0
stream_max_retries = 0
requires_openai_auth = false
supports_websockets = false
`, h.model.URL())
	for _, dir := range projects {
		fmt.Fprintf(&b, "\n[projects.%q]\ntrust_level = \"trusted\"\n", dir)
	}
	return b.String()
}

// openCodeConfig names the model.
func (h *Home) openCodeConfig() string {
	return mustJSON(object{
		"model": "fake/fake-model", "small_model": "fake/fake-model", "autoupdate": false, "share": "disabled",
		"enabled_providers": []string{"fake"},
		"provider": object{"fake": object{
			"npm": "@ai-sdk/openai-compatible", "name": "Fake",
			"options": object{"baseURL": h.model.URL() + "/v1", "apiKey": "fake"},
			"models":  object{"fake-model": object{"name": "Fake", "tool_call": true, "limit": object{"context": 100000, "output": 4096}}},
		}},
	}) + "\n"
}
