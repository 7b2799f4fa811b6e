package archtest

import (
	"strings"
	"testing"
)

func TestDOC_10_NumbersAgreeWithTheirNouns(t *testing.T) { report(t, checkPlurals(module(t))) }

func TestDOC_10_APluralForOneIsSeen(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"a count", `fmt.Sprintf("in %d places", n)`, `c.go:5: "%d places" is wrong for one: write it with bridge.Counted`},
		{"a count with an adjective", `fmt.Sprintf("%d older files", n)`, `"%d older files"`},
		{"the second count", `fmt.Sprintf("%d%% of %s in %d rows", most, "x", n)`, `"%d rows"`},
		{"two texts", `fmt.Sprintf("it has %d "+"files", n)`, `"%d files"`},
		{"an error", `bridge.Errorf(bridge.Busy, "%d waits", n)`, ""},
		{"an error with a count", `bridge.Errorf(bridge.Busy, "there are %d rules", n)`, `"%d rules"`},
		{"a constant", `fmt.Sprintf("at most %d files", most)`, ""},
		{"a constant of another package", `fmt.Sprintf("at most %d files", job.Most)`, ""},
		{"one less than a constant", `fmt.Sprintf("%d folders", most-1)`, ""},
		{"a constant after a count", `fmt.Sprintf("%d of %d files", n, most)`, ""},
		{"a verb", `fmt.Sprintf("process %d lives on", n)`, ""},
		{"one of many", `fmt.Sprintf("%d in the places", n)`, ""},
		{"the helper", `bridge.Counted(n, "place")`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := "package chat\n\nconst most, Most = 2, 3\nfunc f(n int) {\n_ = " + tt.text + "\n}\n"
			got := strings.Join(checkPlurals([]source{parse(t, "backend/core/chat/c.go", text)}), "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("problems = %q, want %q", got, tt.want)
			}
		})
	}
}
