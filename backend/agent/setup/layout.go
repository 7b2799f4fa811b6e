package setup

import (
	"encoding/json"
	"slices"

	"bridge/backend/core/bridge"
)

// layout is everything that connects one CLI, as its adapter lays it out.
type layout struct {
	documents []document
	notes     []string // what the person should know besides the edits
}

// document is one file with what Bridge wants in it.
type document struct {
	path   string // absolute, as the CLI names it; a symlink is followed
	format format
	adds   string // what the edit adds, one plain sentence
	parts  []part
	// unread, when set, judges a content that its own CLI does not read, although format
	// can edit it: by an error with code Invalid, or by a note, "" where the CLI reads it.
	unread func(current []byte) (note string, err error)
	// verdict says whose an existing entry or list element is, when it is not
	// what the manifest recorded.
	verdict func(existing any) verdict
	// yields, when set, makes the document stay away from somebody else's file;
	// it is the note for the person.
	yields string
}

// part is one entry of ours in a file. For a whole file Path is empty and Value
// is its text as a JSON string.
type part struct {
	Path    []string        `json:"path,omitempty"`
	Element bool            `json:"element,omitempty"` // an element of the list at Path
	Value   json.RawMessage `json:"value"`
	Ours    bool            `json:"-"` // nobody else can mean anything at this path
	Yields  bool            `json:"-"` // what the person says at this path stands
}

// wants reports whether d has a part at the place of p.
func (d document) wants(p part) bool { return slices.ContainsFunc(d.parts, p.samePlace) }

// samePlace reports whether two parts stand for the same thing, whatever their
// values: the member at a path, or the element of a list with the same role.
func (p part) samePlace(other part) bool {
	if p.Element != other.Element || !slices.Equal(p.Path, other.Path) {
		return false
	}
	return !p.Element || role(decoded(p.Value)) == role(decoded(other.Value))
}

// written returns the parts that are ours to take out again: not those that
// somebody else had put there already.
func (d document) written(current []byte, old *installedFile) []part {
	var parts []part
	for _, p := range d.parts {
		recorded := slices.ContainsFunc(old.parts(), p.samePlace)
		theirs := slices.ContainsFunc(d.format.present(current, p), func(have any) bool {
			return (p.Yields || holds(have, p.Value)) && d.verdict(have) != ours
		})
		if recorded || !theirs {
			parts = append(parts, p)
		}
	}
	return parts
}

// leftovers returns entries of ours that no manifest knows of.
func (d document) leftovers(current []byte) []part {
	var parts []part
	for _, p := range d.parts {
		for _, have := range d.format.present(current, p) {
			if d.verdict(have) == ours {
				parts = append(parts, part{Path: p.Path, Element: p.Element, Value: encode(have)})
			}
		}
	}
	return parts
}

// verdict is whose an existing entry is.
type verdict int

const (
	unrelated verdict = iota
	ours              // written by this Bridge, perhaps an older one
	another           // written by a Bridge with another home
)

// format edits one kind of file. present returns the values that stand at a
// part's place; merge brings the document's parts in and refuses what it would
// have to overwrite; strip takes parts out again, and with them the containers
// that original did not have; empty reports whether nothing is left. All are
// pure; nil bytes mean that there is no file.
type format interface {
	present(current []byte, p part) []any
	merge(current []byte, doc document, old []part) ([]byte, error)
	strip(current, original []byte, parts []part) ([]byte, error)
	empty(data []byte) bool
}

// formats are the formats by the name that the manifest uses.
var formats = map[string]format{"json": jsonFile{}, "toml": tomlFile{}, "text": textFile{}}

func formatName(f format) string {
	for name, known := range formats {
		if known == f {
			return name
		}
	}
	return ""
}

// textFile is a file that is ours as a whole.
type textFile struct{}

func (textFile) present(current []byte, _ part) []any {
	if current == nil {
		return nil
	}
	return []any{string(current)}
}

func (textFile) merge(current []byte, doc document, old []part) ([]byte, error) {
	text := partText(doc.parts[0])
	switch {
	case current == nil || string(current) == text:
		return []byte(text), nil
	case slices.ContainsFunc(old, func(p part) bool { return partText(p) == string(current) }):
		return []byte(text), nil
	case doc.verdict(string(current)) == ours && len(old) == 0:
		return []byte(text), nil
	case doc.yields != "":
		return current, nil
	case len(old) > 0:
		return nil, bridge.Errorf(bridge.Conflict, "it was changed since Bridge wrote it: move it away first")
	default:
		return nil, bridge.Errorf(bridge.Conflict, "it exists and Bridge did not write it: move it away first")
	}
}

func (textFile) strip(current, _ []byte, parts []part) ([]byte, error) {
	if slices.ContainsFunc(parts, func(p part) bool { return partText(p) == string(current) }) {
		return nil, nil
	}
	return current, nil
}

func (textFile) empty(data []byte) bool { return len(data) == 0 }

func decoded(value json.RawMessage) any {
	var out any
	if json.Unmarshal(value, &out) != nil {
		return nil
	}
	return out
}

func textPart(text string) []part { return []part{{Value: encode(text)}} }

func partText(p part) string {
	var text string
	if json.Unmarshal(p.Value, &text) != nil {
		return ""
	}
	return text
}
