package bridge

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// readTable reads a table that the page's tests read, too.
func readTable[T any](t *testing.T, file string) (rows []T) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &rows); err != nil || len(rows) == 0 {
		t.Fatalf("%s: %d rows, %v", file, len(rows), err)
	}
	return rows
}

func TestSEC_06_HiddenCharactersAreMadeVisible(t *testing.T) {
	for _, row := range readTable[struct{ Name, Given, Visible, Line, Exact string }](t, "visible.json") {
		for _, form := range []struct {
			name, want string
			say        func(string) string
		}{{"Visible", row.Visible, Visible}, {"VisibleLine", row.Line, VisibleLine}, {"VisibleExact", row.Exact, VisibleExact}} {
			got := form.say(row.Given)
			if got != form.want {
				t.Errorf("%s: %s(%+q) = %+q, want %+q", row.Name, form.name, row.Given, got, form.want)
			}
			if again := form.say(got); again != got {
				t.Errorf("%s: %s of what is visible is %+q, no longer %+q", row.Name, form.name, again, got)
			}
		}
		if line := OneLine(row.Given); VisibleLine(row.Given) != Visible(line) || strings.ContainsFunc(line, breaksLine) {
			t.Errorf("%s: OneLine(%+q) = %+q", row.Name, row.Given, line)
		}
	}
}

// Each code point by itself: the table says which are shown, and the page has the same.
func TestSEC_06_EveryCodePointIsOneOrTheOther(t *testing.T) {
	lone := readTable[struct {
		From, To rune
		Form     string
	}](t, "hidden.json")
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		form := ""
		for _, test := range lone {
			if r >= test.From && r <= test.To {
				form = test.Form
			}
		}
		given := string(r)
		if isShown := Visible(given) != given; isShown != (form == "always") {
			t.Fatalf("U+%04X is %q, want form %q", r, Visible(given), form)
		}
		if isShown := VisibleExact(given) != given; isShown != (form != "") {
			t.Fatalf("U+%04X is exactly %q, want form %q", r, VisibleExact(given), form)
		}
		mustShow := unicode.In(r, unicode.Cf, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control, unicode.Variation_Selector,
			unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point, unicode.Zs, unicode.Co) && !strings.ContainsRune("\n\t ", r)
		if mustShow && form == "" {
			t.Fatalf("U+%04X is hidden and stands in no table", r)
		}
	}
}

func TestSEC_06_BytesThatAreNoText(t *testing.T) {
	for given, want := range map[string]string{
		"a\xffb": `a\xffb`, "\xc3": `\xc3`, "\xed\xa0\x80": `\xed\xa0\x80`, "\xf4\x90\x80\x80": `\xf4\x90\x80\x80`, "ü\x9b2K": `ü\x9b2K`,
	} {
		if got := VisibleExact(given); got != want || Visible(given) != want || VisibleLine(given) != want {
			t.Errorf("VisibleExact(%q) = %q, want %q", given, got, want)
		}
	}
	if got := OneLine("\xff\n\x1b"); got != "\xff\\n\x1b" {
		t.Errorf("OneLine changes more than line ends: %q", got)
	}
}
