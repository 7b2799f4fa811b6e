package bridge

import (
	"cmp"
	"slices"
	"strings"
)

// Closest sorts names: first those that begin with the typed text, then by similarity,
// ignoring letter case. Equally similar names keep their order.
func Closest(typed string, names []string) []string {
	other := func(name string) int {
		if hasPrefix(name, typed) {
			return 0
		}
		return 1
	}
	return slices.SortedStableFunc(slices.Values(names), func(a, b string) int {
		return cmp.Or(cmp.Compare(other(a), other(b)), cmp.Compare(distance(typed, a), distance(typed, b)))
	})
}

// hasPrefix reports whether a name hasPrefix with the typed text, which must be more than dashes.
func hasPrefix(name, typed string) bool {
	return strings.Trim(typed, "-") != "" && strings.HasPrefix(strings.ToLower(name), strings.ToLower(typed))
}

// mostAlike limits the names that Similar returns.
const mostAlike = 3

// Similar returns the few names that the typed text may mean, the closest first. They
// begin with it, or differ in at most two letters (one for short texts).
func Similar(typed string, names []string) []string {
	var like []string
	for _, name := range Closest(typed, names) {
		bound := 1
		if len(typed) > 3 {
			bound = 2
		}
		if (hasPrefix(name, typed) || distance(typed, name) <= bound) && len(like) < mostAlike {
			like = append(like, name)
		}
	}
	return like
}

// distance counts the differing letters: inserted, omitted, replaced, or swapped with a
// neighbour. Letter case does not count.
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

// DidYouMean returns the question "Did you mean NAME?" about the name that is most similar
// to the typed text, or "" if none is similar.
func DidYouMean(typed string, names []string) string {
	like := Similar(typed, names)
	if len(like) == 0 {
		return ""
	}
	return "Did you mean " + like[0] + "?"
}
