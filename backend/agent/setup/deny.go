package setup

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"bridge/backend/agent"
	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
)

// This file has the rules by which the CLIs themselves deny sessions what only the owner
// does (SEC-07). They stop an honest agent before it tries. A hostile one gets past them by
// another spelling: what holds against it is in docs/security.md.

// ownerPrograms returns the names of the program by which the owner's commands are typed.
func (in Input) ownerPrograms() []string {
	programs := []string{"bridge", "bridgectl"}
	if in.windows() {
		programs = append(programs, "bridge.exe", "bridgectl.exe")
	}
	return programs
}

// typedPrograms are those with the full path of the one that is installed, where a shell
// takes that as it is.
func (in Input) typedPrograms() []string {
	programs := in.ownerPrograms()
	if isPlain(in.Bridge) {
		programs = append(programs, in.Bridge)
	}
	return programs
}

// homeWords are the words that name a home of another place, which may stand before the
// command as well.
func (in Input) homeWords() []string {
	if in.BridgeHome == "" || !isPlain(in.BridgeHome) {
		return nil
	}
	return []string{"--home", in.BridgeHome}
}

// isPlain reports whether a shell takes the word as it is.
func isPlain(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool { return !bridge.PlainRune(r) })
}

// deniedLines returns the beginnings of the command lines that are denied.
func (in Input) deniedLines() (lines []string) {
	for _, program := range in.typedPrograms() {
		for _, words := range bridge.OwnerDecides() {
			line := slices.Concat([]string{program}, words)
			lines = append(lines, strings.Join(line, " "))
			if home := in.homeWords(); home != nil {
				lines = append(lines, strings.Join(slices.Concat([]string{program}, home, words), " "))
			}
		}
	}
	return lines
}

// whatIsDenied is the part of an install's text that says what is denied, or that it is no
// more; "" where nothing was and is. where names the place of the rules.
func (in Input) whatIsDenied(where string, files bool) string {
	switch {
	case !in.deniesOwner && in.deniedOwner:
		return " Takes out the rules that deny sessions your own commands (" + where + ")."
	case !in.deniesOwner:
		return ""
	}
	var commands []string
	for _, words := range bridge.OwnerDecides() {
		commands = append(commands, strings.Join(words, " "))
	}
	text := " Denies sessions your own commands (" + where + "): bridge " + strings.Join(commands, ", ") + "."
	if files {
		text += " Denies them to read keys and to change settings in " + in.homeName() + ": " +
			strings.Join(slices.Concat(config.SecretFiles(), config.SettingFiles()), ", ") + "."
	}
	return text
}

// homeName is Bridge's home as a person knows it.
func (in Input) homeName() string {
	if in.BridgeHome == "" {
		return "~/.bridge"
	}
	return in.BridgeHome
}

// claudeDenies returns the rules for permissions.deny, none unless they are wanted. The note
// says why there are none for files.
func (in Input) claudeDenies() (rules []string, note string) {
	if !in.deniesOwner {
		return nil, ""
	}
	for _, line := range in.deniedLines() {
		rules = append(rules, "Bash("+line+":*)")
	}
	home := in.homeName()
	if strings.ContainsAny(filepath.ToSlash(home), `\*?[]{}()!`) {
		return rules, "Claude Code gets no rules for files: the path " + home + " has characters that mean something else in them."
	}
	if in.BridgeHome != "" {
		home = claudePath(home)
	}
	for _, name := range slices.Concat(config.SecretFiles(), config.SettingFiles()) {
		path := home + "/" + name
		if strings.HasSuffix(name, "/") {
			path += "**"
		}
		if slices.Contains(config.SecretFiles(), name) {
			rules = append(rules, "Read("+path+")")
		}
		rules = append(rules, "Edit("+path+")")
	}
	return rules, ""
}

// claudePath writes an absolute path as claude's rules want it: behind two slashes, a drive
// as a folder.
func claudePath(path string) string {
	path = filepath.ToSlash(path)
	if len(path) > 1 && path[1] == ':' {
		path = "/" + strings.ToLower(path[:1]) + path[2:]
	}
	return "/" + path
}

// codexRules is the first version tried with rules for commands in files of their own.
const codexRules = "0.169.0"

// codexRulesMark is the first line of that file.
const codexRulesMark = "# Written by `bridge install --deny-owner-commands`."

