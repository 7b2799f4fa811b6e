package setup

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// tomlFile edits a TOML file. It adds complete tables in one marked block at the
// end. It removes them wherever they are, because the CLI rewrites its file and
// puts its tables into the block.
type tomlFile struct{}

// The lines around Bridge's tables.
const (
	tomlBegin = "# >>> bridge: written by `bridge install`, taken out by `bridge uninstall`"
	tomlEnd   = "# <<< bridge"
)

func (tomlFile) present(current []byte, p part) []any {
	values, err := parseTOML(current)
	if err != nil {
		return nil
	}
	if value, exists := tomlValue(values, p.Path); exists {
		return []any{value}
	}
	return nil
}

func (tomlFile) merge(current []byte, doc document, old []part) ([]byte, error) {
	bom, text := disk.CutBOM(current)
	merged, err := mergeTOML(text, doc, old)
	if err != nil {
		return nil, err
	}
	return withMark(bom, merged), nil
}

// mergeTOML is tomlFile.merge for a text without a byte order mark.
func mergeTOML(current []byte, doc document, old []part) ([]byte, error) {
	values, err := parseTOML(current)
	if err != nil {
		return nil, err
	}
	var missing, gone, stale []part
	for _, p := range old {
		if !doc.wants(p) {
			gone = append(gone, p)
		}
	}
	for _, p := range doc.parts {
		have, exists := tomlValue(values, p.Path)
		switch {
		case !exists:
			missing = append(missing, p)
		case holds(have, p.Value):
		case replaceable(have, p, doc, old) || p.Ours:
			stale, missing = append(stale, p), append(missing, p)
		case p.Yields:
		default:
			return nil, foreignEntry(p, doc, have)
		}
	}
	out := current
	if len(gone)+len(stale) > 0 {
		if out, err = removeTables(current, gone, stale); err != nil {
			return nil, err
		}
	}
	if len(missing) == 0 {
		return out, nil
	}
	for i, p := range missing { // separately, so that the right one is named
		if _, err := parseTOML(appendTables(out, missing[i:i+1])); err != nil {
			return nil, bridge.Errorf(bridge.Conflict, "it defines %s in a form that tables cannot be added to: write it as tables first", p.Path[0])
		}
	}
	return appendTables(out, missing), nil
}

func (tomlFile) strip(current, _ []byte, parts []part) ([]byte, error) {
	bom, text := disk.CutBOM(current)
	if _, err := parseTOML(text); err != nil {
		return nil, err
	}
	rest, err := removeTables(text, parts, nil)
	if err != nil {
		return nil, err
	}
	return withMark(bom, rest), nil
}

func (tomlFile) empty(data []byte) bool {
	_, text := disk.CutBOM(data)
	return len(bytes.TrimSpace(text)) == 0
}

// parseTOML returns the values in the file; it ignores a byte order mark.
func parseTOML(data []byte) (map[string]any, error) {
	_, text := disk.CutBOM(data)
	values := map[string]any{}
	if err := toml.Unmarshal(text, &values); err != nil {
		return nil, tomlProblem(text, err)
	}
	return values, nil
}

// tomlValue returns the value at path in JSON's types, so that it is comparable
// with a part's value.
func tomlValue(values map[string]any, path []string) (any, bool) {
	var at any = values
	for _, name := range path {
		table, isTable := at.(map[string]any)
		if !isTable {
			return nil, false
		}
		if at = table[name]; at == nil {
			return nil, false
		}
	}
	data, err := json.Marshal(at)
	if err != nil {
		return at, true
	}
	var plain any
	if json.Unmarshal(data, &plain) != nil {
		return at, true
	}
	return plain, true
}

// appendTables appends the tables in one block.
func appendTables(current []byte, parts []part) []byte {
	var out bytes.Buffer
	out.Write(current)
	if len(current) > 0 && !bytes.HasSuffix(current, []byte("\n")) {
		out.WriteByte('\n')
	}
	if len(current) > 0 {
		out.WriteByte('\n')
	}
	fmt.Fprintln(&out, tomlBegin)
	for _, p := range parts {
		out.WriteString(tomlTable(p))
	}
	fmt.Fprintln(&out, tomlEnd)
	return out.Bytes()
}

// tomlTable returns a part as a table. Its values are strings, numbers and lists of
// strings; their JSON form is also valid TOML.
func tomlTable(p part) string {
	var out strings.Builder
	keys := make([]string, len(p.Path))
	for i, name := range p.Path {
		keys[i] = tomlKey(name)
	}
	fmt.Fprintf(&out, "[%s]\n", strings.Join(keys, "."))
	var members map[string]json.RawMessage
	if err := json.Unmarshal(p.Value, &members); err != nil {
		panic(fmt.Sprintf("an entry of ours is no JSON object: %v", err)) // built by encode
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		value := strings.ReplaceAll(string(members[name]), `","`, `", "`)
		fmt.Fprintf(&out, "%s = %s\n", tomlKey(name), value)
	}
	return out.String()
}

