package setup

import (
	"strings"
	"unicode/utf8"
)

// The limits of a shown diff, which a person reads before consenting. Edit.Adds
// also describes the change in words.
const (
	diffContext  = 2       // unchanged lines shown around each change
	diffLines    = 400     // shown at most
	diffWidth    = 240     // bytes of a line shown at most
	diffCompared = 4 << 20 // cells of the table that compares the changed middle
)

// leftOut replaces omitted lines.
const leftOut = "…"

// Diff returns the edit as lines that begin with a space, + or -. It replaces
// unchanged lines with leftOut, except around a change.
func (e Edit) Diff() []string {
	before, after := textLines(e.Before), textLines(e.After)
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
			kept = append(kept, clipLine(line))
		case len(kept) == 0 || kept[len(kept)-1] != leftOut:
			kept = append(kept, leftOut)
		}
	}
	return kept
}

// clipLine bounds one line, because a settings file may be a single line.
func clipLine(line string) string {
	if len(line) <= diffWidth {
		return line
	}
	end := diffWidth
	for end > 0 && !utf8.RuneStart(line[end]) {
		end--
	}
	return line[:end] + leftOut
}
