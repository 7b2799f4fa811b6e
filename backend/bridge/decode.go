package bridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDecodeDepth bounds nesting: no shape of ours is deeper than 16.
const maxDecodeDepth = 32

// DecodeStrict reads exactly one JSON value from data into dst, which must be a
// pointer to a struct or to a list of them. Beyond encoding/json it refuses data
// over limitBytes, unknown members, members whose case differs from the declared
// name, members given twice, a second value behind the first, null instead of
// the whole value, invalid UTF-8, and an escaped half of a character, which would
// silently become another one. A member that is null counts as left out.
// The error is always an Error whose sentence names the offending member.
func DecodeStrict(data []byte, limitBytes int, dst any) error {
	return decode(data, limitBytes, dst, true)
}

// DecodeAdditive is DecodeStrict for what another version of Bridge may have
// written: unknown members are passed over, for a newer version adds some.
func DecodeAdditive(data []byte, limitBytes int, dst any) error {
	return decode(data, limitBytes, dst, false)
}

func decode(data []byte, limitBytes int, dst any, strict bool) error {
	if len(data) > limitBytes {
		return Errorf(TooLarge, "the request is larger than %d bytes", limitBytes)
	}
	switch string(bytes.TrimSpace(data)) {
	case "":
		return Errorf(Invalid, "the request is empty: send one JSON object")
	case "null": // encoding/json would leave dst as it is
		return Errorf(Invalid, "the request must be a JSON object, not null")
	}
	if !utf8.Valid(data) {
		return Errorf(Invalid, "the request is not valid UTF-8")
	}
	if half := halfCharacter(data); half != "" {
		return Errorf(Invalid, "the request is not valid JSON: the escape %s is half of a character", half)
	}
	if err := checkMembers(data, reflect.TypeOf(dst), strict); err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	if strict {
		decoder.DisallowUnknownFields()
	}
	if err := decoder.Decode(dst); err != nil {
		return decodeError(err)
	}
	return nil
}

// halfCharacter returns the first escape of a surrogate that has no partner, ""
// when there is none. A backslash stands in a JSON text within strings only;
// escapes that are malformed are left to the decoder.
func halfCharacter(data []byte) string {
	for at := 0; at < len(data); {
		next := bytes.IndexByte(data[at:], '\\')
		if next < 0 {
			return ""
		}
		at += next
		first, escaped := unicodeEscape(data[at:])
		if !escaped {
			at += 2 // the backslash and what it escapes
			continue
		}
		const length = len(`\u0000`)
		if !utf16.IsSurrogate(first) {
			at += length
			continue
		}
		second, _ := unicodeEscape(data[at+length:])
		if utf16.DecodeRune(first, second) == unicode.ReplacementChar {
			return string(data[at : at+length])
		}
		at += 2 * length
	}
	return ""
}

// unicodeEscape reads the escape \uXXXX with which data begins.
func unicodeEscape(data []byte) (unit rune, ok bool) {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	value, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	return rune(value), err == nil
}

// decodeError turns encoding/json's errors into a sentence for people.
func decodeError(err error) error {
	var typeErr *json.UnmarshalTypeError
	if errors.As(err, &typeErr) && typeErr.Field != "" {
		return Errorf(Invalid, "%q must be %s, not %s", typeErr.Field, typeName(typeErr.Type), typeErr.Value)
	}
	if errors.As(err, &typeErr) {
		return Errorf(Invalid, "the request must be a JSON object, not %s", typeErr.Value)
	}
	if e := (*Error)(nil); errors.As(err, &e) {
		return e
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return Errorf(Invalid, "the request is not valid JSON: it ends too early")
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return Errorf(Invalid, "unknown member %s", name)
	}
	return Errorf(Invalid, "the request is not valid JSON: %s", strings.TrimPrefix(err.Error(), "json: "))
}

func typeName(t reflect.Type) string {
	switch indirect(t).Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	default:
		return "a whole number"
	}
}

// checkMembers walks the tokens once and finds what encoding/json lets pass:
// duplicate members, wrong case, trailing data, deep nesting.
func checkMembers(data []byte, dst reflect.Type, strict bool) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	walker := memberWalker{decoder: decoder, strict: strict}
	if err := walker.value(dst, 0); err != nil {
		return decodeError(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Errorf(Invalid, "the request holds more than one JSON value")
	}
	return nil
}

type memberWalker struct {
	decoder *json.Decoder
	strict  bool // unknown members are refused
}

// value reads one value, depth lists and objects deep, that is meant for a t.
func (w memberWalker) value(t reflect.Type, depth int) error {
	token, err := w.decoder.Token()
	if err != nil {
		return err
	}
	delim, nested := token.(json.Delim)
	if !nested {
		return nil
	}
	if depth == maxDecodeDepth {
		return Errorf(Invalid, "the request is nested deeper than %d levels", maxDecodeDepth)
	}
	if delim == '{' {
		return w.object(t, depth)
	}
	return w.array(t, depth)
}

func (w memberWalker) object(t reflect.Type, depth int) error {
	fields := structFields(t)
	seen := map[string]bool{}
	for w.decoder.More() {
		token, err := w.decoder.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string) // inside an object the decoder yields only string keys here
		if seen[name] {
			return Errorf(Invalid, "member %q is given twice", name)
		}
		seen[name] = true
		inner, known := fields[name]
		switch {
		case fields == nil:
			inner = elem(t)
		case !known && w.strict:
			return Errorf(Invalid, "unknown member %q", name)
		}
		if err := w.value(inner, depth+1); err != nil {
			return err
		}
	}
	_, err := w.decoder.Token()
	return err
}

func (w memberWalker) array(t reflect.Type, depth int) error {
	for w.decoder.More() {
		if err := w.value(elem(t), depth+1); err != nil {
			return err
		}
	}
	_, err := w.decoder.Token()
	return err
}

// structFields maps the JSON names of t's fields to their types, nil when t is
// no struct or decodes itself.
func structFields(t reflect.Type) map[string]reflect.Type {
	if t = indirect(t); t == nil || t.Kind() != reflect.Struct || decodesItself(t) {
		return nil
	}
	fields := map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(t) {
		tag := field.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		switch {
		case tag == "-" || !field.IsExported():
			continue
		case name == "" && field.Anonymous && indirect(field.Type).Kind() == reflect.Struct:
			continue // its fields are visible themselves
		case name == "":
			name = field.Name
		}
		fields[name] = field.Type
	}
	return fields
}

// elem is the type of the elements of a list or map, nil when t is neither or
// decodes itself.
func elem(t reflect.Type) reflect.Type {
	if t = indirect(t); t == nil || decodesItself(t) {
		return nil
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		return t.Elem()
	default:
		return nil
	}
}

// decodesItself reports whether t has a decoder of its own, which then checks
// its members.
func decodesItself(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

func indirect(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}
