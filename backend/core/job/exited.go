package job

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// maxLastWords is how many bytes of a CLI's last words are told (JOB-27).
const maxLastWords = 4 << 10

// Words tell in one line how the process ended, and what it said last.
func (e Exited) Words() string {
	words := fmt.Sprintf("exit code %d", e.Code)
	if e.Signal != "" {
		words = "ended by " + e.Signal
	}
	if last := lastWords(e.Stderr); last != "" {
		return words + "; it said last: " + last
	}
	return words + "; it said nothing"
}

// escapes are what a program says to a terminal: colours, titles, moves.
var escapes = regexp.MustCompile(`\x1b(\[[0-9;:?<=>]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-_])`)

// lastWords are the end of what a program has said, in one line, without what means
// something to a terminal alone.
func lastWords(said string) string {
	said = escapes.ReplaceAllString(strings.ToValidUTF8(said, "\uFFFD"), "")
	var lines []string
	for line := range strings.FieldsFuncSeq(said, func(r rune) bool { return r == '\n' || r == '\r' }) {
		words := strings.FieldsFunc(line, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
		if len(words) > 0 {
			lines = append(lines, strings.Join(words, " "))
		}
	}
	const cut = "…"
	words := strings.Join(lines, " / ")
	if len(words) > maxLastWords {
		words = cut + strings.ToValidUTF8(words[len(words)-maxLastWords+len(cut):], "")
	}
	return words
}
