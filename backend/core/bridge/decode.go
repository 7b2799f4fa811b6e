package bridge

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxDecodeDepth limits nesting: no type of ours is deeper than 16.
const maxDecodeDepth = 32

// DecodeStrict decodes exactly one JSON value from data into dst, a pointer to a struct
// or a struct list. It refuses data over limitBytes, a second value, and null for the
// whole value. It refuses unknown or duplicate members, and members with another letter
// case. It refuses invalid UTF-8 and an escaped half of a character. A null member
// counts as missing. After an error, the content of dst must not be used. The error is
// always an [Error] whose sentence names the invalid member.
func DecodeStrict(data []byte, limitBytes int, dst any) error {
	return decode(data, limitBytes, dst, json.RejectUnknownMembers(true))
}

// DecodeAdditive is DecodeStrict for data of another version of Bridge: it ignores
// unknown members, which a newer version may add.
func DecodeAdditive(data []byte, limitBytes int, dst any) error {
	return decode(data, limitBytes, dst, json.RejectUnknownMembers(false))
}

func decode(data []byte, limitBytes int, dst any, members json.Options) error {
	if len(data) > limitBytes {
		return Errorf(TooLarge, "the request is larger than %s", Counted(limitBytes, "byte"))
	}
	switch string(bytes.TrimSpace(data)) {
	case "":
		return Errorf(Invalid, "the request is empty: send one JSON object")
	case "null": // it would leave dst unchanged
		return Errorf(Invalid, "the request must be a JSON object, not null")
	}
	if nesting(data) > maxDecodeDepth {
		return Errorf(Invalid, "the request is nested deeper than %d levels", maxDecodeDepth)
	}
	for range maxRewritten {
		err := json.Unmarshal(data, dst, members)
		if err == nil {
			return nil
		}
		rewritten, isWhole := rewriteWhole(data, err)
		if !isWhole {
			return decodeError(data, err)
		}
		data = rewritten
	}
	return Errorf(Invalid, "the request has more than %d whole numbers that are written with a fraction or an exponent", maxRewritten)
}

// maxRewritten limits the rewritten numbers of one request.
const maxRewritten = 100

// rewriteWhole returns data with the number of err as plain digits. It returns false
// for another error, and for a number that is not whole. JSON has one kind of number,
// so 5.0 and 5e0 are 5 (RWM-20).
func rewriteWhole(data []byte, err error) ([]byte, bool) {
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) || semantic.JSONKind != '0' || semantic.GoType == nil || TypeName(semantic.GoType) != "a whole number" {
		return nil, false
	}
	at := int(semantic.ByteOffset)
	begin := bytes.IndexAny(data[at:], "-0123456789")
	if begin < 0 {
		return nil, false
	}
	begin += at
	end := begin
	for end < len(data) && strings.IndexByte("+-.eE0123456789", data[end]) >= 0 {
		end++
	}
	digits, isWhole := wholeDigits(string(data[begin:end]))
	if !isWhole {
		return nil, false
	}
	return slices.Concat(data[:begin], []byte(digits), data[end:]), true
}

// maxNumberBytes is the longest number to rewrite: Bridge's numbers are much shorter.
const maxNumberBytes = 40

// wholeDigits converts a whole number with a fraction or an exponent to plain digits.
// It returns false for other numbers, and beyond 64 bits.
func wholeDigits(number string) (string, bool) {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	power, err := strconv.Atoi(cmp.Or(strings.TrimPrefix(exponent, "+"), "0"))
	if err != nil || len(number) > maxNumberBytes || max(power, -power) > maxNumberBytes || !strings.ContainsAny(number, ".eE") {
		return "", false
	}
	integer, fraction, _ := strings.Cut(mantissa, ".")
	value, valid := new(big.Rat).SetString(integer + fraction)
	if !valid {
		return "", false
	}
	shift := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(power-len(fraction), len(fraction)-power))), nil)
	if power >= len(fraction) {
		value.Mul(value, new(big.Rat).SetInt(shift))
	} else {
		value.Quo(value, new(big.Rat).SetInt(shift))
	}
	return value.Num().String(), value.IsInt() && value.Num().IsInt64()
}

