package setup

import (
	"strings"
	"testing"

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
			got := Edit{Before: tt.before, After: tt.after}.Diff()
			if diff := cmp.Diff(tt.want, strings.Join(got, "|")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDiffOfAHugeChangeStaysReadable(t *testing.T) {
	edit := Edit{Before: []byte(strings.Repeat("old\n", 5000)), After: []byte(strings.Repeat("new\n", 5000))}
	if got := edit.Diff(); len(got) != diffLines+1 || got[diffLines] != leftOut {
		t.Errorf("%d lines, the last %q", len(got), got[len(got)-1])
	}
}
