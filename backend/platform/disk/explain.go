package disk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"bridge/backend/core/bridge"
)

// PlainJSON returns a document without its comments and trailing commas. Each of their
// bytes becomes a space, so lines and offsets stay valid. A plain document is returned
// as it is.
func PlainJSON(data []byte) []byte {
	plain, comma := data, -1 // the last comma, while nothing but space follows it
	blank := func(from, to int) {
		if &plain[0] == &data[0] {
			plain = bytes.Clone(data)
		}
		for i := from; i < to; i++ {
			if plain[i] != '\n' && plain[i] != '\r' {
				plain[i] = ' '
			}
		}
	}
	before := byte('{') // the last byte that is no space
	for i := 0; i < len(data); i++ {
		c := data[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			continue
		case c == '/':
			end := commentEnd(data[i:])
			if end == 0 {
				return plain // the error is explained where it stands
			}
			blank(i, i+end)
			i += end - 1
			continue
		case c == '"':
			i += stringEnd(data[i:]) - 1
		case (c == '}' || c == ']') && comma >= 0:
			blank(comma, comma+1)
		}
		if comma = -1; c == ',' && !strings.ContainsRune("{[,:", rune(before)) {
			comma = i
		}
		before = c
	}
	return plain
}

// commentEnd returns the length of the comment at the beginning of data, or 0.
func commentEnd(data []byte) int {
	switch {
	case bytes.HasPrefix(data, []byte("//")):
		if end := bytes.IndexByte(data, '\n'); end >= 0 {
			return end
		}
		return len(data)
	case bytes.HasPrefix(data, []byte("/*")):
		if end := bytes.Index(data[2:], []byte("*/")); end >= 0 {
			return end + len("/**/")
		}
	}
	return 0
}

// stringEnd returns the length of the text in quotation marks at the beginning of data.
// It ends at its line's end at the latest.
func stringEnd(data []byte) int {
	for i := 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"', '\n':
			return i + 1
		}
	}
	return len(data)
}

// JSONProblem says in plain words what is wrong with a JSON file that people write.
type JSONProblem struct {
	Line, Column int    // from 1; Line is 0 if the place is unknown
	Member       string // such as jobs.maxJobs, or ""
	What         string // a sentence without its full stop
}

func (p JSONProblem) Error() string {
	if p.Line == 0 {
		return p.What
	}
	return fmt.Sprintf("line %d, column %d: %s", p.Line, p.Column, p.What)
}

// ExplainJSON returns err, the error of decoding data, as a [JSONProblem] in plain
// words. data may have comments and trailing commas. Other errors than those of JSON
// stay as they are.
func ExplainJSON(data []byte, err error) error {
	mark, data := CutBOM(data)
	text := PlainJSON(data)
	decoder := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	var syntax error
	for syntax == nil {
		_, syntax = decoder.ReadToken()
	}
	kind, length := decoder.StackIndex(decoder.StackDepth())
	if errors.Is(syntax, io.EOF) && length > 0 {
		return explainType(text, err)
	}
	wants := wantsValue
	switch {
	case kind == '{' && length%2 == 0:
		wants = wantsName
	case decoder.StackDepth() == 0 && length > 0:
		wants = wantsEnd
	}
	offset, member := decoder.InputOffset(), memberPath(decoder.StackPointer())
	if broken, is := errors.AsType[*jsontext.SyntacticError](syntax); is {
		offset = broken.ByteOffset
		for strings.Contains(broken.Error(), "in literal") && offset > 0 && unicode.IsLetter(rune(text[offset-1])) {
			offset-- // the whole word is wrong
		}
	}
	offset = min(offset, int64(len(text)))
	problem := problemAt(text, offset)
	problem.Member = member
	problem.What = syntaxWords(text, offset, wants, syntax)
	if len(mark) == 0 && len(data) > 0 && (data[0] >= 0xfe || bytes.IndexByte(data, 0) >= 0) {
		problem.What = "the file is not stored as UTF-8: save it as UTF-8"
	} else if member != "" {
		problem.What = "in " + member + ", " + problem.What
	}
	return problem
}

// problemAt returns a problem with the line and the column of the byte at offset.
func problemAt(text []byte, offset int64) JSONProblem {
	start := 1 + bytes.LastIndexByte(text[:offset], '\n')
	return JSONProblem{Line: LineAt(text, offset), Column: 1 + utf8.RuneCount(text[start:offset])}
}

func memberPath(pointer jsontext.Pointer) string {
	var names []string
	for name := range pointer.Tokens() {
		names = append(names, name)
	}
	return strings.Join(names, ".")
}

// What the syntax wants at a place of a document.
const (
	wantsValue = iota
	wantsName
	wantsEnd
)

