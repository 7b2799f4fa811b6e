package bridge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type caller struct {
	Session string `json:"session,omitempty"`
}

// word decodes itself, like a decision's scope does.
type word string

func (w *word) UnmarshalJSON(data []byte) error {
	if string(data) != `"yes"` {
		return Errorf(Conflict, "the word must be yes")
	}
	*w = "yes"
	return nil
}

// pair is a list that decodes itself: what its elements hold is its business.
type pair []leaf

func (p *pair) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	*p = pair{{Name: "decoded"}}
	return nil
}

type leaf struct {
	Name string `json:"name"`
	Next *leaf  `json:"next"`
}

// Plain is embedded and no struct: its tag makes it a member.
type Plain string

type request struct {
	caller
	Plain  `json:"Plain"`
	Body   string          `json:"body"`
	Hop    int             `json:"hop"`
	Small  uint8           `json:"small"`
	Share  float64         `json:"share"`
	On     *bool           `json:"on"`
	Tags   []string        `json:"tags"`
	Leaves []leaf          `json:"leaves"`
	Pairs  [2]leaf         `json:"pairs"`
	Named  map[string]leaf `json:"named"`
	Word   *word           `json:"word"`
	Own    pair            `json:"own"`
	Raw    json.RawMessage `json:"raw"`
	Any    any             `json:"any"`
	Hidden string          `json:"-"`
	NoTag  string
	secret string //nolint:unused // decoding passes it over
}

func TestDecodeStrictAccepts(t *testing.T) {
	on := true
	yes := word("yes")
	for _, tt := range []struct {
		name, data string
		want       request
	}{
		{"an empty object", ` {} `, request{}},
		{"embedded members", `{"session":"s","Plain":"p"}`, request{caller: caller{"s"}, Plain: "p"}},
		{"escapes", `{"body":"\u0061\n\ud83d\ude00"}`, request{Body: "a\n😀"}},
		{"what only looks like half a character", `{"body":"\\ud800 \\\\udc00"}`, request{Body: `\ud800 \\udc00`}},
		{"the ends of the surrogates", `{"body":"\ud7ff\ue000\udbff\udfff"}`, request{Body: "\ud7ff\ue000\U0010ffff"}},
		{"the character that replaces others", `{"body":"\ufffd"}`, request{Body: "\ufffd"}},
		{"an escaped member name", `{"b\u006fdy":"x"}`, request{Body: "x"}},
		{
			"lists of structs", `{"leaves":[{"name":"a","next":{"name":"b"}},{}]}`,
			request{Leaves: []leaf{{Name: "a", Next: &leaf{Name: "b"}}, {}}},
		},
		{"an array of structs", `{"pairs":[{"name":"a"},{"name":"b"}]}`, request{Pairs: [2]leaf{{Name: "a"}, {Name: "b"}}}},
		{
			"a map of structs", `{"named":{"X":{"name":"a"},"x":{"name":"b"}}}`,
			request{Named: map[string]leaf{"X": {Name: "a"}, "x": {Name: "b"}}},
		},
		{"null counts as left out", `{"body":null,"hop":null,"on":null,"tags":null,"word":null,"named":null}`, request{}},
		{"pointers", `{"on":true,"word":"yes"}`, request{On: &on, Word: &yes}},
		{"a list that decodes itself", `{"own":[{"anything":1}]}`, request{Own: pair{{Name: "decoded"}}}},
		{"a float", `{"share":0.5}`, request{Share: 0.5}},
		{"the same name in two objects", `{"leaves":[{"name":"a"},{"name":"a"}]}`, request{Leaves: []leaf{{Name: "a"}, {Name: "a"}}}},
		{"a member without a tag", `{"NoTag":"x"}`, request{NoTag: "x"}},
		{"anything in raw", `{"raw":{"Body":[1,{"x":null}]}}`, request{Raw: json.RawMessage(`{"Body":[1,{"x":null}]}`)}},
		{"anything in any", `{"any":{"Body":1.5}}`, request{Any: map[string]any{"Body": 1.5}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got request
			if err := DecodeStrict([]byte(tt.data), 1000, &got); err != nil {
				t.Fatalf("DecodeStrict(%s): %v", tt.data, err)
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(request{})); diff != "" {
				t.Errorf("DecodeStrict(%s) (-want +got):\n%s", tt.data, diff)
			}
		})
	}
}

