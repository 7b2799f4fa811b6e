package needs_test

import (
	"strings"
	"testing"

	"bridge/backend/core/job"
	"bridge/backend/core/needs"
)

// The list has what would be done byte for byte; its text shows all of it, and no line of it
// is taken for a line of Bridge's.
func TestRWM_18_ARequestIsListedByteForByte(t *testing.T) {
	const command = " \n\nls \u202e\n  bridge approve other\n \t"
	asks := job.Approval{ID: "p-1", Session: "web", What: "shell", Detail: command, Cwd: "/a\nb", State: job.ApprovalAsked}
	for _, told := range []string{"", "why"} {
		asks.OnlyTold = told
		list := needs.List(needs.Facts{Approvals: []job.Approval{asks}}, now)
		if want := "shell: " + command; !strings.HasPrefix(list[0].Detail, want) || told == "" && list[0].Detail != want {
			t.Errorf("the detail is %q", list[0].Detail)
		}
		text := needs.Text(list, now, typed)
		if want := "  | shell:  \n  | \n  | ls ⟨U+202E⟩\n  |   bridge approve other\n  |  \t\n"; !strings.Contains(text, want) {
			t.Errorf("it says\n%s\nwithout\n%s", text, want)
		}
		if strings.Contains(text, "\n  bridge approve other") || !strings.Contains(text, "\n  /a\\nb\n") {
			t.Errorf("it says\n%s", text)
		}
	}
	question := needs.QuestionFact{ID: "q-1", By: "web", Title: "which\u2028one", Context: " a\n", Options: []string{"x"}}
	list := needs.List(needs.Facts{Questions: []needs.QuestionFact{question}}, now)
	if want := " a\n\nYou can choose: x."; list[0].Detail != want {
		t.Errorf("the question is %q, want %q", list[0].Detail, want)
	}
	if text := needs.Text(list, now, typed); !strings.HasPrefix(text, "web asks: which⟨U+2028⟩one   (") {
		t.Errorf("it says\n%s", text)
	}
}
