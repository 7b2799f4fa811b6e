package job

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestJOB_27_HowAnAgentEndedIsToldWithItsLastWords(t *testing.T) {
	for name, tt := range map[string]struct {
		exited Exited
		want   string
	}{
		"a code":        {Exited{Code: 3, Stderr: "cannot go on\n"}, "exit code 3; it said last: cannot go on"},
		"a signal":      {Exited{Code: -1, Signal: "SIGSEGV"}, "ended by SIGSEGV; it said nothing"},
		"several lines": {Exited{Code: 1, Stderr: "\n  one \r\n\n two\tthree\n"}, "exit code 1; it said last: one / two three"},
		"for a terminal": {
			Exited{Code: 1, Stderr: "\x1b[1;31mError:\x1b[0m \x1b]0;a title\x07\x1b]8;;https://example.org\x1b\\run it\x1b]8;;\x1b\\ as \x00root\x07 \x9b1m"},
			"exit code 1; it said last: Error: run it as root \uFFFD1m",
		},
		"what is no text": {Exited{Code: 2, Stderr: "\xff\xfe ok"}, "exit code 2; it said last: \uFFFD ok"},
	} {
		if got := tt.exited.Words(); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestJOB_27_OfAMillionCharactersTheLastFourKiBAreTold(t *testing.T) {
	words := Exited{Code: 1, Stderr: strings.Repeat("é", 1_000_000) + " the end"}.Words()
	last, found := strings.CutPrefix(words, "exit code 1; it said last: …é")
	if !found || !strings.HasSuffix(last, "é the end") || !utf8.ValidString(words) {
		t.Errorf("%.60q … %q", words, words[max(0, len(words)-20):])
	}
	if told := len(words) - len("exit code 1; it said last: "); told > 4096 || told < 4090 {
		t.Errorf("%d bytes of it are told, want 4096", told)
	}
}
