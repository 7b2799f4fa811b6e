package report

import (
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
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
