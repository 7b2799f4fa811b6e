package archtest

import (
	"strings"
	"testing"
)

func TestDOC_02_FieldsAndVariablesHaveNouns(t *testing.T) { report(t, checkNouns(module(t))) }

func TestDOC_02_NamesWithoutANounAreSeen(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"a field", "type T struct{ of string }", `c.go:3: "of" is no noun`},
		{"a field of a local struct", "var _ = []struct{ by string }{}", `"by"`},
		{"a field beside another", "type T struct{ name, to string }", `"to"`},
		{"the ends of a range", "type T struct {\n\tfrom int\n\tto int\n}", ""},
		{"a parameter", "func f(it string) {}", `"it"`},
		{"a parameter of an interface", "type T interface{ Answer(by string) }", `"by"`},
		{"a recipient", "func f(to string) {}", `"to"`},
		{"a move", "func f(from, to string) {}", ""},
		{"a from among the results", "func f(to string) (from string) { return to }", `"to"`},
		{"a result", "func f() (by string) { return }", `"by"`},
		{"a variable", "func f() { to := 1; _ = to }", `"to"`},
		{"a variable of a loop", "func f(m map[int]int) { for _, of := range m { _ = of } }", `"of"`},
		{"a declared variable", "var one int", `"one"`},
		{"a participle", "func f() { said := 1; _ = said }", `"said" is no noun: say text, output, request`},
		{"a result that is an adverb", "func f() (again bool) { return }", `"again"`},
		{"a field of what remains", "type T struct{ left int }", `"left"`},
		{"a participle in a longer name", "type T struct{ askedAt int }", ""},
		{"an embedded field", "type T struct{ error }", ""},
		{"a part of a longer name", "type T struct{ sentTo string }", ""},
		{"an assignment to a field", "func f(t struct{ A int }) { t.A = 1 }", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.Join(checkNouns([]source{parse(t, "backend/core/chat/c.go", "package chat\n\n"+tt.text+"\n")}), "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("problems = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestDOC_02_SomeFoldersHaveOlderNames(t *testing.T) {
	for text, want := range map[string]int{"var said int": 0, "var it int": 1} {
		if got := checkNouns([]source{parse(t, "backend/agent/c.go", "package agent\n\n"+text+"\n")}); len(got) != want {
			t.Errorf("problems of %q = %q, want %d", text, got, want)
		}
	}
}

func TestDOC_02_ATestMayHaveSuchATable(t *testing.T) {
	if got := checkNouns([]source{parse(t, "backend/core/chat/c_test.go", "package chat\n\nvar _ = struct{ to, of string }{}\n")}); len(got) > 0 {
		t.Errorf("problems = %q", got)
	}
}