// JSON has one kind of number: 5.0 and 5e0 are 5.
func TestRWM_20_WholeNumbersInAnyForm(t *testing.T) {
	for data, want := range map[string]request{
		`{"hop":5.0}`:                          {Hop: 5},
		`{"hop":-5.00}`:                        {Hop: -5},
		`{"hop":5e0}`:                          {Hop: 5},
		`{"hop":5E+1}`:                         {Hop: 50},
		`{"hop":1.5e1}`:                        {Hop: 15},
		`{"hop":50e-1}`:                        {Hop: 5},
		`{"hop":-0.0}`:                         {},
		`{"hop" : 5.0 , "small": 2.0}`:         {Hop: 5, Small: 2},
		`{"hop":9223372036854775807.0}`:        {Hop: 9223372036854775807},
		`{"body":"5.0","hop":5.0,"share":0.5}`: {Body: "5.0", Hop: 5, Share: 0.5},
		`{"raw":{"x":5.0,"y":1e2},"any":5.0,"hop":5.0}`: {Raw: json.RawMessage(`{"x":5.0,"y":1e2}`), Any: 5.0, Hop: 5},
	} {
		var got request
		if err := DecodeStrict([]byte(data), 1000, &got); err != nil {
			t.Errorf("DecodeStrict(%s): %v", data, err)
		} else if diff := cmp.Diff(want, got, cmp.AllowUnexported(request{})); diff != "" {
			t.Errorf("DecodeStrict(%s) (-want +got):\n%s", data, diff)
		}
	}
	many := `{"tags":[],"counts":[` + strings.TrimSuffix(strings.Repeat("1.0,", maxRewritten), ",") + `]}`
	var list struct {
		Tags   []string `json:"tags"`
		Counts []int    `json:"counts"`
	}
	if err := DecodeStrict([]byte(many), 1<<20, &list); CodeOf(err) != Invalid || !strings.Contains(err.Error(), "whole numbers") {
		t.Errorf("%d of them: %v", maxRewritten, err)
	}
}

