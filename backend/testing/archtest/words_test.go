package archtest

import (
	"slices"
	"strings"
	"testing"
)

func TestWordsThatWereGivenUpStayAway(t *testing.T) { report(t, checkWords(module(t))) }

func TestCheckWordsFindsWhatWasGivenUp(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"a function", "func tryLend() {}", `"tryLend" was given up: say lease`},
		{"a type", "type Keeper struct{}", `"Keeper"`},
		{"a field", "type T struct{ coldRows int }", `"coldRows"`},
		{"a variable", "var theLoan int", `"theLoan"`},
		{"a local variable", "func f() { loan := 1; _ = loan }", `"loan"`},
		{"a variable without a noun", "func f() { one := 1; _ = one }", `"one" was given up: say the noun`},
		{"a variable of a loop", "func f(all []int) { for _, one := range all { _ = one } }", `"one"`},
		{"a part of a longer name", "var oneLine int", ""},
		{"an argument", "func f(supplement string) {}", `"supplement"`},
		{"a phrase", "// f can not do it.\nfunc f() {}", `"can not"`},
		{"a name that others gave", "var _ = loan", ""},
		{"a member's name", "type T struct{ Lease string `json:\"loan\"` }", ""},
		{"a part of another word", "func blend() {}", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.Join(checkWords([]source{parse(t, "backend/core/chat/c.go", "package chat\n\n"+tt.text+"\n")}), "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("problems = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestWordsOfAName(t *testing.T) {
	for name, want := range map[string][]string{
		"tryLend": {"try", "lend"}, "TestMSG_06_Loan": {"test", "m", "s", "g", "06", "loan"}, "x": {"x"}, "_": nil,
	} {
		if got := wordsOf(name); !slices.Equal(got, want) {
			t.Errorf("wordsOf(%q) = %q, want %q", name, got, want)
		}
	}
}
