package bridge

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzSEC_06_Visible: whatever an agent says, nothing that a person is shown moves the
// terminal's cursor, changes the order of characters or hides, and showing it again
// changes nothing.
func FuzzSEC_06_Visible(f *testing.F) {
	for _, seed := range []string{
		"plain", "\x1b]52;c;aGk=\x07", "a\u202eb", "\u009b31m", "e\ufe0f", "👩\u200d👧", "\U000E0041", "\xff\xfe", "a\r\nb\rc\td", "\u2028", "1\ufe0f\u20e3", "🏴\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F",
		"\u00ad\u034f\u061c\u3164\uffa0", "क\u200dष",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, show := range map[string]func(string) string{"Visible": Visible, "VisibleLine": VisibleLine, "VisibleExact": VisibleExact} {
			shown := show(text)
			if !utf8.ValidString(shown) {
				t.Fatalf("%s(%q) = %q is no UTF-8", name, text, shown)
			}
			for _, r := range shown {
				if unicode.IsControl(r) && (name == "VisibleLine" || r != '\n' && r != '\t') || unicode.Is(unicode.Bidi_Control, r) {
					t.Fatalf("%s(%q) = %q has %U", name, text, shown, r)
				}
			}
			if again := show(shown); again != shown {
				t.Fatalf("%s(%q) = %q, and of that %q", name, text, shown, again)
			}
		}
		if exact := VisibleExact(text); strings.ContainsFunc(exact, func(r rune) bool { return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r) }) {
			t.Fatalf("VisibleExact(%q) = %q has a character that nobody sees", text, exact)
		}
	})
}
