package disk

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

func TestRWM_11_RWM_12_JSONThatPeopleEdit(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1}`:                            "",
		"\ufeff{\"a\":1}\r\n":                "",
		"\ufeff\ufeff{\"a\":1}":              "invalid character",
		`{"a":1,"b":{"a":2},"c":[{"a":3}]}`:  "",
		"{\n\"a\": 1,\n\n\"a\": 2}":          `the member "a" is there twice, on lines 2 and 4`,
		"\ufeff{\r\n\"a\": 1,\r\n\"a\": 2}":  `the member "a" is there twice, on lines 2 and 3`,
		"{\"b\":[{},\n{\"x\":1,\n\"x\":2}]}": `the member "x" is there twice, on lines 2 and 3`,
		"{\"a\":1,\n\"\\u0061\":2}":          `the member "a" is there twice, on lines 1 and 2`,
		"{\"a\":\"\xff\",\n\"a\":2}":         `the member "a" is there twice, on lines 1 and 2`,
		"{\"a/b\":1, \"c\":\n2,\"a/b\":3}":   `the member "a/b" is there twice, on lines 1 and 2`,
		`{"a":1,"a":2}`:                      `the member "a" is there twice, both on line 1: delete one of them`,
		`{"a":1,"a":2`:                       "", // the decoder says what is wrong first, whichever that is
	} {
		path := filepath.Join(t.TempDir(), "x.json")
		put(t, path, text)
		var into map[string]any
		err := ReadJSON(path, 100, &into)
		switch {
		case strings.HasSuffix(text, "2"):
			if err == nil {
				t.Errorf("%q was read", text)
			}
		case want == "" && (err != nil || into["a"] != 1.0):
			t.Errorf("%q: got %v, %v", text, into, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func TestRWM_12_TheMarkIsCutOnce(t *testing.T) {
	for text, want := range map[string][2]string{
		"":              {"", ""},
		"a":             {"", "a"},
		"\ufeff":        {"\ufeff", ""},
		"\ufeffa":       {"\ufeff", "a"},
		"\ufeff\ufeffa": {"\ufeff", "\ufeffa"},
		"a\ufeff":       {"", "a\ufeff"},
	} {
		mark, rest := CutBOM([]byte(text))
		if string(mark) != want[0] || !bytes.Equal(rest, []byte(want[1])) {
			t.Errorf("%q: got %q and %q", text, mark, rest)
		}
	}
}
