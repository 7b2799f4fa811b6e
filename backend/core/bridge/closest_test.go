package bridge

import (
	"slices"
	"strings"
	"testing"
)

func TestDOC_07_TheClosestNamesComeFirst(t *testing.T) {
	for _, c := range []struct{ typed, names, closest, similar string }{
		{"statu", "send serve stats status", "status stats send serve", "status stats"},
		{"stauts", "status stats", "status stats", "status stats"},
		{"API", "docs api web", "api web docs", "api"},
		{"ap", "web docs api", "api web docs", "api"},
		{"nonsense", "status send", "send status", ""},
		{"", "b a", "b a", "b a"},
		{"--jsn", "--home --json", "--json --home", "--json"},
		{"ser", "service send serve", "serve service send", "serve service"},
		{"ä", "ö ab", "ö ab", "ö"},
		{"x", "a b c d", "a b c d", "a b c"},
	} {
		names := strings.Fields(c.names)
		if got := strings.Join(Closest(c.typed, names), " "); got != c.closest {
			t.Errorf("Closest(%q) = %q, want %q", c.typed, got, c.closest)
		}
		if got := strings.Join(Similar(c.typed, names), " "); got != c.similar {
			t.Errorf("Similar(%q) = %q, want %q", c.typed, got, c.similar)
		}
		if got := strings.Join(names, " "); got != c.names || !slices.Equal(names, strings.Fields(c.names)) {
			t.Errorf("the names are changed to %q", got)
		}
	}
}
