// Package textdiff shows the change of a text file as lines that a person reads before
// consenting to it (PGE-13).
package textdiff

import (
	"strings"
	"unicode/utf8"
)

// The limits of a shown diff. Long lines
// are cut around their difference.
const (
	diffContext  = 2       // unchanged lines shown around each change
	diffLines    = 400     // shown at most
	diffWidth    = 240     // bytes of a line shown at most
	diffLead     = 40      // bytes shown before the first difference of a cut line
	diffCompared = 4 << 20 // cells of the table that compares the changed middle
)

// leftOut replaces omitted lines.
const leftOut = "…"

// Lines returns the change from before to after as lines that begin with a space, + or
// -. It replaces unchanged lines with "…", except around a change, and cuts long lines
// so that the difference stays visible.
func Lines(old, changed []byte) []string {
	before, after := textLines(old), textLines(changed)
	head := 0
	for head < len(before) && head < len(after) && before[head] == after[head] {
		head++
	}
	tail := 0
	for tail < len(before)-head && tail < len(after)-head && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	var lines []string
	for _, line := range before[:head] {
		lines = append(lines, " "+line)
	}
	lines = append(lines, compareLines(before[head:len(before)-tail], after[head:len(after)-tail])...)
	for _, line := range before[len(before)-tail:] {
		lines = append(lines, " "+line)
	}
	return shown(lines)
}

func textLines(data []byte) []string {
	if len(data) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// compareLines finds the longest common lines of both. For too many lines it
// returns all old ones and then all new ones.
func compareLines(before, after []string) []string {
	var lines []string
	if len(before)*len(after) > diffCompared {
		return append(marked("-", before), marked("+", after)...)
	}
	common := make([][]int, len(before)+1) // the length of the common lines from i and j
	for i := range common {
		common[i] = make([]int, len(after)+1)
	}
	for i := len(before) - 1; i >= 0; i-- {
		for j := len(after) - 1; j >= 0; j-- {
			if before[i] == after[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(before) && j < len(after) {
		switch {
		case before[i] == after[j]:
			lines = append(lines, " "+before[i])
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			lines = append(lines, "-"+before[i])
			i++
		default:
			lines = append(lines, "+"+after[j])
			j++
		}
	}
	return append(append(lines, marked("-", before[i:])...), marked("+", after[j:])...)
}

func marked(mark string, lines []string) []string {
	var all []string
	for _, line := range lines {
		all = append(all, mark+line)
	}
	return all
}

// shown keeps the changed lines with some context, within the limits.
func shown(lines []string) []string {
	near := make([]bool, len(lines))
	for i, line := range lines {
		if line[0] == ' ' {
			continue
		}
		for k := max(0, i-diffContext); k <= min(len(lines)-1, i+diffContext); k++ {
			near[k] = true
		}
	}
	kept := []string{}
	for i, line := range lines {
		switch {
		case near[i] && len(kept) < diffLines:
			kept = append(kept, clipLine(line, firstDifference(lines, i)))
		case len(kept) == 0 || kept[len(kept)-1] != leftOut:
			kept = append(kept, leftOut)
		}
	}
	return kept
}

// firstDifference returns the byte at which a changed line differs from the line that
// replaces it, or that it replaces: the one at the same position of the neighbouring
// lines with the other mark. It returns 0 for a line without one.
func firstDifference(lines []string, i int) int {
	other := counterpart(lines, i)
	if other < 0 {
		return 0
	}
	a, b := lines[i][1:], lines[other][1:]
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n + 1
}

// counterpart returns the index of the line that replaces line i or is replaced by it,
// or -1.
func counterpart(lines []string, i int) int {
	mark := lines[i][0]
	if mark == ' ' {
		return -1
	}
	start := i
	for start > 0 && lines[start-1][0] == mark {
		start--
	}
	end := i + 1
	for end < len(lines) && lines[end][0] == mark {
		end++
	}
	if mark == '-' {
		if other := end + i - start; other < len(lines) && allMarked(lines[end:other+1], '+') {
			return other
		}
		return -1
	}
	removed := start
	for removed > 0 && lines[removed-1][0] == '-' {
		removed--
	}
	if other := removed + i - start; other < start {
		return other
	}
	return -1
}

func allMarked(lines []string, mark byte) bool {
	for _, line := range lines {
		if line[0] != mark {
			return false
		}
	}
	return true
}

// clipLine bounds one line, because a settings file may be a single line. It keeps the
// mark and the bytes around the position of the difference.
func clipLine(line string, difference int) string {
	if len(line) <= diffWidth {
		return line
	}
	start := max(1, min(difference-diffLead, len(line)-diffWidth+1))
	for start > 1 && !utf8.RuneStart(line[start]) {
		start--
	}
	end := min(start+diffWidth-1, len(line))
	for end < len(line) && !utf8.RuneStart(line[end]) {
		end--
	}
	text := line[start:end]
	if start > 1 {
		text = leftOut + text
	}
	if end < len(line) {
		text += leftOut
	}
	return line[:1] + text
}
