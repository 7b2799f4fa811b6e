package broker

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"bridge/backend/agent"
	"bridge/backend/core/bridge"
	"bridge/backend/platform/ipc/api"
)

// A session whose agent CLI Bridge was not tried with says so, whatever else is
// known of it, and forgets it when the next session finds another version.
func TestMSG_11_ASessionSaysWhichVersionsWereTried(t *testing.T) {
	b := newBench(t)
	var version atomic.Value
	version.Store("2.0.3")
	b.cli = func(_ context.Context, kind bridge.AgentKind) (agent.Found, error) {
		if kind != bridge.OpenCode {
			return agent.Found{}, bridge.Errorf(bridge.NotFound, "%s is not on this PC", kind)
		}
		return agent.Found{Version: version.Load().(string)}, nil
	}
	b.restart()
	peer := func(name string) api.Peer {
		peers, err := b.broker.Peers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range peers {
			if p.Name == name {
				return p
			}
		}
		t.Fatalf("no %s among %+v", name, peers)
		return api.Peer{}
	}
	b.join(api.Register{Name: "deaf", Kind: bridge.OpenCode, SessionID: "s1"})
	b.join(api.Register{Name: "other", Kind: bridge.Codex, SessionID: "s2"})
	eventually(t, "the version is told", func() bool { return strings.HasPrefix(peer("deaf").CLI, "2.0.3; tried with 1.18.33") })
	if got := peer("deaf"); !strings.Contains(got.Problem, "connected and deaf") || !strings.HasSuffix(got.Detail, got.Problem) {
		t.Errorf("the session says %+v", got)
	}
	if got := peer("other"); got.CLI != "version not known; tried with 0.160.1 to 0.169.0" || got.Problem != "" {
		t.Errorf("a session of another kind says %+v", got)
	}
	version.Store("1.18.33")
	b.join(api.Register{Name: "new", Kind: bridge.OpenCode, SessionID: "s3"})
	eventually(t, "the other version is told", func() bool { return peer("deaf").Problem == "" })
}
