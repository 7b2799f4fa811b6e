package bridge

import (
	"cmp"
	"slices"
	"strings"
)

// Closest returns the names with those first that begin with what was typed, then those that
// are most like it, whatever their letter case. Equally close ones keep their order.
func Closest(typed string, names []string) []string {
	other := func(name string) int {
		if begins(name, typed) {
			return 0
		}
		return 1
	}
	return slices.SortedStableFunc(slices.Values(names), func(a, b string) int {
		return cmp.Or(cmp.Compare(other(a), other(b)), cmp.Compare(distance(typed, a), distance(typed, b)))
	})
}

// begins reports whether a name begins with what was typed, which is more than dashes.
func begins(name, typed string) bool {
	return strings.Trim(typed, "-") != "" && strings.HasPrefix(strings.ToLower(name), strings.ToLower(typed))
}

// mostAlike is how many names Similar returns at most.
const mostAlike = 3

// Similar returns the few names that may have been meant by what was typed, the closest
// first: those that begin with it, or differ in two letters, of short ones in one.
func Similar(typed string, names []string) []string {
	var like []string
	for _, name := range Closest(typed, names) {
		bound := 1
		if len(typed) > 3 {
			bound = 2
		}
		if (begins(name, typed) || distance(typed, name) <= bound) && len(like) < mostAlike {
			like = append(like, name)
		}
	}
	return like
}

// distance counts the letters that differ: put in, left out, replaced, or swapped with the
// one beside them. Letter case does not count.
func distance(a, b string) int {
	from, to := []rune(strings.ToLower(a)), []rune(strings.ToLower(b))
	rows := make([][]int, len(from)+1)
	for i := range rows {
		rows[i] = make([]int, len(to)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(from); i++ {
		for j := 1; j <= len(to); j++ {
			replaced := rows[i-1][j-1]
			if from[i-1] != to[j-1] {
				replaced++
			}
			rows[i][j] = min(replaced, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && from[i-1] == to[j-2] && from[i-2] == to[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(from)][len(to)]
}