// refused are documents that are no request, and what is said of them.
var refused = []struct{ name, data, says string }{
	{"nothing", "", "empty"},
	{"white space", " \n\t", "empty"},
	{"null for the whole", " null ", "not null"},
	{"a string", `"x"`, "must be a JSON object, not string"},
	{"a number", `7`, "must be a JSON object, not number"},
	{"a list", `[]`, "must be a JSON object, not array"},
	{"an unknown member", `{"bodi":1}`, `unknown member "bodi"`},
	{"wrong case", `{"Body":"x"}`, `unknown member "Body"`},
	{"wrong case of an embedded member", `{"SESSION":"x"}`, `unknown member "SESSION"`},
	{"the embedded struct's own name", `{"caller":{}}`, `unknown member "caller"`},
	{"a hidden member", `{"Hidden":"x"}`, `unknown member "Hidden"`},
	{"an unexported member", `{"secret":"x"}`, `unknown member "secret"`},
	{"unknown deep inside", `{"leaves":[{"next":{"next":{"nam":1}}}]}`, `unknown member "nam"`},
	{"wrong case in a list", `{"leaves":[{},{"Name":"x"}]}`, `unknown member "Name"`},
	{"wrong case in an array", `{"pairs":[{"Name":"x"}]}`, `unknown member "Name"`},
	{"wrong case in a map", `{"named":{"k":{"Name":"x"}}}`, `unknown member "Name"`},
	{"given twice", `{"body":"a","body":"b"}`, `"body" is given twice`},
	{"given twice, once escaped", `{"body":"a","bod\u0079":"b"}`, `"body" is given twice`},
	{"given twice in a list", `{"leaves":[{"name":"a","name":"b"}]}`, `"name" is given twice`},
	{"given twice in a map", `{"named":{"k":{},"k":{}}}`, `"k" is given twice`},
	{"given twice in raw", `{"raw":{"x":{"y":1,"y":2}}}`, `"y" is given twice`},
	{"given twice in any", `{"any":[[{"y":1,"y":2}]]}`, `"y" is given twice`},
	{"given twice in what decodes itself", `{"own":[{"y":1,"y":2}]}`, `"y" is given twice`},
	{"a second object", `{} {}`, "more than one"},
	{"a second brace", `{}}`, "more than one"},
	{"a comma behind", `{},`, "more than one"},
	{"garbage behind", `{}x`, "more than one"},
	{"a zero byte behind", "{}\x00", "more than one"},
	{"cut off", `{"body":"a`, "ends too early"},
	{"cut off between members", `{"body":"a",`, "ends too early"},
	{"cut off after the name", `{"body"`, "ends too early"},
	{"a comma too many", `{"body":"a",}`, "not valid JSON"},
	{"a comma missing", `{"body":"a" "hop":1}`, "not valid JSON"},
	{"wrong bracket", `{"tags":["a"}}`, "not valid JSON"},
	{"a number for a name", `{1:2}`, "not valid JSON"},
	{"a comment", `{/*x*/}`, "not valid JSON"},
	{"single quotes", `{'body':'x'}`, "not valid JSON"},
	{"NaN", `{"hop":NaN}`, "not valid JSON"},
	{"a leading zero", `{"hop":01}`, "not valid JSON"},
	{"a raw newline in a string", "{\"body\":\"a\nb\"}", "not valid JSON"},
	{"a byte order mark", "\ufeff{}", "not valid JSON"},
	{"invalid UTF-8 in a value", "{\"body\":\"a\xff\"}", "not valid UTF-8"},
	{"invalid UTF-8 in a name", "{\"b\xc3\":1}", "not valid UTF-8"},
	{"a surrogate in UTF-8", "{\"body\":\"\xed\xa0\x80\"}", "not valid UTF-8"},
	{"half a character", `{"body":"a\ud800"}`, `\ud800 is half of a character`},
	{"its second half alone", `{"body":"\uDC00b"}`, `\uDC00 is half of a character`},
	{"two first halves", `{"body":"\ud83d\ud83d\ude00"}`, `\ud83d is half of a character`},
	{"halves in the wrong order", `{"body":"\ude00\ud83d"}`, `\ude00 is half of a character`},
	{"a half before a plain escape", `{"body":"\ud83d\n\ude00"}`, `\ud83d is half of a character`},
	{"half a character in a name", `{"bod\ud800":1}`, `\ud800 is half of a character`},
	{"half a character in any", `{"any":[{"x":"\udfff"}]}`, `\udfff is half of a character`},
	{"half a character behind a backslash", `{"body":"\\\ud800"}`, `\ud800 is half of a character`},
	{"an escape cut off", `{"body":"\ud8`, "not valid JSON"},
	{"an escape without digits", `{"body":"\uzzzz"}`, "not valid JSON"},
	{"a sign among the digits of an escape", `{"body":"\u+123"}`, "not valid JSON"},
	{"a float for a whole number", `{"hop":1.5}`, `"hop" must be a whole number, not number 1.5`},
	{"an exponent that leaves a fraction", `{"hop":15e-1}`, `"hop" must be a whole number, not number 15e-1`},
	{"an exponent beyond every number", `{"hop":1e999999999}`, `"hop" must be a whole number`},
	{"a whole float beyond 64 bits", `{"hop":1e19}`, `"hop" must be a whole number`},
	{"a whole float too large for its type", `{"small":2.56e2}`, `"small" must be a whole number`},
	{"a float for a string", `{"body":1.0}`, `"body" must be a string`},
	{"too large a number", `{"hop":9223372036854775808}`, `"hop" must be a whole number`},
	{"too large for its type", `{"small":256}`, `"small" must be a whole number`},
	{"negative for unsigned", `{"small":-1}`, `"small" must be a whole number`},
	{"a string for a number", `{"hop":"1"}`, `"hop" must be a whole number, not string`},
	{"a string for a float", `{"share":"1"}`, `"share" must be a number, not string`},
	{"a number for a string", `{"body":1}`, `"body" must be a string, not number`},
	{"a number for a bool", `{"on":1}`, `"on" must be true or false, not number`},
	{"a string for a list", `{"tags":"a"}`, `"tags" must be a list, not string`},
	{"a number in a list of strings", `{"tags":["a",1]}`, `each of "tags" must be a string, not number`},
	{"a string in a list of objects", `{"leaves":["a"]}`, `each of "leaves" must be a JSON object, not string`},
	{"a member of an element", `{"leaves":[{"name":1}]}`, `"leaves.name" must be a string, not number`},
	{"an object for a list", `{"leaves":{}}`, `"leaves" must be a list, not object`},
	{"a list for an object", `{"named":[]}`, `"named" must be a JSON object, not array`},
	{"too large", `{"body":"` + strings.Repeat("x", 1000) + `"}`, "larger than 1000 bytes"},
}

func TestDecodeStrictRefuses(t *testing.T) {
	for _, tt := range refused {
		t.Run(tt.name, func(t *testing.T) {
			var got request
			err := DecodeStrict([]byte(tt.data), 1000, &got)
			want := Invalid
			if tt.name == "too large" {
				want = TooLarge
			}
			if CodeOf(err) != want || !strings.Contains(fmt.Sprint(err), tt.says) {
				t.Errorf("DecodeStrict(%.60s) = %s %v, want %s with %q", tt.data, CodeOf(err), err, want, tt.says)
			}
		})
	}
}

func TestDecodeStrictKeepsTheErrorOfWhatDecodesItself(t *testing.T) {
	var got request
	err := DecodeStrict([]byte(`{"word":"no"}`), 1000, &got)
	if CodeOf(err) != Conflict || err.Error() != "the word must be yes" {
		t.Errorf("got %s %v", CodeOf(err), err)
	}
}

