package job

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// maxLastWords limits the reported end of a CLI's output, in bytes (JOB-27).
const maxLastWords = 4 << 10

// Words returns one line with the end of the process and its last output.
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

// escapes matches terminal escape sequences: colours, titles, moves.
var escapes = regexp.MustCompile(`\x1b(\[[0-9;:?<=>]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-_])`)

// lastWords returns the end of a program's output in one line, without terminal
// escapes.
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
