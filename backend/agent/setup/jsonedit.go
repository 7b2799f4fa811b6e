package setup

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// jsonFile edits a JSON file, with or without comments and trailing commas. It
// keeps the bytes of all foreign content.
type jsonFile struct{}

func (jsonFile) present(current []byte, p part) []any {
	tree, _, err := parseJSON(current)
	if err != nil {
		return nil
	}
	at := lookup(&tree, p.Path)
	if at == nil {
		return nil
	}
	list, isList := at.Value.(*hujson.Array)
	if !p.Element || !isList {
		return []any{plain(*at)}
	}
	var values []any
	for _, element := range list.Elements {
		values = append(values, plain(element))
	}
	return values
}

func (jsonFile) merge(current []byte, doc document, old []part) ([]byte, error) {
	tree, bom, err := parseJSON(current)
	if err == nil {
		err = checkDuplicates(&tree, current[len(bom):], slices.Concat(doc.parts, old))
	}
	if err != nil {
		return nil, err
	}
	for _, p := range old {
		if !doc.wants(p) {
			removePart(&tree, p)
		}
	}
	for _, p := range doc.parts {
		if p.Element {
			err = mergeElement(&tree, p, doc, old)
		} else {
			err = mergeMember(&tree, p, doc, old)
		}
		if err != nil {
			return nil, err
		}
	}
	out := withMark(bom, tree.Pack())
	if len(current) == 0 {
		out = append(out, '\n')
	}
	return out, nil
}

func (jsonFile) strip(current, original []byte, parts []part) ([]byte, error) {
	tree, bom, err := parseJSON(current)
	if err == nil {
		err = checkDuplicates(&tree, current[len(bom):], parts)
	}
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		removePart(&tree, p)
	}
	before, _, err := parseJSON(original)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		prune(&tree, &before, p.Path)
	}
	return withMark(bom, tree.Pack()), nil
}

func (jsonFile) empty(data []byte) bool {
	tree, _, err := parseJSON(data)
	if err != nil {
		return false
	}
	inside := emptyInside(&tree)
	return inside != nil && !hasComment(*inside, tree.BeforeExtra, tree.AfterExtra)
}

// parseJSON parses a settings file and returns its byte order mark separately; an
// empty file counts as an empty object.
func parseJSON(data []byte) (tree hujson.Value, bom []byte, err error) {
	bom, data = disk.CutBOM(data)
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}")
	}
	tree, err = hujson.Parse(data)
	if err != nil {
		return tree, nil, bridge.Errorf(bridge.Invalid, "it is not valid JSON: %w", disk.ExplainJSON(data, err))
	}
	if _, isObject := tree.Value.(*hujson.Object); !isObject {
		return tree, nil, bridge.Errorf(bridge.Invalid, "it does not hold a JSON object")
	}
	return tree, bom, nil
}

// mergeMember sets the member at p.Path to p.Value.
func mergeMember(tree *hujson.Value, p part, doc document, old []part) error {
	parent, err := container(tree, p.Path[:len(p.Path)-1])
	if err != nil {
		return err
	}
	name := p.Path[len(p.Path)-1]
	existing := member(parent, name)
	if existing == nil {
		insertMember(tree, parent, len(p.Path), name, p.Value)
		return nil
	}
	switch have := plain(*existing); {
	case holds(have, p.Value):
		return nil
	case replaceable(have, p, doc, old):
		depth := len(p.Path)
		existing.Value = render(p.Value, newline(tree), indentOf(tree), depth).Value
		return nil
	default:
		return foreignEntry(p, doc, have)
	}
}

// mergeElement makes the list at p.Path contain p.Value exactly once. It replaces
// an older form of Bridge's element in position.
func mergeElement(tree *hujson.Value, p part, doc document, old []part) error {
	parent, err := container(tree, p.Path[:len(p.Path)-1])
	if err != nil {
		return err
	}
	name := p.Path[len(p.Path)-1]
	if member(parent, name) == nil {
		insertMember(tree, parent, len(p.Path), name, json.RawMessage("[]"))
	}
	list, isList := member(parent, name).Value.(*hujson.Array)
	if !isList {
		return bridge.Errorf(bridge.Conflict, "its %s is not a list", strings.Join(p.Path, "."))
	}
	place := -1
	for i := 0; i < len(list.Elements); i++ {
		have := plain(list.Elements[i])
		same := holds(have, p.Value)
		stale := !same && role(have) == role(decoded(p.Value)) && replaceable(have, p, doc, old)
		switch {
		case !same && !stale:
			if doc.verdict(have) == another {
				return foreignEntry(p, doc, have)
			}
		case place < 0:
			place = i
			if stale {
				list.Elements[i].Value = render(p.Value, newline(tree), indentOf(tree), len(p.Path)+1).Value
			}
		default: // a second one
			removeElement(list, i)
			i--
		}
	}
	if place < 0 {
		insertElement(tree, list, len(p.Path), p.Value)
	}
	return nil
}