func TestDecodeAdditivePassesOverWhatANewerVersionAdds(t *testing.T) {
	var got request
	err := DecodeAdditive([]byte(`{"body":"x","later":{"more":[1]},"leaves":[{"name":"a","later":null}]}`), 1000, &got)
	if diff := cmp.Diff(request{Body: "x", Leaves: []leaf{{Name: "a"}}}, got, cmp.AllowUnexported(request{})); err != nil || diff != "" {
		t.Errorf("DecodeAdditive: %v (-want +got):\n%s", err, diff)
	}
	for _, data := range []string{`{"later":1,"later":2}`, `{"body":1}`, `{} {}`, `null`, `{"later":"\ud800"}`} {
		if err := DecodeAdditive([]byte(data), 1000, &got); CodeOf(err) != Invalid {
			t.Errorf("DecodeAdditive(%s) = %v, want it refused", data, err)
		}
	}
}

func TestDecodeStrictBounds(t *testing.T) {
	nested := func(levels int, inner string) []byte {
		return []byte(`{"any":` + strings.Repeat("[", levels-1) + inner + strings.Repeat("]", levels-1) + `}`)
	}
	for _, tt := range []struct {
		name string
		data []byte
		ok   bool
	}{
		{"as deep as allowed", nested(maxDecodeDepth, ""), true},
		{"as deep as allowed with a value", nested(maxDecodeDepth, "1"), true},
		{"one list deeper", nested(maxDecodeDepth+1, ""), false},
		{"one object deeper", nested(maxDecodeDepth, "{}"), false},
		{"100,000 levels", nested(100_000, ""), false},
		{"100,000 open brackets", bytes.Repeat([]byte("["), 100_000), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got request
			if err := DecodeStrict(tt.data, 1<<20, &got); (err == nil) != tt.ok {
				t.Errorf("got %v, want accepted %t", err, tt.ok)
			}
		})
	}
	t.Run("exactly as large as allowed", func(t *testing.T) {
		data := []byte(`{"body":"x"}`)
		var got request
		if err := DecodeStrict(data, len(data), &got); err != nil {
			t.Error(err)
		}
		if err := DecodeStrict(data, len(data)-1, &got); CodeOf(err) != TooLarge {
			t.Errorf("one byte over: %v", err)
		}
	})
	t.Run("a list of structs", func(t *testing.T) {
		var got []leaf
		if err := DecodeStrict([]byte(`[{"name":"a"},{"Name":"b"}]`), 1000, &got); CodeOf(err) != Invalid {
			t.Errorf("wrong case in a list was accepted: %v", err)
		}
	})
}

// FuzzDecodeStrict: whatever comes in, it never panics, every refusal is an
// Error for people, and what is accepted holds only members of the type, each
// once: encoding it again loses nothing.
func FuzzDecodeStrict(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `[1,2]`, `{"session":"a","body":"x","hop":3}`, `{"body":"a","body":"b"}`, `{"Body":1}`,
		`{"leaves":[{"name":"a","next":{"name":"b"}}],"named":{"k":{"name":"x"}}}`, `{"any":[[[{"x":{}}]]]}`,
		`{"share":1e400}`, `{"word":"yes","own":[],"raw":1}`, "{\"body\":\"\xff\"}", `{"hop":1.0}`, `{"body":"\ud83d\ude00\ud800"}`, `{} {}`, `{"NoTag":null}`,
	} {
		f.Add([]byte(seed))
	}
	known := map[string]bool{}
	for _, name := range []string{"session", "Plain", "body", "hop", "small", "share", "on", "tags", "leaves", "pairs", "named", "word", "own", "raw", "any", "NoTag"} {
		known[name] = true
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got request
		if err := DecodeStrict(data, 1<<16, &got); err != nil {
			if _, isError := err.(*Error); !isError || err.Error() == "" { //nolint:errorlint // the type itself is promised
				t.Fatalf("refused with %T %v", err, err)
			}
			return
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(data, &members); err != nil {
			t.Fatalf("accepted what encoding/json refuses: %v", err)
		}
		for name := range members {
			if !known[name] {
				t.Fatalf("accepted the unknown member %q", name)
			}
		}
		again, err := json.Marshal(got)
		if err != nil {
			t.Fatalf("encode what was accepted: %v", err)
		}
		var second request
		if err := DecodeStrict(again, 1<<20, &second); err != nil {
			t.Fatalf("refused its own encoding %s: %v", again, err)
		}
		third, err := json.Marshal(second)
		if err != nil || !bytes.Equal(again, third) {
			t.Fatalf("not stable (%v):\n%s\n%s", err, again, third)
		}
	})
}

// BenchmarkDecodeStrict reads the arguments of a send, the most frequent call.
func BenchmarkDecodeStrict(b *testing.B) {
	data := []byte(`{"session":"0b5e6a52-6f9e-4f6e-9d0e-6a2d1f0c9b11","body":"` + strings.Repeat("x", 500) + `","hop":1,"tags":["a","b"]}`)
	for b.Loop() {
		var got request
		if err := DecodeStrict(data, 1<<16, &got); err != nil {
			b.Fatal(err)
		}
	}
}
