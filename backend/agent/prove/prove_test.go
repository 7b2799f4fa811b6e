package prove

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
)

func TestCAN_01_TheReportHasALineForEachRouteAndTheEvidence(t *testing.T) {
	report := Report{Kind: bridge.Codex, Program: "/usr/bin/codex", Version: "1.2.3", Millis: 12_340, Routes: []Result{
		{Route: Connects, State: Works},
		{Route: MailAtTool, State: Broken, Step: "tool call", Expected: "the message", Got: "nothing\nthe message is durable"},
		{Route: Wake, State: NotTried, Why: "codex has ended"},
		{Route: StartNote, State: NotOffered},
	}}
	want := strings.TrimPrefix(`
codex /usr/bin/codex
  version 1.2.3
  connects                 works
  mail at a tool           BROKEN
    step:     tool call
    expected: the message
    got:      nothing
              the message is durable
  wake of an idle session  not tried: codex has ended
  start note               not offered
  1 broken route in 12.3s
`, "\n")
	if diff := cmp.Diff(want, report.Text()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Route{MailAtTool}, report.Broken()); diff != "" {
		t.Errorf("broken (-want +got):\n%s", diff)
	}
}

func TestCAN_01_EachRouteHasATitleAndEachKindCanBeTried(t *testing.T) {
	for _, route := range Routes() {
		if route.Title() == "" {
			t.Errorf("%s has no title", route)
		}
	}
	for _, kind := range Kinds() {
		if _, err := bridge.ParseKind(string(kind)); err != nil || CheckKind(kind) != nil {
			t.Errorf("%s: %v, %v", kind, err, CheckKind(kind))
		}
	}
	if code := bridge.CodeOf(CheckKind(bridge.Antigravity)); code != bridge.Unsupported {
		t.Errorf("antigravity: %q", code)
	}
}
