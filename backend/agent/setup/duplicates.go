package setup

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"github.com/tailscale/hujson"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// checkDuplicates fails with Conflict if an object on the path to one of the parts
// has a member more than once. The agent reads only one of them, and Bridge must
// not edit or check the other. text is the source of tree, for the line numbers.
// Bridge ignores duplicates elsewhere in the file.
func checkDuplicates(tree *hujson.Value, text []byte, parts []part) error {
	for _, p := range parts {
		value := tree
		for depth, name := range p.Path {
			object, isObject := value.Value.(*hujson.Object)
			if !isObject {
				break
			}
			var lines []int
			for _, inner := range object.Members {
				if literal, ok := inner.Name.Value.(hujson.Literal); ok && literal.String() == name {
					lines = append(lines, disk.LineAt(text, int64(inner.Name.StartOffset)))
				}
			}
			if len(lines) > 1 {
				return bridge.Errorf(bridge.Conflict, "its member %s is there %s, and the agent reads only one of them. Keep one, delete the rest, and try again",
					strings.Join(p.Path[:depth+1], "."), timesOn(lines))
			}
			if value = member(object, name); value == nil {
				break
			}
		}
	}
	return nil
}

// unreadByClaude is document.unread for Claude Code's files, verified with 2.1.329.
// It accepts a byte order mark, but no comments and no trailing commas.
func unreadByClaude(current []byte) (note string, err error) {
	_, text := disk.CutBOM(current)
	return noteComment("Claude Code", text), nil
}

// unreadByCodex is document.unread for codex's hooks.json, verified with 0.169.0.
// It accepts only standard JSON, without a byte order mark or duplicate members.
func unreadByCodex(current []byte) (note string, err error) {
	bom, text := disk.CutBOM(current)
	if len(bom) > 0 {
		return "", bridge.Errorf(bridge.Invalid, "Codex does not read it, because it begins with a byte order mark. Save it as UTF-8 without one and try again")
	}
	if duplicate, found := disk.FindDuplicate(text); found {
		return "", bridge.Errorf(bridge.Invalid, "its member %s is there twice, %s, and Codex does not read such a file. Delete one of them and try again",
			duplicate.Name, duplicate.Lines())
	}
	return noteComment("Codex", text), nil
}

// noteComment returns a sentence if text has a comment or a trailing comma, which
// this CLI does not read, or else "".
func noteComment(cli string, text []byte) string {
	standard, err := hujson.Standardize(bytes.Clone(text))
	if err != nil {
		return "" // it is not JSON at all: the editing code reports that
	}
	for i := range standard { // same offsets, with blanks instead of non-JSON
		if standard[i] != text[i] {
			return fmt.Sprintf("%s does not read it, because of a comment or a trailing comma on line %d. Nothing in it counts until you take that out.",
				cli, disk.LineAt(text, int64(i)))
		}
	}
	return ""
}

// timesOn returns how often a member occurs, and on which lines.
func timesOn(lines []int) string {
	if len(lines) == 2 {
		return "twice, " + disk.Duplicate{First: lines[0], Second: lines[1]}.Lines()
	}
	var numbers []string
	for _, line := range lines {
		numbers = append(numbers, fmt.Sprint(line))
	}
	return fmt.Sprintf("%s, on lines %s", bridge.Counted(len(lines), "time"), strings.Join(numbers, ", "))
}

// tomlProblem returns a readable error, with the lines, for invalid TOML.
func tomlProblem(text []byte, err error) error {
	if key, lines := duplicateTOML(text); key != "" {
		return bridge.Errorf(bridge.Invalid, "it is not valid TOML: duplicate key %s, %s. Delete one of them and try again",
			key, disk.Duplicate{First: lines[0], Second: lines[1]}.Lines())
	}
	reason := strings.TrimPrefix(err.Error(), "toml: ")
	if decodeError := (*toml.DecodeError)(nil); errors.As(err, &decodeError) {
		line, _ := decodeError.Position()
		reason = fmt.Sprintf("%s, on line %d", reason, line)
	}
	return bridge.Errorf(bridge.Invalid, "it is not valid TOML: %s", reason)
}

// duplicateTOML returns the first key or table that text defines twice by its full
// name, and both lines, or "".
func duplicateTOML(text []byte) (key string, lines [2]int) {
	var parser unstable.Parser
	parser.Reset(text)
	var table []string
	elements, seen := map[string]int{}, map[string]int{}
	for parser.NextExpression() {
		expression := parser.Expression()
		if expression.Kind == unstable.Comment {
			continue
		}
		keys, line := tomlKeys(&parser, expression)
		path := slices.Concat(table, keys)
		if expression.Kind != unstable.KeyValue {
			path = elementPath(elements, keys)
			table = path
		}
		if expression.Kind == unstable.ArrayTable { // one more element, with separate keys
			list := append(elementPath(elements, keys[:len(keys)-1]), keys[len(keys)-1])
			elements[strings.Join(list, ".")]++
			table = elementPath(elements, keys)
			continue
		}
		name := strings.Join(path, ".")
		if first := seen[name]; first > 0 {
			return name, [2]int{first, line}
		}
		seen[name] = line
	}
	return "", lines
}

// tomlKeys returns the keys of an expression in their TOML form, and its line.
func tomlKeys(parser *unstable.Parser, expression *unstable.Node) (keys []string, line int) {
	for iterator := expression.Key(); iterator.Next(); {
		key := iterator.Node()
		keys = append(keys, tomlKey(string(key.Data)))
		if line == 0 {
			line = parser.Shape(key.Raw).Start.Line
		}
	}
	return keys, line
}

// elementPath returns the path of a table. After each key that names a list of
// tables, it inserts the number of the current element.
func elementPath(elements map[string]int, keys []string) (path []string) {
	for _, key := range keys {
		path = append(path, key)
		if number := elements[strings.Join(path, ".")]; number > 0 {
			path = append(path, fmt.Sprint(number))
		}
	}
	return path
}