// replaceable reports whether have is an older entry of Bridge: the manifest's
// recorded value, or one that the kind's adapter recognizes.
func replaceable(have any, p part, doc document, old []part) bool {
	for _, o := range old {
		if o.sameMember(p) && sameJSON(have, o.Value) {
			return true
		}
	}
	return doc.verdict(have) == ours
}

func foreignEntry(p part, doc document, have any) error {
	where := strings.Join(p.Path, ".")
	if owner, isOther := otherBridge(have); isOther && doc.verdict(have) == another {
		return bridge.Errorf(bridge.Conflict, "its %s belongs to the Bridge with the home %s: take that one back first with `bridge uninstall`", where, owner)
	}
	return bridge.Errorf(bridge.Conflict, "it already has %s, which Bridge did not write: rename or remove that entry first", where)
}

// rootOf returns the object that parseJSON has ensured.
func rootOf(tree *hujson.Value) *hujson.Object {
	object, isObject := tree.Value.(*hujson.Object)
	if !isObject {
		return &hujson.Object{} // unreachable
	}
	return object
}

// container returns the object at path, and creates missing objects on the way.
func container(tree *hujson.Value, path []string) (*hujson.Object, error) {
	object := rootOf(tree)
	for depth, name := range path {
		if member(object, name) == nil {
			insertMember(tree, object, depth+1, name, json.RawMessage("{}"))
		}
		inner, isObject := member(object, name).Value.(*hujson.Object)
		if !isObject {
			return nil, bridge.Errorf(bridge.Conflict, "its %s is not an object", strings.Join(path[:depth+1], "."))
		}
		object = inner
	}
	return object, nil
}

// lookup returns the value at path, or nil if there is none.
func lookup(tree *hujson.Value, path []string) *hujson.Value {
	value := tree
	for _, name := range path {
		object, isObject := value.Value.(*hujson.Object)
		if !isObject {
			return nil
		}
		if value = member(object, name); value == nil {
			return nil
		}
	}
	return value
}

func member(object *hujson.Object, name string) *hujson.Value {
	for i := range object.Members {
		if literal, ok := object.Members[i].Name.Value.(hujson.Literal); ok && literal.String() == name {
			return &object.Members[i].Value
		}
	}
	return nil
}

// insertMember appends a member to object, which is depth-1 levels deep, in the
// style of its neighbours.
func insertMember(tree *hujson.Value, object *hujson.Object, depth int, name string, value json.RawMessage) {
	eol, unit := newline(tree), indentOf(tree)
	added := hujson.ObjectMember{
		Name:  hujson.Value{Value: hujson.String(name)},
		Value: render(value, eol, unit, depth),
	}
	added.Value.BeforeExtra = hujson.Extra(" ")
	if len(object.Members) == 0 {
		added.Name.BeforeExtra, object.AfterExtra = openUp(object.AfterExtra, eol, unit, depth)
		object.Members = append(object.Members, added)
		return
	}
	last := &object.Members[len(object.Members)-1]
	added.Name.BeforeExtra, object.AfterExtra = after(last.Name.BeforeExtra, object.AfterExtra)
	if last.Value.AfterExtra != nil { // keep a trailing comma
		added.Value.AfterExtra = hujson.Extra{}
	}
	object.Members = append(object.Members, added)
}

// insertElement is [insertMember] for a list.
func insertElement(tree *hujson.Value, list *hujson.Array, depth int, value json.RawMessage) {
	eol, unit := newline(tree), indentOf(tree)
	added := render(value, eol, unit, depth+1)
	if len(list.Elements) == 0 {
		added.BeforeExtra, list.AfterExtra = openUp(list.AfterExtra, eol, unit, depth+1)
		list.Elements = append(list.Elements, added)
		return
	}
	last := &list.Elements[len(list.Elements)-1]
	added.BeforeExtra, list.AfterExtra = after(last.BeforeExtra, list.AfterExtra)
	if last.AfterExtra != nil {
		added.AfterExtra = hujson.Extra{}
	}
	list.Elements = append(list.Elements, added)
}

