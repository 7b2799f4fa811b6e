package setup

import (
	"encoding/base64"
	"encoding/binary"
	"path"
	"slices"
	"strings"
	"unicode/utf16"

	"bridge/backend/core/bridge"
)

// AsksFlag is the argument of an MCP server's entry whose CLI must ask before
// AskedTools. Older entries lack it, and their settings allow all of these tools.
const AsksFlag = "asks"

// mcpArgs returns the arguments of the MCP server's entry; asks means that the
// settings make the CLI ask before AskedTools.
func (in Input) mcpArgs(kind bridge.AgentKind, asks bool) []string {
	args := []string{"mcp", "--agent", string(kind)}
	if asks {
		args = append(args, "--"+AsksFlag)
	}
	return in.withHome(args)
}

// hookWords returns a hook's command: the small program, or its long form if that
// is missing. The long form does the same and starts more slowly.
func (in Input) hookWords(kind bridge.AgentKind, event string) []string {
	if in.Hook == "" {
		return in.withHome([]string{in.Bridge, "hook", string(kind), event})
	}
	return in.withHome([]string{in.Hook, string(kind), event})
}

// pluginArgs returns the arguments of the plugin's child process.
func (in Input) pluginArgs(kind bridge.AgentKind) []string {
	return in.withHome([]string{"plugin", string(kind)})
}

func (in Input) withHome(args []string) []string {
	if in.BridgeHome == "" {
		return args
	}
	return append(args, "--home", in.BridgeHome)
}

// hookLine returns the hook's command as one line for the host's shell.
func (in Input) hookLine(kind bridge.AgentKind, event string) string {
	words := in.hookWords(kind, event)
	quote := bridge.QuotePOSIX
	if in.windows() {
		quote = quoteWindows
	}
	for i, word := range words {
		words[i] = quote(word)
	}
	return strings.Join(words, " ")
}

// quoteWindows quotes word for both cmd.exe and Git's bash: with forward slashes,
// which both accept in a path, and double quotes, which cannot be in a path.
func quoteWindows(word string) string {
	word = strings.ReplaceAll(word, `\`, "/")
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !bridge.PlainRune(r) }) {
		return word
	}
	return `"` + strings.ReplaceAll(word, `"`, "") + `"`
}

// cmdLine returns the arguments as a line for a host that passes it to cmd.exe and
// quotes it again, which would break quotes. If plain arguments are not enough,
// PowerShell gets everything as one encoded argument.
func cmdLine(words []string) string {
	if !slices.ContainsFunc(words, func(word string) bool { return strings.ContainsFunc(word, oddForCmd) }) {
		return strings.Join(words, " ")
	}
	script := "&"
	for _, word := range words {
		script += " '" + strings.ReplaceAll(word, "'", "''") + "'"
	}
	var wide []byte
	for _, unit := range utf16.Encode([]rune(script)) {
		wide = binary.LittleEndian.AppendUint16(wide, unit)
	}
	return encodedCommand + base64.StdEncoding.EncodeToString(wide)
}

// encodedCommand is the start of a line with an encoded command for PowerShell.
const encodedCommand = "powershell.exe -NoLogo -NoProfile -NonInteractive -EncodedCommand "

func oddForCmd(r rune) bool { return !bridge.PlainRune(r) && r != '\\' || r == '%' || r == ',' }

// splitCmdLine splits a line of cmdLine into its arguments. A plain line without a
// drive may be for any shell, so splitLine parses it.
func splitCmdLine(line string) (words []string, ok bool) {
	if encoded, isEncoded := strings.CutPrefix(line, encodedCommand); isEncoded {
		return splitPowerShell(encoded)
	}
	plainLine := !strings.ContainsFunc(line, func(r rune) bool { return r != ' ' && oddForCmd(r) })
	return strings.Fields(line), plainLine && len(line) > 2 && line[1] == ':' && line[2] == '\\'
}

// splitPowerShell splits the arguments of `& 'program' 'word' …`.
func splitPowerShell(encoded string) (words []string, ok bool) {
	wide, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, false
	}
	var units []uint16
	for i := 0; i+1 < len(wide); i += 2 {
		units = append(units, binary.LittleEndian.Uint16(wide[i:]))
	}
	rest, ok := strings.CutPrefix(string(utf16.Decode(units)), "&")
	for ok && rest != "" {
		var word string
		if word, rest, ok = cutQuoted(rest); ok {
			words = append(words, word)
		}
	}
	return words, ok
}

// cutQuoted cuts off ` 'word'`, in which ” represents a quote.
func cutQuoted(text string) (word, rest string, ok bool) {
	rest, ok = strings.CutPrefix(text, " '")
	for ok {
		var part string
		part, rest, ok = strings.Cut(rest, "'")
		word += part
		if !strings.HasPrefix(rest, "'") {
			break
		}
		word, rest = word+"'", rest[1:]
	}
	return word, rest, ok
}

// splitLine splits a line of hookLine into its arguments. It handles quotes, but
// not shell programs: for those ok is false.
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

// commandWords returns the command of an MCP entry or a hook in one of the hosts'
// forms: command with args, command as a list, or a line.
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
	if words, ok := splitCmdLine(command); ok {
		return words
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

// bridgeCommand reports whether the arguments run a Bridge as in Bridge's entries,
// and with which --home ("" for the default one).
func bridgeCommand(words []string) (home string, ok bool) {
	if len(words) < 3 {
		return "", false
	}
	rest := words[1:]
	switch strings.TrimSuffix(path.Base(strings.ReplaceAll(words[0], `\`, "/")), ".exe") {
	case "bridge", "bridgectl":
	case "bridge-hook":
		rest = append([]string{"hook"}, rest...)
	default:
		return "", false
	}
	if n := len(rest); n >= 2 && rest[n-2] == "--home" {
		home, rest = rest[n-1], rest[:n-2]
	}
	if len(rest) == 4 && rest[0] == "mcp" && rest[3] == "--"+AsksFlag {
		rest = rest[:3]
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

// verdict returns the owner of an existing entry: an MCP server's entry, one hook,
// or a group of hooks.
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
		case in.isOwnHome(home) && len(hooks) == 1:
			found = ours
		default:
			found = another
		}
	}
	return found
}

// isOwnHome reports whether an entry's --home is this Bridge's. On Windows a hook's line has
// the home with forward slashes, and the case of letters does not count.
func (in Input) isOwnHome(home string) bool {
	if !in.windows() {
		return home == in.BridgeHome
	}
	return strings.EqualFold(strings.ReplaceAll(home, `\`, "/"), strings.ReplaceAll(in.BridgeHome, `\`, "/"))
}

// role returns the purpose of a list element: the text itself, or the event of one
// of Bridge's hooks, for any program, home and form.
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
	words = words[1:]
	if len(words) == 2 && slices.Contains(bridge.Kinds(), bridge.AgentKind(words[0])) {
		words = append([]string{"hook"}, words...) // bridge-hook is the short form of bridge hook
	}
	return strings.Join(words, " ")
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
