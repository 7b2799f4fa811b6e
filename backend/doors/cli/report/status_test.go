package report

import (
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/proof"
	"bridge/backend/platform/ipc/api"
)

func TestCHT_19_StatusSaysWhatIsWrongWithASession(t *testing.T) {
	const why = "codex's queue did not take what it was given last: this codex is too old to know the command `queue`."
	web := api.Peer{Name: "web", Agent: bridge.Codex, State: "idle", Transport: "tools only", Detail: "No hook has reported. " + why, Problem: why}
	well := api.Peer{Name: "api", Agent: bridge.Codex, State: "idle", Transport: "hooks", Detail: "All is open."}
	text := Status(api.Status{Peers: []api.Peer{web, well}}, "/home", "", true, func(words ...string) string { return "bridge " + strings.Join(words, " ") }, time.Now())
	if want := "\n  ! web: No hook has reported. " + why + "\n"; !strings.HasSuffix(text, want) {
		t.Errorf("status ends with\n%s\nwant %q", text, want)
	}
	if want := "Tried      claude 2.1.329, codex 0.160.1 to 0.169.0, opencode 1.18.33 "; !strings.Contains(text, want) {
		t.Errorf("MSG-11 status does not name the versions that were tried:\n%s", text)
	}
	if strings.Contains(text, well.Detail) {
		t.Errorf("status explains a session that nothing is wrong with:\n%s", text)
	}
}

func TestCAN_02_StatusNamesWhatIsBrokenSinceWhen(t *testing.T) {
	line := func(words ...string) string { return "bridge " + strings.Join(words, " ") }
	if got := Proofs(nil, line); got != "" {
		t.Errorf("without proofs: %q", got)
	}
	got := Proofs([]proof.Summary{
		{Kind: bridge.Claude, Version: "2.1.329"},
		{Kind: bridge.Codex, Version: "0.171.0", Broken: []proof.BrokenRoute{
			{Route: proof.StartNote, Text: "the start note is broken since 0.170.0: new sessions are not told of your decisions"},
			{Route: proof.Wake, Text: "wake is broken since 0.171.0: mail waits for the next prompt"},
		}},
		{Kind: bridge.OpenCode, Version: "1.18\n33", Problem: "it ended\nat once"},
	}, line)
	const want = "Routes     claude 2.1.329: all work\n" +
		"Routes     codex 0.171.0: the start note is broken since 0.170.0: new sessions are not told of your decisions   (bridge prove codex)\n" +
		"Routes     codex 0.171.0: wake is broken since 0.171.0: mail waits for the next prompt   (bridge prove codex)\n"
	if !strings.HasPrefix(got, want) {
		t.Errorf("it says\n%s\nwant\n%s", got, want)
	}
	rest := strings.TrimPrefix(got, want)
	if strings.Count(rest, "\n") != 1 || !strings.HasPrefix(rest, "Routes     opencode 1.18") || !strings.HasSuffix(rest, "at once   (bridge prove opencode)\n") {
		t.Errorf("a problem is told as %q", rest)
	}
}
