package setup

import (
	"encoding/json"
	"slices"

	"bridge/backend/core/bridge"
)

// layout is everything that connects one CLI, made by its adapter.
type layout struct {
	documents []document
	notes     []string // information for the person in addition to the edits
}

// document is one file with Bridge's wanted content.
type document struct {
	path   string // absolute, as the CLI names it; symlinks are followed
	format format
	adds   string // the edit's additions, one plain sentence
	parts  []part
	// unread, if set, checks for content that the CLI does not read although format can
	// edit it. It returns an error with code Invalid, or a note, or "" if the CLI reads it.
	unread func(current []byte) (note string, err error)
	// verdict returns the owner of an existing entry or list element that differs
	// from the manifest's.
	verdict func(existing any) verdict
	// yields, if set, keeps the document away from a foreign file; it is the note
	// for the person.
	yields string
}

// part is one entry of Bridge in a file. For a whole file Path is empty and Value
// is its text as a JSON string.
type part struct {
	Path    []string        `json:"path,omitempty"`
	Element bool            `json:"element,omitempty"` // an element of the list at Path
	Value   json.RawMessage `json:"value"`
	Ours    bool            `json:"-"` // this path belongs to Bridge alone
	Yields  bool            `json:"-"` // the person's value at this path stays
}

// wants reports whether d has a part at the place of p.
func (d document) wants(p part) bool { return slices.ContainsFunc(d.parts, p.sameMember) }

// sameMember reports whether two parts are for the same place, with any values: the
// member at a path, or the list element with the same role.
func (p part) sameMember(other part) bool {
	if p.Element != other.Element || !slices.Equal(p.Path, other.Path) {
		return false
	}
	return !p.Element || role(decoded(p.Value)) == role(decoded(other.Value))
}

// written returns the parts that Bridge may remove again: not those that already
// existed.
func (d document) written(current []byte, old *installedFile) []part {
	var parts []part
	for _, p := range d.parts {
		recorded := slices.ContainsFunc(old.parts(), p.sameMember)
		theirs := slices.ContainsFunc(d.format.present(current, p), func(have any) bool {
			return (p.Yields || holds(have, p.Value)) && d.verdict(have) != ours
		})
		if recorded || !theirs {
			parts = append(parts, p)
		}
	}
	return parts
}

// leftovers returns Bridge's entries that no manifest records.
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

// verdict is the owner of an existing entry.
type verdict int

const (
	unrelated verdict = iota
	ours              // written by this Bridge or an older one
	another           // written by a Bridge with another home
)

// format edits one kind of file. present returns the values at a part's place.
// merge adds the document's parts, and fails instead of overwriting foreign values.
// strip removes parts, and the containers that original lacks. empty reports
// whether no content is left. All are pure; nil bytes mean that there is no file.
type format interface {
	present(current []byte, p part) []any
	merge(current []byte, doc document, old []part) ([]byte, error)
	strip(current, original []byte, parts []part) ([]byte, error)
	empty(data []byte) bool
}

// formats are the formats by their names in the manifest.
var formats = map[string]format{"json": jsonFile{}, "toml": tomlFile{}, "text": textFile{}}

func formatName(f format) string {
	for name, known := range formats {
		if known == f {
			return name
		}
	}
	return ""
}

// textFile is a file that belongs completely to Bridge.
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
