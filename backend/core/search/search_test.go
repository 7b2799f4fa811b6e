package search

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"bridge/backend/core/bridge"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct{ typed, want string }{
		{"deploy", `"deploy"`},
		{"deploy the server", `"deploy" AND "the" AND "server"`},
		{`say "not now" please`, `"say" AND "not now" AND "please"`},
		{`open "quote`, `"open" AND "quote"`},
		{"foo-bar.go", `"foo bar go"`},
		{`a" OR b* NEAR(c) ^d {e}: -f`, `"a" AND "OR b NEAR c d e f"`},
		{"café Grün 東京 ٣", `"café" AND "Grün" AND "東京" AND "٣"`},
		{"nul\x00byte\ttab", `"nul byte" AND "tab"`},
	} {
		q, err := Parse(tt.typed)
		if err != nil || q.FTS5() != tt.want {
			t.Errorf("Parse(%q) = %s, %v; want %s", tt.typed, q.FTS5(), err, tt.want)
		}
	}
	for _, typed := range []string{"", " ", `""`, "--- ✓ %_", "\xff", strings.Repeat("a ", maxPhrases+1), strings.Repeat("a", 1_001)} {
		if _, err := Parse(typed); bridge.CodeOf(err) != bridge.Invalid && bridge.CodeOf(err) != bridge.TooLarge {
			t.Errorf("Parse(%.20q) = %v, want a refusal", typed, err)
		}
	}
}

// shown writes a snippet with brackets around its hits.
func shown(parts []Part) string {
	var b strings.Builder
	for _, p := range parts {
		if p.Hit {
			b.WriteString("[" + p.Text + "]")
		} else {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

func TestSnippet(t *testing.T) {
	far := strings.Repeat("before ", 100)
	for _, tt := range []struct{ name, typed, text, want string }{
		{"a word in any case", "deploy", "Deploy it; DEPLOY; deployed", "[Deploy] it; [DEPLOY]; deployed"},
		{"diacritics", "cafe GRÜN", "un Café grün", "un [Café] [grün]"},
		{"a word that begins with a diacritic, and one that is nothing else", "ecoute e", "Écoute é", "[Écoute] [é]"},
		{"60 characters before it, the first a space", "here", strings.Repeat("a", 100) + " " + strings.Repeat("b", 58) + " here", "…" + strings.Repeat("b", 58) + " [here]"},
		{"a phrase", `"the server"`, "server the server\n\n the", "server [the server] the"},
		{"a dotted word", "main.go", "see main.go or main/go, not main or go", "see [main.go] or [main/go], not main or go"},
		{"no HTML is made or lost", "b", "<b>&amp;</b>", "<[b]>&amp;</[b]>"},
		{"far inside", "here", far + "here " + far, "…" + strings.Repeat("before ", 8) + "[here] " + strings.TrimSpace(strings.Repeat("before ", 25)) + "…"},
		{"nothing to mark", "absent", "some text", "some text"},
		{"no text", "absent", "", ""},
	} {
		q, err := Parse(tt.typed)
		if err != nil {
			t.Fatal(err)
		}
		if got := shown(q.Snippet(tt.text)); got != tt.want {
			t.Errorf("%s: %s\nwant: %s", tt.name, got, tt.want)
		}
	}
}

func FuzzSearch(f *testing.F) {
	f.Add("deploy", "Deploy it")
	f.Add(`"a b" c`, "a\nb \xff…é́")
	f.Fuzz(func(t *testing.T, typed, text string) {
		q, err := Parse(typed)
		if err != nil {
			return
		}
		text = strings.ToValidUTF8(text, "?")
		whole := ""
		for _, part := range q.Snippet(text) {
			if !utf8.ValidString(part.Text) || part.Text == "" {
				t.Fatalf("part %q", part.Text)
			}
			whole += part.Text
		}
		plain := strings.Join(strings.Fields(text), " ")
		if !strings.Contains(plain, strings.TrimSuffix(strings.TrimPrefix(whole, "…"), "…")) && !strings.Contains(plain, "…") {
			t.Fatalf("%q is no piece of %q", whole, plain)
		}
	})
}

func TestAKindIsParsed(t *testing.T) {
	for _, tt := range []struct {
		raw    string
		want   []Kind
		refuse string
	}{
		{"", Kinds(), ""}, {"run", []Kind{Run}, ""}, {"message", []Kind{Message}, ""}, {"mail", nil, "kind must be message, decision or run"},
	} {
		got, err := ParseKind(tt.raw, Kinds())
		if !slices.Equal(got, tt.want) || (err == nil) != (tt.refuse == "") || err != nil && !strings.Contains(err.Error(), tt.refuse) {
			t.Errorf("%q: %v, %v", tt.raw, got, err)
		}
	}
}

func TestAQueryHas32PhrasesAtMost(t *testing.T) {
	for n, code := range map[int]bridge.Code{maxPhrases: "", maxPhrases + 1: bridge.Invalid} {
		if _, err := Parse(strings.Repeat("a ", n)); bridge.CodeOf(err) != code {
			t.Errorf("%d words: %v", n, err)
		}
	}
}

func TestTheLongestPhraseIsMarked(t *testing.T) {
	for _, typed := range []string{`the "the server"`, `"the server" the`} {
		q, err := Parse(typed)
		if err != nil {
			t.Fatal(err)
		}
		if got := shown(q.Snippet("ask the server or the other")); got != "ask [the server] or [the] other" {
			t.Errorf("%s: %s", typed, got)
		}
	}
}