// tomlKey quotes a key if necessary. A JSON string without HTML escapes is a TOML
// basic string.
func tomlKey(name string) string {
	bare := name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
	if bare {
		return name
	}
	return string(encode(name))
}

// removeTables removes tables: for gone parts with the tables below them, for
// rewritten ones alone. It also removes the marker lines, and keeps foreign lines
// inside the block.
func removeTables(current []byte, gone, anew []part) ([]byte, error) {
	var out []byte
	done := 0
	for _, table := range scanTables(current) {
		if !slices.ContainsFunc(gone, func(p part) bool { return hasPrefix(table.path, p.Path) }) &&
			!slices.ContainsFunc(anew, func(p part) bool { return slices.Equal(table.path, p.Path) }) {
			continue
		}
		out = append(out, current[done:table.start]...)
		done = table.end
	}
	out = dropMarkers(append(out, current[done:]...))
	values, err := parseTOML(out)
	if err != nil {
		return nil, fmt.Errorf("taking tables out: %w", err)
	}
	for _, p := range slices.Concat(gone, anew) {
		left, isLeft := tomlValue(values, p.Path)
		if isLeft && (!slices.ContainsFunc(anew, p.sameMember) || !onlyTables(left)) {
			return nil, bridge.Errorf(bridge.Conflict, "its %s is not written as a table of its own: take it out by hand", strings.Join(p.Path, "."))
		}
	}
	return out, nil
}

// onlyTables reports whether value has only tables in it: those below a table that
// was removed alone.
func onlyTables(value any) bool {
	members, isTable := value.(map[string]any)
	for _, member := range members {
		_, inner := member.(map[string]any)
		isTable = isTable && inner
	}
	return isTable
}

func hasPrefix(path, prefix []string) bool {
	return len(path) >= len(prefix) && reflect.DeepEqual(path[:len(prefix)], prefix)
}

// dropMarkers removes Bridge's marker lines, and the empty line that Bridge put
// before the first.
func dropMarkers(data []byte) []byte {
	var out []byte
	for line := range bytes.Lines(data) {
		text := strings.TrimRight(string(line), " \t\r\n")
		if text == tomlBegin && (bytes.HasSuffix(out, []byte("\n\n")) || string(out) == "\n") {
			out = out[:len(out)-1]
		}
		if text != tomlBegin && text != tomlEnd {
			out = append(out, line...)
		}
	}
	return out
}

// table is one [header] with its lines: end is after the last line that is not
// blank or a comment.
type table struct {
	path       []string
	start, end int
}

// scanTables returns the tables of a valid TOML file.
func scanTables(data []byte) []table {
	var tables []table
	for s := (tomlScanner{data: data}); s.next(); {
		line := data[s.start:s.end]
		if s.header {
			tables = append(tables, table{path: headerPath(line), start: s.start})
		}
		if len(tables) > 0 && s.content {
			tables[len(tables)-1].end = s.end
		}
	}
	return tables
}

// headerPath returns the keys of a header line.
func headerPath(line []byte) []string {
	var values map[string]any
	if toml.Unmarshal(line, &values) != nil {
		return nil
	}
	var path []string
	var at any = values
	for {
		inner, isTable := at.(map[string]any)
		if list, isList := at.([]any); isList && len(list) == 1 { // [[header]]
			inner, isTable = list[0].(map[string]any)
		}
		if !isTable || len(inner) != 1 {
			return path
		}
		for name, value := range inner {
			path, at = append(path, name), value
		}
	}
}

// tomlScanner walks the logical lines of a valid TOML file: a line ends where no
// string or list is open.
type tomlScanner struct {
	data       []byte
	start, end int
	header     bool // the line starts a table
	content    bool // the line is not blank and not only a comment
}

func (s *tomlScanner) next() bool {
	s.start = s.end
	if s.start >= len(s.data) {
		return false
	}
	i, depth := s.start, 0
	s.header, s.content = false, false
	for i < len(s.data) {
		c := s.data[i]
		switch {
		case c == '\n' && depth == 0:
			s.end = i + 1
			return true
		case c == '#':
			for i < len(s.data) && s.data[i] != '\n' {
				i++
			}
			continue
		case c == '"' || c == '\'':
			s.content = true
			i = skipString(s.data, i)
			continue
		case c == '[' || c == '{':
			s.header = s.header || c == '[' && !s.content
			s.content = true
			depth++
		case c == ']' || c == '}':
			depth--
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			s.content = true
		}
		i++
	}
	s.end = i
	return true
}

// skipString returns the offset after the string that starts at i.
func skipString(data []byte, i int) int {
	quote := data[i]
	fence := []byte{quote}
	if triple := bytes.Repeat(fence, 3); bytes.HasPrefix(data[i:], triple) {
		fence = triple
	}
	for i += len(fence); i < len(data); i++ {
		if data[i] == '\\' && quote == '"' {
			i++
			continue
		}
		if !bytes.HasPrefix(data[i:], fence) {
			continue
		}
		i += len(fence)
		for len(fence) == 3 && i < len(data) && data[i] == quote { // up to two quotes may precede the fence
			i++
		}
		return i
	}
	return len(data)
}
