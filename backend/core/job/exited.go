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
	text := fmt.Sprintf("exit code %d", e.Code)
	if e.Signal != "" {
		text = "ended by " + e.Signal
	}
	if last := lastWords(e.Stderr); last != "" {
		return text + "; it said last: " + last
	}
	return text + "; it said nothing"
}

// escapes matches terminal escape sequences: colours, titles, moves.
var escapes = regexp.MustCompile(`\x1b(\[[0-9;:?<=>]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-_])`)

// lastWords returns the end of a program's output in one line, without terminal
// escapes.
func lastWords(output string) string {
	output = escapes.ReplaceAllString(strings.ToValidUTF8(output, "\uFFFD"), "")
	var lines []string
	for line := range strings.FieldsFuncSeq(output, func(r rune) bool { return r == '\n' || r == '\r' }) {
		parts := strings.FieldsFunc(line, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
		if len(parts) > 0 {
			lines = append(lines, strings.Join(parts, " "))
		}
	}
	const cut = "…"
	text := strings.Join(lines, " / ")
	if len(text) > maxLastWords {
		text = cut + strings.ToValidUTF8(text[len(text)-maxLastWords+len(cut):], "")
	}
	return text
}
