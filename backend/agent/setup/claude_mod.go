package setup

import (
	_ "embed"
	"os"
	"path/filepath"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/hooks"
)

// The three files of the mod. Claude Code loads them from its folder of skills
// without a question and without a network; versions before 2.1.287 ignore them.
var (
	//go:embed claude/plugin.json
	claudePlugin string
	//go:embed claude/hooks.json
	claudeHooks string
	//go:embed claude/register.js
	claudeModule string
)

const (
	// claudeModCommand is the line of the module that names its child process.
	claudeModCommand = `const COMMAND = ["bridge", "plugin", "claude"]`
	// claudeModMark is in each of the three files, in every version.
	claudeModMark = "Bridge's mod for claude"
)

// claudeMod returns the mod's files, or a note why it is not installed: a folder of
// that name that Bridge did not write belongs to others.
func (in Input) claudeMod(config string, before *installed) (documents []document, note string) {
	folder := filepath.Join(config, "skills", hooks.ClaudeMod)
	manifest := filepath.Join(folder, ".claude-plugin", "plugin.json")
	if before.file(manifest) == nil && !isClaudeMod(folder, manifest) {
		return nil, folder + " is not Bridge's and is left alone: without Bridge's mod there, your words reach an idle claude by a wake hook, " +
			"which tells its model that they are no user input. Move the folder away and run `bridge install claude` again."
	}
	command := encode(append([]string{in.Bridge}, in.pluginArgs(bridge.Claude)...))
	files := []struct{ path, adds, text string }{
		{manifest, "Names the mod that lets your words from the dashboard reach claude as your own prompts.", claudePlugin},
		{filepath.Join(folder, "hooks", "hooks.json"), "Names the mod's module.", claudeHooks},
		{
			filepath.Join(folder, "hooks", "register.js"), "Adds the mod's module: it enters your words and shows what waits above the composer.",
			strings.Replace(claudeModule, claudeModCommand, "const COMMAND = "+string(command), 1),
		},
	}
	for _, file := range files {
		documents = append(documents, document{path: file.path, format: textFile{}, adds: file.adds, parts: textPart(file.text), verdict: claudeModVerdict})
	}
	return documents, ""
}

func claudeModVerdict(existing any) verdict {
	if text, _ := existing.(string); strings.Contains(text, claudeModMark) {
		return ours
	}
	return unrelated
}

// isClaudeMod reports whether the folder is Bridge's, missing, or empty.
func isClaudeMod(folder, manifest string) bool {
	if text, _, _, err := readConfig(manifest); err == nil && text != nil {
		return claudeModVerdict(string(text)) == ours
	}
	entries, err := os.ReadDir(folder)
	return os.IsNotExist(err) || err == nil && len(entries) == 0
}