// openUp returns the text before the first entry of an empty container, and before
// its closing bracket. Comments stay first.
func openUp(inside hujson.Extra, eol, unit string, depth int) (before, closing hujson.Extra) {
	before = joinExtras(inside, hujson.Extra(eol+strings.Repeat(unit, depth)))
	return before, hujson.Extra(eol + strings.Repeat(unit, depth-1))
}

// after returns the text before an entry that follows the last one, whose own lead
// is sibling. A comment after the last entry stays with that entry.
func after(sibling, closing hujson.Extra) (before, rest hujson.Extra) {
	lead := sibling[len(bytes.TrimRight(sibling, " \t\r\n")):]
	if line := bytes.LastIndexByte(lead, '\n'); line >= 0 {
		start := line
		if start > 0 && lead[start-1] == '\r' {
			start--
		}
		lead = lead[start:]
	}
	kept := bytes.TrimRight(closing, " \t\r\n")
	return joinExtras(kept, lead), closing[len(kept):]
}

// joinExtras puts the comments of first before next. A line comment keeps its line
// end.
func joinExtras(first, next hujson.Extra) hujson.Extra {
	kept := bytes.TrimRight(bytes.Clone(first), " \t\r\n")
	if endsInLineComment(kept) && !bytes.HasPrefix(bytes.TrimLeft(next, " \t\r"), []byte("\n")) {
		kept = append(kept, '\n')
	}
	return append(kept, next...)
}

func endsInLineComment(extra hujson.Extra) bool {
	for len(extra) > 0 {
		switch {
		case bytes.HasPrefix(extra, []byte("//")):
			_, rest, ended := bytes.Cut(extra, []byte("\n"))
			if !ended {
				return true
			}
			extra = rest
		case bytes.HasPrefix(extra, []byte("/*")):
			_, extra, _ = bytes.Cut(extra, []byte("*/"))
		default:
			extra = extra[1:]
		}
	}
	return false
}

// removePart removes p if the present value is the written one, or contains it.
func removePart(tree *hujson.Value, p part) {
	at := lookup(tree, p.Path)
	if at == nil {
		return
	}
	if list, isList := at.Value.(*hujson.Array); p.Element && isList {
		for i := len(list.Elements) - 1; i >= 0; i-- {
			if holds(plain(list.Elements[i]), p.Value) {
				removeElement(list, i)
			}
		}
	}
	if !p.Element && holds(plain(*at), p.Value) {
		removeMember(tree, p.Path)
	}
}

// prune removes the empty containers along path that did not exist before. A
// container that was empty before gets its old inside back.
func prune(tree, before *hujson.Value, path []string) {
	for depth := len(path); depth >= 0; depth-- {
		value := lookup(tree, path[:depth])
		if value == nil {
			continue
		}
		inside := emptyInside(value)
		if inside == nil {
			return
		}
		if old := lookup(before, path[:depth]); old != nil {
			if was := emptyInside(old); was != nil && sameComments(*inside, *was) {
				*inside = *was
			}
			return
		}
		if depth == 0 || hasComment(*inside) {
			return
		}
		removeMember(tree, path[:depth])
	}
}

// emptyInside returns the text between the brackets of an empty container, or nil
// for anything else.
func emptyInside(value *hujson.Value) *hujson.Extra {
	switch inner := value.Value.(type) {
	case *hujson.Object:
		if len(inner.Members) == 0 {
			return &inner.AfterExtra
		}
	case *hujson.Array:
		if len(inner.Elements) == 0 {
			return &inner.AfterExtra
		}
	}
	return nil
}

func sameComments(a, b hujson.Extra) bool {
	return bytes.Equal(bytes.TrimSpace(a), bytes.TrimSpace(b))
}

