package setup

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"bridge/backend/core/bridge"
)

//go:embed opencode/bridge.js
var opencodePlugin string

// opencodePluginCommand is the line of the plugin that names its child process.
const opencodePluginCommand = `const COMMAND = ["bridge", "plugin", "opencode"]`

// opencodePluginMark is the plugin's first line.
const opencodePluginMark = "// Bridge's plugin for opencode:"

// opencodeRegistry is the .npmrc of opencode's folder. With a plugin, opencode's
// start waits until it has fetched a package for plugins from the npm registry.
// With npm's defaults that takes minutes if the registry is unreachable. Bridge's
// plugin needs no package.
const opencodeRegistry = `# Written by ` + "`bridge install`" + `: without these, opencode with a plugin takes minutes
# to start when the npm registry cannot be reached.
fetch-retries=0
fetch-timeout=3000
`

// OpenCode connects opencode.
var OpenCode = Connector{bridge.OpenCode, connectOpenCode}

// connectOpenCode returns the layout: opencode has no hook commands, so a plugin
// reports events over the lines of `bridge plugin opencode` (host.PluginRequest).
func connectOpenCode(_ context.Context, in Input, before *installed) (layout, error) {
	folder := filepath.Join(in.folder("XDG_CONFIG_HOME", ".config"), "opencode")
	config := document{
		path:    opencodeConfig(folder),
		format:  jsonFile{},
		adds:    "Adds the MCP server bridge, whose tools run " + in.askedText() + ".",
		verdict: in.verdict,
		parts: []part{{Path: []string{"mcp", "bridge"}, Value: encode(opencodeServer{
			Type: "local", Command: append([]string{in.Bridge}, in.mcpArgs(bridge.OpenCode, true)...), Enabled: true, Timeout: 3_600_000,
		})}},
	}
	asks, note := in.opencodeQuestions(config.path)
	config.parts = append(config.parts, asks...)
	denies, noDenies := in.opencodeDenies(config.path)
	config.parts = append(config.parts, denies...)
	if len(denies) > 0 || !in.deniesOwner {
		config.adds += in.deniedText("permission.bash", false)
	}
	schema := part{Path: []string{"$schema"}, Value: encode("https://opencode.ai/config.json")}
	isOurs := slices.ContainsFunc(before.file(config.path).parts(), func(p part) bool { return reflect.DeepEqual(p.Path, schema.Path) })
	if _, err := os.Stat(config.path); err != nil || isOurs { // opencode would add it to the new file
		config.parts = append([]part{schema}, config.parts...)
	}
	command := encode(append([]string{in.Bridge}, in.pluginArgs(bridge.OpenCode)...))
	plugin := strings.Replace(opencodePlugin, opencodePluginCommand, "const COMMAND = "+string(command), 1)
	return layout{notes: addNote(addNote(nil, note), noDenies), documents: []document{
		config,
		{
			path:   filepath.Join(folder, "plugin", "bridge.js"),
			format: textFile{},
			adds:   "Adds the plugin that tells Bridge what sessions do and brings them their mail.",
			parts:  textPart(plugin),
			verdict: func(existing any) verdict {
				if text, _ := existing.(string); strings.HasPrefix(text, opencodePluginMark) {
					return ours
				}
				return unrelated
			},
		},
		{
			path:    filepath.Join(folder, ".npmrc"),
			format:  textFile{},
			adds:    "Makes opencode start quickly with a plugin when the npm registry cannot be reached.",
			parts:   textPart(opencodeRegistry),
			verdict: func(any) verdict { return unrelated },
			yields: "opencode has an .npmrc of yours, which is left alone: with any plugin opencode takes minutes to start when the npm registry " +
				"cannot be reached, unless that file sets fetch-retries=0.",
		},
	}}, nil
}

// opencodeQuestions returns the questions before tools that start or steer another
// agent's work, because opencode asks about no tool automatically. A person's rule
// for all tools stays alone, and note reports that.
func (in Input) opencodeQuestions(path string) (asks []part, note string) {
	var present any
	if value := opencodePermission(path); value != nil {
		present = plain(*value)
	}
	if _, isObject := present.(map[string]any); present != nil && !isObject {
		return nil, fmt.Sprintf("Your opencode has one rule for all tools (permission: %v), which holds for those of Bridge that start or steer the work of another agent, too.", present)
	}
	rule := "ask"
	if in.allowsJobs {
		rule = "allow"
	}
	for _, tool := range AskedTools() {
		asks = append(asks, part{Path: []string{"permission", "bridge_" + tool}, Value: encode(rule)})
	}
	return asks, ""
}

// opencodePermission returns the permission member of opencode's settings, or nil
// if it is missing or unreadable; other code reports the file's errors.
func opencodePermission(path string) *hujson.Value {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	tree, _, err := parseJSON(raw)
	if err != nil {
		return nil
	}
	return lookup(&tree, []string{"permission"})
}

// opencodeConfig returns the existing file that opencode reads last.
func opencodeConfig(folder string) string {
	for _, name := range []string{"opencode.jsonc", "opencode.json"} {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return filepath.Join(folder, "opencode.json")
}

// opencodeServer is opencode's entry of an MCP server. Its timeout applies to every
// request, including a wait for a message.
type opencodeServer struct {
	Type    string   `json:"type"`
	Command []string `json:"command"`
	Enabled bool     `json:"enabled"`
	Timeout int      `json:"timeout"` // milliseconds
}
