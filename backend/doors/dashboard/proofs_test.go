package dashboard

import (
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/core/needs"
	"bridge/backend/core/proof"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/platform/config"
)

// proven is a furnished world in which a claude has a broken wake and a codex could not be tried.
func proven(t *testing.T, change ...func(*Options)) *world {
	t.Helper()
	w := furnished(t, change...)
	broken := proof.Proof{Kind: bridge.Claude, Version: "2.1.0", At: fixedTime.UnixMilli(), Routes: []proof.Result{
		{Route: proof.Connects, State: proof.Works}, {Route: proof.Wake, State: proof.Broken, Since: "2.1.0", Worked: "2.0.9"},
	}}
	w.broker.mu.Lock()
	w.broker.status.Proofs = []proof.Summary{broken.Sum(), {Kind: bridge.Codex, Version: "0.171.0", At: fixedTime.UnixMilli(), Problem: "it did not start", Broken: []proof.BrokenRoute{}}}
	w.broker.mu.Unlock()
	w.broker.changed()
	return w
}

func TestCAN_02_TheRowOfAnAgentHasItsProof(t *testing.T) {
	w := proven(t)
	body := w.get("/api/agents").body
	golden(t, "agents-proven", body)
	for _, agent := range decode[dto.Agents](t, w.get("/api/agents")).Agents {
		switch {
		case agent.Proof == nil:
			t.Errorf("%s has no proof", agent.Kind)
		case agent.Kind == bridge.Claude:
			if len(agent.Proof.Broken) != 1 || agent.Proof.Broken[0] != "Wake is broken since 2.1.0: mail waits for the next prompt." {
				t.Errorf("claude: %+v", agent.Proof)
			}
		case agent.Proof.Problem != "it did not start" || agent.Proof.Broken == nil:
			t.Errorf("%s: %+v", agent.Kind, agent.Proof)
		}
	}
}

func TestCAN_02_ABrokenRouteIsInNeedsYouUntilItIsDismissed(t *testing.T) {
	w := proven(t, func(o *Options) { o.PutAway = &keptAway{} })
	routes := func() (found []needs.Item) {
		for _, item := range decode[dto.State](t, w.get("/api/state")).Needs {
			if item.Sort == needs.Routes {
				found = append(found, item)
			}
		}
		return found
	}
	got := routes()
	if len(got) != 1 || !got[0].News || got[0].Title != "claude: wake is broken since 2.1.0: mail waits for the next prompt" {
		t.Fatalf("%+v", got)
	}
	decode[dto.Needs](t, w.post("/api/needs/"+url.PathEscape(got[0].ID), `{"away":true}`))
	if got := routes(); len(got) != 0 {
		t.Errorf("dismissed, and it is there: %+v", got)
	}
}

func TestCAN_02_TheSettingProveIsChangedFromThePage(t *testing.T) {
	w, home := withSettings(t, "")
	if before := decode[dto.Settings](t, w.get("/api/settings")); before.Prove != string(config.ProveAuto) {
		t.Errorf("before: %q", before.Prove)
	}
	refused(t, "no such mode", w.put("/api/settings", `{"prove":"sometimes"}`), http.StatusBadRequest)
	for _, mode := range []string{"off", "auto"} {
		if after := decode[dto.Settings](t, w.put("/api/settings", `{"prove":"`+mode+`"}`)); after.Prove != mode {
			t.Errorf("after: %q, want %q", after.Prove, mode)
		}
		if text, err := os.ReadFile(home.ConfigFile()); err != nil || !strings.Contains(string(text), `"prove": "`+mode+`"`) {
			t.Errorf("config.json is %s, %v", text, err)
		}
	}
}