// codexDenies returns the file of rules, none unless it is wanted. The note says why there
// is none.
func (in Input) codexDenies(folder string) (file []document, note string) {
	if !in.deniesOwner {
		return nil, ""
	}
	if in.CLI.Version == "" || agent.CompareVersions(in.CLI.Version, codexRules) < 0 {
		return nil, "Bridge writes no rules that deny your commands to this Codex: they were tried with " + codexRules + " and newer."
	}
	path := filepath.Join(folder, "rules", "bridge.rules")
	return []document{{
		path:   path,
		format: textFile{},
		adds:   strings.TrimSpace(in.whatIsDenied("decision: forbidden", false)),
		parts:  textPart(in.codexRulesText()),
		verdict: func(existing any) verdict {
			if text, _ := existing.(string); strings.HasPrefix(text, codexRulesMark) {
				return ours
			}
			return unrelated
		},
		yields: path + " is yours and is left alone, so Bridge adds no rules that deny your commands to Codex: give that file another name.",
	}}, ""
}

// codexRulesText is that file's content. Codex finds a program by its name wherever it lies.
func (in Input) codexRulesText() string {
	var single []string
	var longer [][]string
	for _, words := range bridge.OwnerDecides() {
		if len(words) == 1 {
			single = append(single, words[0])
		} else {
			longer = append(longer, words)
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n# Codex then runs none of your own commands of Bridge. `bridge install --deny-owner-commands=false` removes this file.\n", codexRulesMark)
	rule := func(words ...any) {
		pattern := append([]any{in.ownerPrograms()}, words...)
		fmt.Fprintf(&text, "\nprefix_rule(\n    pattern = %s,\n    decision = \"forbidden\",\n    justification = \"Only your user runs this command of Bridge.\",\n)\n", encode(pattern))
	}
	homes := [][]string{nil}
	if in.BridgeHome != "" {
		homes = append(homes, []string{"--home", in.BridgeHome})
	}
	for _, home := range homes {
		rule(append(anyOf(home), single)...)
		for _, words := range longer {
			rule(anyOf(slices.Concat(home, words))...)
		}
	}
	return text.String()
}

func anyOf(words []string) (list []any) {
	for _, word := range words {
		list = append(list, word)
	}
	return list
}

// opencodeDenies returns the rules for permission.bash, none unless they are wanted. What
// the owner says there stands; of all rules that fit a command opencode takes the last. The
// note says where rules of his keep Bridge's from counting.
func (in Input) opencodeDenies(path string) (rules []part, note string) {
	if !in.deniesOwner {
		return nil, ""
	}
	commands, problem := opencodeCommands(opencodePermission(path))
	if problem != "" {
		return nil, "Bridge adds no rules that deny your commands to opencode: " + problem + ", and install again."
	}
	var wanted []string
	for _, line := range in.deniedLines() {
		rule := line + " *"
		if value := member(commands, rule); value == nil || plain(*value) == "deny" { // else the owner says something else
			rules = append(rules, part{Path: []string{"permission", "bash", rule}, Value: encode("deny")})
			wanted = append(wanted, rule)
		}
	}
	if after := wildcardAfter(commands, wanted); after != "" {
		note = fmt.Sprintf("Your rule permission.bash.%q stands behind those of Bridge in opencode's settings and decides: move it before them.", after)
	}
	return rules, note
}

// opencodeCommands returns the rules for commands within permission, empty where there are
// none. The problem says what the owner can do where rules could not be added, or would not
// count.
func opencodeCommands(permission *hujson.Value) (commands *hujson.Object, problem string) {
	if permission == nil {
		return &hujson.Object{}, ""
	}
	all, isObject := permission.Value.(*hujson.Object)
	if !isObject {
		return nil, fmt.Sprintf(`one rule of yours holds for all tools (permission: %v). Write {"*": "%[1]v"} instead`, plain(*permission))
	}
	bash := member(all, "bash")
	if bash == nil {
		return &hujson.Object{}, ""
	}
	commands, isObject = bash.Value.(*hujson.Object)
	if !isObject {
		return nil, fmt.Sprintf(`one rule of yours holds for all commands (permission.bash: %v). Write {"*": "%[1]v"} instead`, plain(*bash))
	}
	if after := wildcardAfter(all, []string{"bash"}); after != "" {
		return nil, fmt.Sprintf("your rule permission.%q stands behind bash and decides. Move it before bash", after)
	}
	return commands, ""
}

// wildcardAfter returns the first name of an object that stands behind one of these names
// and fits it, as opencode's wildcards do; "" where there is none.
func wildcardAfter(object *hujson.Object, names []string) string {
	var seen []string
	for _, one := range object.Members {
		literal, isText := one.Name.Value.(hujson.Literal)
		if !isText {
			continue
		}
		name := literal.String()
		if slices.Contains(names, name) {
			seen = append(seen, name)
			continue
		}
		pattern := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(name))
		fits, err := regexp.Compile("(?s)^" + pattern + "$")
		if err == nil && slices.ContainsFunc(seen, fits.MatchString) {
			return name
		}
	}
	return ""
}

// addNote returns the notes with one more, unless that is empty.
func addNote(notes []string, note string) []string {
	if note == "" {
		return notes
	}
	return append(notes, note)
}
