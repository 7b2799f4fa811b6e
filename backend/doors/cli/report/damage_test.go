package report

import (
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/maintain/check"
)

// TestSTO_18_AnUnknownCountIsAQuestionMark: in the table of the sessions, never 0.
func TestSTO_18_AnUnknownCountIsAQuestionMark(t *testing.T) {
	line := func(args ...string) string { return "bridge " + strings.Join(args, " ") }
	peers := []api.Peer{{Name: "web", Agent: bridge.Claude, State: "idle", Unread: bridge.UnknownCount, Transport: "hook", Cwd: "/src"}}
	text := Status(api.Status{Peers: peers, Unread: bridge.UnknownCount}, "/h", "", true, line, time.Now())
	if fields := strings.Fields(text[strings.Index(text, "web"):]); len(fields) < 4 || fields[3] != "?" {
		t.Errorf("the sessions are\n%s", text)
	}
	if text := Unreadable([]string{"It is\ndamaged"}); strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "Unknown    It is") {
		t.Errorf("what cannot be read is %q", text)
	}
}

// TestSTO_18_TheWorstErrorIsThreeLines: below the state of the storage, with commands as a
// person types them. What another check found is not of a quick look.
func TestSTO_18_TheWorstErrorIsThreeLines(t *testing.T) {
	line := func(args ...string) string { return "bridge " + strings.Join(args, " ") + " --home /h" }
	status := check.QuickStatus{
		Summary:   check.Summary{Errors: 1},
		Finding:   &check.Explained{What: "It is damaged.", Means: "Parts fail.", Do: "Run `bridge doctor --restore s-1`."},
		ReadWhole: true,
	}
	const want = "Storage    1 error   (bridge doctor --home /h says what it is)\n           It is damaged.\n           Parts fail.\n           Run `bridge doctor --restore s-1 --home /h`.\nBackups "
	if text := Storage(status, line, time.Now()); !strings.HasPrefix(text, want) {
		t.Errorf("the text is\n%s\nwant\n%s", text, want)
	}
}
