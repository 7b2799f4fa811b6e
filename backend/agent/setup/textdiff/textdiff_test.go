package textdiff

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestDiffShowsWhatChangesAndALittleAround(t *testing.T) {
	tests := []struct {
		name          string
		before, after []byte
		want          string
	}{
		{"a new file", nil, []byte("a\nb\n"), "+a|+b"},
		{"a file that goes", []byte("a\n"), nil, "-a"},
		{"one line in the middle", []byte("1\n2\n3\n4\n5\n6\n7\n"), []byte("1\n2\n3\nx\n4\n5\n6\n7\n"), "…| 2| 3|+x| 4| 5|…"},
		{"two places", []byte("1\n2\n3\n4\n5\n6\n7\n8\n"), []byte("a\n2\n3\n4\n5\n6\n7\nb\n"), "-1|+a| 2| 3|…| 6| 7|-8|+b"},
		{"nothing", []byte("1\n"), []byte("1\n"), "…"},
		{"one long line", []byte(strings.Repeat("x", 300)), []byte("y"), "-" + strings.Repeat("x", 239) + "…|+y"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Lines(tt.before, tt.after)
			if diff := cmp.Diff(tt.want, strings.Join(got, "|")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDiffOfAHugeChangeStaysReadable(t *testing.T) {
	if got := Lines([]byte(strings.Repeat("old\n", 5000)), []byte(strings.Repeat("new\n", 5000))); len(got) != diffLines+1 || got[diffLines] != leftOut {
		t.Errorf("%d lines, the last %q", len(got), got[len(got)-1])
	}
}

func TestPGE_13_ACutLineShowsItsDifference(t *testing.T) {
	long, x := strings.Repeat("a", 1000), strings.Repeat("é", 500)
	for _, tt := range []struct {
		name          string
		before, after string
		shows         []string // in the removed and the added line
	}{
		{"one line", long + "old" + long, long + "new" + long, []string{"old", "new"}},
		{"at the end", long + "old", long + "new", []string{"old", "new"}},
		{"runes of several bytes", x + "old" + x, x + "new" + x, []string{"old", "new"}},
		{"the second of two", long + "\n" + long + "old", "b" + long + "\n" + long + "new", []string{"old", "new"}},
		{"at the start", "old" + long, "new" + long, []string{"old", "new"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lines := Lines([]byte(tt.before), []byte(tt.after))
			for i, mark := range []string{"-", "+"} {
				if !slices.ContainsFunc(lines, func(line string) bool {
					return strings.HasPrefix(line, mark) && strings.Contains(line, tt.shows[i])
				}) {
					t.Errorf("no %s line shows %q: %q", mark, tt.shows[i], lines)
				}
			}
			for _, line := range lines {
				if len(line) > diffWidth+2*len(leftOut) || !utf8.ValidString(line) {
					t.Errorf("a line of %d bytes: %q", len(line), line)
				}
			}
		})
	}
}

// FuzzPGE_13_Lines checks that a shown change is valid text, bounded, and shows a line
// of each side that differs.
func FuzzPGE_13_Lines(f *testing.F) {
	for _, seed := range [][2]string{{"", ""}, {"a\n", "b\n"}, {"a\nb", "a\r\nb"}, {strings.Repeat("x", 500), strings.Repeat("x", 499) + "é"}, {"\n\n\n", "\n"}, {"…", "-"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		if !utf8.ValidString(before) || !utf8.ValidString(after) || len(before)+len(after) > 1<<14 {
			t.Skip()
		}
		lines := Lines([]byte(before), []byte(after))
		if len(lines) > diffLines+1 {
			t.Fatalf("%d lines", len(lines))
		}
		marks := map[byte]bool{}
		for _, line := range lines {
			if !utf8.ValidString(line) || len(line) > diffWidth+2*len(leftOut) {
				t.Fatalf("a line of %d bytes: %q", len(line), line)
			}
			marks[line[0]] = true
		}
		same := slices.Equal(textLines([]byte(before)), textLines([]byte(after)))
		if same == (marks['+'] || marks['-']) {
			t.Fatalf("%q and %q: %q", before, after, lines)
		}
	})
}