// syntaxWords returns what is wrong at the offset of a document that is no JSON.
func syntaxWords(text []byte, offset int64, wants int, err error) string {
	rest := text[offset:]
	has := func(part string) bool { return strings.Contains(err.Error(), part) }
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return "the file is empty: write {} into it, or delete it"
	case len(rest) == 0 || errors.Is(err, io.ErrUnexpectedEOF):
		return `the file ends too early: a closing }, ] or " is missing`
	case rest[0] == '\'':
		return "a text stands in double quotation marks, not in single ones"
	case rest[0] == '#':
		return "a comment begins with //"
	case bytes.HasPrefix(rest, []byte("/*")):
		return "this comment has no end: write */ behind it"
	case wants == wantsEnd:
		return fmt.Sprintf("the document has ended, but %s follows", wordAt(rest))
	case bytes.HasSuffix(bytes.TrimSpace(text[:offset]), []byte(":")) && bytes.ContainsRune([]byte("}],"), rune(rest[0])):
		return fmt.Sprintf("a value is missing before %s", wordAt(rest))
	case wants == wantsName && !has("after object value") && !has("mismatching"):
		return fmt.Sprintf("the name of a member stands in double quotation marks, but here is %s", wordAt(rest))
	case has("after object name"):
		return fmt.Sprintf("a colon is missing before %s", wordAt(rest))
	case has("after object value"), has("after array element"):
		return fmt.Sprintf("a comma is missing before %s", wordAt(rest))
	case has("mismatching"):
		return fmt.Sprintf("%s closes something that was not opened with its counterpart", wordAt(rest))
	case has("in string") && rest[0] < ' ':
		return "this text has no closing quotation mark on its line"
	case has("escape"):
		return `a backslash in a text is written \\`
	default:
		return fmt.Sprintf("%s is no value: use a text in double quotation marks, a number, true, false, null, a list or an object", wordAt(rest))
	}
}

// mostOfWord limits the characters of a file that a sentence repeats.
const mostOfWord = 20

// wordAt returns the word or the character at the beginning of rest, quoted.
func wordAt(rest []byte) string {
	end := bytes.IndexAny(rest, " \t\r\n,:[]{}\"")
	switch {
	case end < 0:
		end = len(rest)
	case end == 0 && rest[0] == '"':
		return `"` + strings.Trim(string(rest[:min(stringEnd(rest), mostOfWord)]), "\"\r\n") + `"`
	case end == 0:
		end = 1
	}
	token := []rune(strings.ToValidUTF8(string(rest[:end]), "\ufffd"))
	return `"` + string(token[:min(len(token), mostOfWord)]) + `"`
}

// explainType explains an error of decoding valid JSON: a value of the wrong kind.
func explainType(text []byte, err error) error {
	wrong, is := errors.AsType[*json.UnmarshalTypeError](err)
	if !is {
		if err != nil && strings.HasPrefix(err.Error(), "json: ") {
			return JSONProblem{What: "it does not have the form that Bridge expects"}
		}
		return err
	}
	member := memberBefore(text, wrong.Offset)
	problem := JSONProblem{Member: member}
	if member == "" {
		problem.What = "it must be " + bridge.TypeName(wrong.Type) + ", not " + article(valueName(wrong.Value))
		return problem
	}
	if offset, found := FindMember(text, member); found {
		problem.Line, problem.Column = problemAt(text, offset).Line, problemAt(text, offset).Column
	}
	problem.What = member + " must be " + bridge.TypeName(wrong.Type) + ", not " + article(valueName(wrong.Value))
	return problem
}

// memberBefore returns the path of the member whose value ends at the offset, or begins
// there.
func memberBefore(text []byte, offset int64) string {
	decoder := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	for {
		if _, err := decoder.ReadToken(); err != nil {
			return ""
		}
		if decoder.InputOffset() >= offset {
			return memberPath(decoder.StackPointer())
		}
	}
}

// FindMember returns the offset of the name of the member with this path, such as
// jobs.maxJobs. The document must be plain JSON; an invalid one has no members.
func FindMember(text []byte, member string) (offset int64, found bool) {
	decoder := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	for {
		token, err := decoder.ReadToken()
		if err != nil {
			return 0, false
		}
		kind, length := decoder.StackIndex(decoder.StackDepth())
		if kind == '{' && length%2 == 1 && memberPath(decoder.StackPointer()) == member {
			return decoder.InputOffset() - int64(len(token.String())) - int64(len(`""`)), true
		}
	}
}

// valueName returns what people call a kind of JSON value.
func valueName(value string) string {
	switch value {
	case "array":
		return "list"
	case "bool":
		return "true or false"
	default:
		return value
	}
}

// article puts the article before a noun.
func article(noun string) string {
	switch {
	case noun == "true or false":
		return noun
	case strings.HasPrefix(noun, "object"):
		return "an " + noun
	default:
		return "a " + noun
	}
}
