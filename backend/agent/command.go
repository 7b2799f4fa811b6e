package agent

import (
	"encoding/base64"
	"encoding/binary"
	"path"
	"slices"
	"strings"
	"unicode/utf16"

	"bridge/backend/bridge"
)

// mcpArgs are the arguments of the MCP server's entry.
func (in Input) mcpArgs(kind bridge.AgentKind) []string {
	return in.withHome([]string{"mcp", "--agent", string(kind)})
}

// hookArgs are the arguments of a hook's command.
func (in Input) hookArgs(kind bridge.AgentKind, event string) []string {
	return in.withHome([]string{"hook", string(kind), event})
}

// pluginArgs are the arguments of the plugin's child process.
func (in Input) pluginArgs(kind bridge.AgentKind) []string {
	return in.withHome([]string{"plugin", string(kind)})
}

func (in Input) withHome(args []string) []string {
	if in.BridgeHome == "" {
		return args
	}
	return append(args, "--home", in.BridgeHome)
}

// hookLine is the hook's command as one line for the host's shell.
func (in Input) hookLine(kind bridge.AgentKind, event string) string {
	words := append([]string{in.Bridge}, in.hookArgs(kind, event)...)
	quote := quotePOSIX
	if in.windows() {
		quote = quoteWindows
	}
	for i, word := range words {
		words[i] = quote(word)
	}
	return strings.Join(words, " ")
}

// quotePOSIX writes word so that every POSIX shell reads it back unchanged.
func quotePOSIX(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plainRune(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// quoteWindows writes word for cmd.exe and for Git's bash alike: forward
// slashes, which both take in a path, and double quotes, which cannot be part
// of a path.
func quoteWindows(word string) string {
	word = strings.ReplaceAll(word, `\`, "/")
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plainRune(r) }) {
		return word
	}
	return `"` + strings.ReplaceAll(word, `"`, "") + `"`
}

// cmdLine writes words for a host that hands the line to cmd.exe and quotes it
// once more on the way: quotes of ours would not survive that. Where plain words
// do not do, PowerShell gets the whole as one encoded word.
func cmdLine(words []string) string {
	line := strings.Join(words, " ")
	odd := func(r rune) bool { return !plainRune(r) && r != '\\' || r == '%' || r == ',' }
	if !slices.ContainsFunc(words, func(word string) bool { return strings.ContainsFunc(word, odd) }) {
		return line
	}
	script := "&"
	for _, word := range words {
		script += " '" + strings.ReplaceAll(word, "'", "''") + "'"
	}
	var wide []byte
	for _, unit := range utf16.Encode([]rune(script)) {
		wide = binary.LittleEndian.AppendUint16(wide, unit)
	}
	return "powershell.exe -NoLogo -NoProfile -NonInteractive -EncodedCommand " + base64.StdEncoding.EncodeToString(wide)
}

func plainRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:+,@%", r)
}

// splitLine reads a command line that hookLine wrote back into its words. It
// understands quotes, not shell programs: those give ok false.
func splitLine(line string) (words []string, ok bool) {
	var word strings.Builder
	var quote rune
	open := false
	escaped := false
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, open = r, true
		case r == '\\':
			escaped, open = true, true
		case r == ' ':
			if open {
				words = append(words, word.String())
			}
			word.Reset()
			open = false
		case strings.ContainsRune("|&;<>()$`\n", r):
			return nil, false
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if open {
		words = append(words, word.String())
	}
	return words, quote == 0 && !escaped
}

// commandWords returns the command of an MCP entry or of a hook in one of the
// shapes that the hosts use: command with args, command as a list, or a line.
func commandWords(entry any) []string {
	object, isObject := entry.(map[string]any)
	if !isObject {
		return nil
	}
	if list := stringList(object["command"]); list != nil {
		return list
	}
	command, isText := object["command"].(string)
	if !isText {
		return nil
	}
	if args := stringList(object["args"]); args != nil {
		return append([]string{command}, args...)
	}
	words, ok := splitLine(command)
	if !ok {
		return nil
	}
	return words
}

func stringList(value any) []string {
	list, isList := value.([]any)
	if !isList {
		return nil
	}
	words := make([]string, 0, len(list))
	for _, item := range list {
		word, isText := item.(string)
		if !isText {
			return nil
		}
		words = append(words, word)
	}
	return words
}

// bridgeCommand reports whether words run a Bridge as an entry of ours does,
// and with which --home ("" for the default one).
func bridgeCommand(words []string) (home string, ok bool) {
	if len(words) < 3 {
		return "", false
	}
	program := strings.TrimSuffix(path.Base(strings.ReplaceAll(words[0], `\`, "/")), ".exe")
	if program != "bridge" && program != "bridgectl" {
		return "", false
	}
	rest := words[1:]
	if n := len(rest); n >= 2 && rest[n-2] == "--home" {
		home, rest = rest[n-1], rest[:n-2]
	}
	switch {
	case len(rest) == 3 && rest[0] == "mcp" && rest[1] == "--agent":
		return home, slices.Contains(bridge.Kinds(), bridge.AgentKind(rest[2]))
	case len(rest) == 3 && rest[0] == "hook":
		return home, slices.Contains(bridge.Kinds(), bridge.AgentKind(rest[1]))
	default:
		return "", false
	}
}

// verdict tells whose an existing entry is: an MCP server's entry, one hook, or
// a group of hooks.
func (in Input) verdict(existing any) verdict {
	hooks := []any{existing}
	if group, isObject := existing.(map[string]any); isObject {
		if inner, isList := group["hooks"].([]any); isList {
			hooks = inner
		}
	}
	found := unrelated
	for _, hook := range hooks {
		home, isBridge := bridgeCommand(commandWords(hook))
		switch {
		case !isBridge:
		case home == in.BridgeHome && len(hooks) == 1:
			found = ours
		default:
			found = another
		}
	}
	return found
}

// role says what an element of a list is there for: a text for itself, a hook of
// ours for its event, whichever binary and home it names.
func role(element any) string {
	if text, isText := element.(string); isText {
		return text
	}
	if group, isObject := element.(map[string]any); isObject {
		if inner, isList := group["hooks"].([]any); isList && len(inner) == 1 {
			element = inner[0]
		}
	}
	words := commandWords(element)
	if n := len(words); n >= 2 && words[n-2] == "--home" {
		words = words[:n-2]
	}
	if len(words) == 0 {
		return ""
	}
	return strings.Join(words[1:], " ")
}

// otherBridge returns the home of the Bridge that an entry runs.
func otherBridge(existing any) (home string, ok bool) {
	if group, isObject := existing.(map[string]any); isObject {
		if inner, isList := group["hooks"].([]any); isList && len(inner) > 0 {
			existing = inner[0]
		}
	}
	home, ok = bridgeCommand(commandWords(existing))
	if home == "" {
		home = "~/.bridge"
	}
	return home, ok
}
