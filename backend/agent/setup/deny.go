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

// This file holds the rules by which the CLIs deny sessions the owner's own actions
// (SEC-07). They stop an honest agent before it tries. A hostile one avoids them by
// another spelling; docs/security.md lists the protections against it.

// ownerPrograms returns the program names with which the owner's commands are typed.
func (in Input) ownerPrograms() []string {
	programs := []string{"bridge", "bridgectl"}
	if in.windows() {
		programs = append(programs, "bridge.exe", "bridgectl.exe")
	}
	return programs
}

// typedPrograms returns these names and the full path of the installed program, if
// a shell accepts that unquoted.
func (in Input) typedPrograms() []string {
	programs := in.ownerPrograms()
	if isPlain(in.Bridge) {
		programs = append(programs, in.Bridge)
	}
	return programs
}

// homeWords returns the arguments that select another home, which may also precede
// the command.
func (in Input) homeWords() []string {
	if in.BridgeHome == "" || !isPlain(in.BridgeHome) {
		return nil
	}
	return []string{"--home", in.BridgeHome}
}

// isPlain reports whether a shell accepts the word unquoted.
func isPlain(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool { return !bridge.PlainRune(r) })
}

// deniedLines returns the prefixes of the denied command lines.
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

// deniedText returns the part of an installation's text about the denied actions, or
// their removal; "" if there were and are none. where names the place of the rules.
func (in Input) deniedText(where string, files bool) string {
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

// homeName returns Bridge's home in the form that people know.
func (in Input) homeName() string {
	if in.BridgeHome == "" {
		return "~/.bridge"
	}
	return in.BridgeHome
}

// claudeDenies returns the rules for permissions.deny, or none if they are
// disabled. The note is the reason if there are none for files.
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

// claudePath returns an absolute path in the form of Claude Code's rules: after two
// slashes, with a drive as a folder.
func claudePath(path string) string {
	path = filepath.ToSlash(path)
	if len(path) > 1 && path[1] == ':' {
		path = "/" + strings.ToLower(path[:1]) + path[2:]
	}
	return "/" + path
}

// codexRules is the first version tested with command rules in separate files.
const codexRules = "0.169.0"

// codexRulesMark is the first line of that file.
const codexRulesMark = "# Written by `bridge install --deny-owner-commands`."

// codexDenies returns the file of rules, or none if it is disabled. The note is the
// reason if there is none.
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
		adds:   strings.TrimSpace(in.deniedText("decision: forbidden", false)),
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

// codexRulesText returns that file's content. Codex matches a program by its name in any folder.
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

// opencodeDenies returns the rules for permission.bash, or none if they are
// disabled. The owner's rules there stay; opencode applies the last rule that
// matches a command. The note reports the owner's rules that override Bridge's.
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
		if value := member(commands, rule); value == nil || plain(*value) == "deny" { // otherwise the owner set another value
			rules = append(rules, part{Path: []string{"permission", "bash", rule}, Value: encode("deny")})
			wanted = append(wanted, rule)
		}
	}
	if after := wildcardAfter(commands, wanted); after != "" {
		note = fmt.Sprintf("Your rule permission.bash.%q stands behind those of Bridge in opencode's settings and decides: move it before them.", after)
	}
	return rules, note
}

// opencodeCommands returns the rules for commands within permission, or an empty
// object. problem is advice for the owner if rules could not be added or would have
// no effect.
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

// wildcardAfter returns the first later name of an object that matches one of these
// names by opencode's wildcards, or "".
func wildcardAfter(object *hujson.Object, names []string) string {
	var seen []string
	for _, member := range object.Members {
		literal, isText := member.Name.Value.(hujson.Literal)
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

// addNote returns the notes with note appended, unless note is empty.
func addNote(notes []string, note string) []string {
	if note == "" {
		return notes
	}
	return append(notes, note)
}
