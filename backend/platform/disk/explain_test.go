package disk

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type written struct {
	Port int  `json:"port"`
	On   bool `json:"on"`
	Jobs struct {
		Max  int      `json:"max"`
		List []string `json:"list"`
	} `json:"jobs"`
}

// goWords are words of Go's packages that no person should read.
var goWords = []string{"unmarshal", "invalid character", "looking for", "json:", "Go value", "jsontext", "EOF", "struct", "offset", "literal"}

func TestDOC_11_AMistakeInAFileIsSaidInPlainWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "line 1, column 1: the file is empty: write {} into it, or delete it",
		"  \n":                                  "the file is empty",
		"{":                                     `line 1, column 2: the file ends too early: a closing }, ] or " is missing`,
		"{\"port\": 1\n\"on\": true}":           `line 2, column 1: in port, a comma is missing before "on"`,
		"{\"port\" 1}":                          `line 1, column 9: in port, a colon is missing before "1"`,
		"{port: 1}":                             `line 1, column 2: the name of a member stands in double quotation marks, but here is "port"`,
		"{\n  'port': 1}":                       "line 2, column 3: a text stands in double quotation marks, not in single ones",
		"{\"jobs\": {\"list\": [\"a\" \"b\"]}}": `column 24: in jobs.list.0, a comma is missing before "b"`,
		"{\"on\": True}":                        `in on, "True" is no value`,
		"{\"on\": yes}":                         `in on, "yes" is no value`,
		"none of it":                            `line 1, column 1: "none" is no value`,
		"# a comment\n{}":                       "line 1, column 1: a comment begins with //",
		"{/* no end }":                          "column 2: this comment has no end",
		"{\"port\": 1}}":                        `column 12: the document has ended, but "}" follows`,
		"{\"port\": ]":                          `in port, a value is missing before "]"`,
		"{\"jobs\": {\"max\": 1]":               `"]"`,
		"\xff\xfe{\x00}\x00":                    "the file is not stored as UTF-8",
		"{\"port\": \"x\n\"}":                   "column 12: in port, this text has no closing quotation mark on its line",
		"{\"port\": \"\\x\"}":                   `a backslash in a text is written \\`,
		"{\n\"jobs\": {\n \"max\": \"many\"}}":  "line 3, column 2: jobs.max must be a whole number, not a string",
		"{\"on\": 1}":                           "line 1, column 2: on must be true or false, not a number",
		"{\"jobs\": {\"list\": \"a\"}}":         "jobs.list must be a list, not a string",
		"{\"jobs\": {\"list\": [\"a\", 1]}}":    "jobs.list.1 must be a string, not a number",
		"[]":                                    "it must be a JSON object, not a list",
		"// why\n{\"port\": 1, /* x */ \"on\": 1,}": "line 2, column 21: on must be true or false",
	} {
		err := DecodeJSON([]byte(text), &written{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v\nwant %s", text, err, want)
			continue
		}
		for _, word := range goWords {
			if strings.Contains(err.Error(), word) {
				t.Errorf("%q: %v has the word %q", text, err, word)
			}
		}
	}
}

func TestDOC_11_CommentsAndTrailingCommasAreRead(t *testing.T) {
	const text = "\ufeff// first\n{ /* in\nside */ \"port\": 7, // seven\n\"jobs\": {\"list\": [\"//a\", \"/*b*/\", \"\\\",}\",], \"max\": 2,},\n}\n// last"
	var got written
	if err := DecodeJSON([]byte(text), &got); err != nil || got.Port != 7 || got.Jobs.Max != 2 || strings.Join(got.Jobs.List, " ") != `//a /*b*/ ",}` {
		t.Errorf("%+v, %v", got, err)
	}
	if plain := PlainJSON([]byte(text)); len(plain) != len(text) || strings.Count(string(plain), "\n") != strings.Count(text, "\n") {
		t.Errorf("the places changed: %q", plain)
	}
	for _, refused := range []string{"[,]", "{,}", "[1,,]", "{\"a\":,}", "[1,,2]", "//", "/**/"} {
		if err := DecodeJSON([]byte(refused), new(any)); err == nil {
			t.Errorf("%q was read", refused)
		}
	}
}

// A file that Bridge writes wholly has no place for comments: they would be lost.
func TestDOC_11_OnlyFilesThatKeepCommentsMayHaveSome(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`{"port": 7}`, ""},
		{"\ufeff{\"port\": 7}", ""},
		{"{\n  // mine\n  \"port\": 7\n}", "line 2, column 3: this file may have no comments: Bridge would lose them when it writes it"},
		{`{"port": 7,}`, "line 1, column 11: a comma stands before a closing bracket"},
	} {
		path := filepath.Join(t.TempDir(), "a.json")
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var got written
		if err := ReadJSON(path, 1<<20, &got); tt.want == "" && (err != nil || got.Port != 7) || tt.want != "" && (err == nil || err.Error() != path+": "+tt.want) {
			t.Errorf("%q: %+v, %v", tt.text, got, err)
		}
	}
}

func FuzzPlainJSON(f *testing.F) {
	f.Add([]byte("{// a\n\"b\": [1, /* c */ 2,],}"))
	f.Add([]byte("{\"a\": \"//\\\"\"}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		plain := PlainJSON(data)
		if len(plain) != len(data) {
			t.Fatalf("%q became %q", data, plain)
		}
		if json.Valid(data) && string(plain) != string(data) {
			t.Errorf("plain JSON %q became %q", data, plain)
		}
		if err := DecodeJSON(data, new(any)); err != nil && err.Error() == "" {
			t.Error("an error without words")
		}
	})
}
