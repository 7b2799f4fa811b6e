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

func TestCAN_01_ARouteIsNamedExactlyAndConnectsIsAlwaysTried(t *testing.T) {
	for name, want := range map[string]string{
		"job": "", "your-words": "",
		"jobs":  `there is no route "jobs". Did you mean job?`,
		"emacs": `there is no route "emacs": use connects, start-note, mail-at-prompt, mail-at-tool, mail-at-stop, wake, your-words, child, permission-prompt, job`,
	} {
		route, err := ParseRoute(name)
		if want == "" && (err != nil || route != Route(name)) {
			t.Errorf("%s: %q, %v", name, route, err)
		}
		if want != "" && (bridge.CodeOf(err) != bridge.Invalid || err.Error() != want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	if diff := cmp.Diff([]Route{Connects, Wake, DelegatedJob}, (Run{Only: []Route{DelegatedJob, Wake}}).chosen()); diff != "" {
		t.Errorf("two chosen (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Routes(), Run{}.chosen()); diff != "" {
		t.Errorf("none chosen (-want +got):\n%s", diff)
	}
}