func removeMember(tree *hujson.Value, path []string) {
	object, isObject := lookup(tree, path[:len(path)-1]).Value.(*hujson.Object)
	if !isObject {
		return
	}
	for i := range object.Members {
		literal, ok := object.Members[i].Name.Value.(hujson.Literal)
		if !ok || literal.String() != path[len(path)-1] {
			continue
		}
		gone := object.Members[i]
		object.Members = append(object.Members[:i], object.Members[i+1:]...)
		switch {
		case i < len(object.Members):
			next := &object.Members[i].Name
			next.BeforeExtra = keepComments(gone.Name.BeforeExtra, next.BeforeExtra)
		case i > 0:
			object.Members[i-1].Value.AfterExtra = trailing(object.Members[i-1].Value.AfterExtra, gone.Value.AfterExtra)
			object.AfterExtra = keepComments(gone.Name.BeforeExtra, object.AfterExtra)
		default:
			object.AfterExtra = closeUp(gone.Name.BeforeExtra, object.AfterExtra)
		}
		return
	}
}

func removeElement(list *hujson.Array, i int) {
	gone := list.Elements[i]
	list.Elements = append(list.Elements[:i], list.Elements[i+1:]...)
	switch {
	case i < len(list.Elements):
		list.Elements[i].BeforeExtra = keepComments(gone.BeforeExtra, list.Elements[i].BeforeExtra)
	case i > 0:
		list.Elements[i-1].AfterExtra = trailing(list.Elements[i-1].AfterExtra, gone.AfterExtra)
		list.AfterExtra = keepComments(gone.BeforeExtra, list.AfterExtra)
	default:
		list.AfterExtra = closeUp(gone.BeforeExtra, list.AfterExtra)
	}
}

// keepComments moves comments before a removed entry to the next entry.
func keepComments(gone, next hujson.Extra) hujson.Extra {
	if !hasComment(gone) {
		return next
	}
	return joinExtras(gone, next)
}

// closeUp returns the inside of a container whose only entry was removed.
func closeUp(gone, closing hujson.Extra) hujson.Extra {
	if inside := keepComments(gone, closing); hasComment(inside) {
		return inside
	}
	return nil
}

// trailing keeps the comma after the new last entry if the old one had one.
func trailing(have, gone hujson.Extra) hujson.Extra {
	if have == nil && gone != nil {
		return hujson.Extra{}
	}
	if gone == nil && len(have) == 0 {
		return nil
	}
	return have
}

func hasComment(extras ...hujson.Extra) bool {
	for _, extra := range extras {
		if len(bytes.TrimSpace(extra)) > 0 {
			return true
		}
	}
	return false
}

// render parses value and formats it for an entry that is depth levels deep.
func render(value json.RawMessage, eol, unit string, depth int) hujson.Value {
	var out bytes.Buffer
	if err := json.Indent(&out, value, strings.Repeat(unit, depth), unit); err != nil {
		panic(fmt.Sprintf("an entry of ours is no JSON: %v", err)) // built by encode
	}
	tree, err := hujson.Parse(bytes.ReplaceAll(out.Bytes(), []byte("\n"), []byte(eol)))
	if err != nil {
		panic(fmt.Sprintf("an entry of ours is no JSON: %v", err))
	}
	return tree
}

// newline returns the file's line end.
func newline(tree *hujson.Value) string {
	if bytes.Contains(tree.Pack(), []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// indentOf returns one level of the file's indentation.
func indentOf(tree *hujson.Value) string {
	object := rootOf(tree)
	if len(object.Members) > 0 {
		lead := object.Members[0].Name.BeforeExtra
		if line := bytes.LastIndexByte(lead, '\n'); line >= 0 && line+1 < len(lead) {
			return string(lead[line+1:])
		}
	}
	return "  "
}

// plain decodes a value as encoding/json would.
func plain(value hujson.Value) any {
	clone := value.Clone()
	clone.Minimize()
	var out any
	if json.Unmarshal(clone.Pack(), &out) != nil {
		return nil
	}
	return out
}

// sameJSON reports whether have equals the value want.
func sameJSON(have any, want json.RawMessage) bool {
	var value any
	return json.Unmarshal(want, &value) == nil && reflect.DeepEqual(have, value)
}

// holds reports whether have is want, or an object that contains all of want: a
// person or the CLI may have added members to Bridge's entry.
func holds(have any, want json.RawMessage) bool {
	var value any
	if json.Unmarshal(want, &value) != nil {
		return false
	}
	wanted, isObject := value.(map[string]any)
	object, hasObject := have.(map[string]any)
	if !isObject || !hasObject {
		return reflect.DeepEqual(have, value)
	}
	for name, inner := range wanted {
		if !reflect.DeepEqual(object[name], inner) {
			return false
		}
	}
	return true
}