// nesting returns how deeply lists and objects are nested in a JSON text.
func nesting(data []byte) (deepest int) {
	depth, inString := 0, false
	for at := 0; at < len(data); at++ {
		switch c := data[at]; {
		case inString && c == '\\':
			at++ // the escaped character
		case c == '"':
			inString = !inString
		case inString:
		case c == '[' || c == '{':
			depth++
			deepest = max(deepest, depth)
		case c == ']' || c == '}':
			depth--
		}
	}
	return deepest
}

// halfCharacter returns the first escape of a surrogate without a partner, or "". In a
// JSON text a backslash occurs only in strings. It leaves malformed escapes to the
// decoder.
func halfCharacter(data []byte) string {
	for at := 0; at < len(data); {
		next := bytes.IndexByte(data[at:], '\\')
		if next < 0 {
			return ""
		}
		at += next
		first, escaped := unicodeEscape(data[at:])
		if !escaped {
			at += 2 // the backslash and the escaped character
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

// unicodeEscape decodes the escape \uXXXX at the start of data.
func unicodeEscape(data []byte) (unit rune, ok bool) {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	value, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	return rune(value), err == nil
}

// decodeError converts the decoder's errors to a sentence for people.
func decodeError(data []byte, err error) error {
	if e := (*Error)(nil); errors.As(err, &e) { // from a type that decodes itself
		return e
	}
	if !utf8.Valid(data) {
		return Errorf(Invalid, "the request is not valid UTF-8")
	}
	if half := halfCharacter(data); half != "" {
		return Errorf(Invalid, "the request is not valid JSON: the escape %s is half of a character", half)
	}
	if malformed := json.Unmarshal(data, new(jsontext.Value)); malformed != nil {
		err = malformed // invalid JSON is reported first
	}
	var syntactic *jsontext.SyntacticError
	var semantic *json.SemanticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		errors.As(err, &syntactic)
		return Errorf(Invalid, "member %q is given twice", syntactic.JSONPointer.LastToken())
	case errors.Is(err, io.ErrUnexpectedEOF):
		return Errorf(Invalid, "the request is not valid JSON: it ends too early")
	case errors.As(err, &syntactic) && syntactic.JSONPointer == "" && isWhole(data[:syntactic.ByteOffset]):
		return Errorf(Invalid, "the request holds more than one JSON value")
	case errors.As(err, &syntactic):
		return Errorf(Invalid, "the request is not valid JSON: %s", syntactic.Err)
	case !errors.As(err, &semantic):
		return Errorf(Invalid, "the request is not valid JSON: %s", strings.TrimPrefix(err.Error(), "json: "))
	case errors.Is(err, json.ErrUnknownName):
		return Errorf(Invalid, "unknown member %q", semantic.JSONPointer.LastToken())
	case semantic.JSONPointer == "":
		return Errorf(Invalid, "the request must be a JSON object, not %s", kindName(semantic))
	default:
		each := ""
		if isElement(semantic.JSONPointer) {
			each = "each of "
		}
		return Errorf(Invalid, "%s%q must be %s, not %s", each, fieldName(semantic.JSONPointer), TypeName(semantic.GoType), kindName(semantic))
	}
}

// isWhole reports whether data is exactly one JSON value.
func isWhole(data []byte) bool { return jsontext.Value(data).IsValid() }

// fieldName returns a place in the request as its members' names, joined by dots.
func fieldName(place jsontext.Pointer) string {
	var names []string
	for name := range place.Tokens() {
		if _, err := strconv.Atoi(name); err != nil { // an element of a list has no name
			names = append(names, name)
		}
	}
	return strings.Join(names, ".")
}

// isElement reports whether a place is a list's element.
func isElement(place jsontext.Pointer) bool {
	_, err := strconv.Atoi(place.LastToken())
	return err == nil
}

// kindName returns the name of the JSON kind that was found.
func kindName(err *json.SemanticError) string {
	switch err.JSONKind {
	case '"':
		return "string"
	case '0':
		return strings.TrimSpace("number " + string(err.JSONValue))
	case 't', 'f':
		return "bool"
	case '[':
		return "array"
	case '{':
		return "object"
	default:
		return "null"
	}
}

// TypeName returns what a user calls the JSON form of a Go type, with its article.
func TypeName(t reflect.Type) string {
	switch indirect(t).Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "a JSON object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	default:
		return "a whole number"
	}
}

func indirect(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}
