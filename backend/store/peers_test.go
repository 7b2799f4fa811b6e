package store

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/bridge"
)

func TestPeersKnowTheirLatestNameAndSession(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.db")
	db := openAt(t, path)
	for _, peer := range []Peer{
		{ID: "p1", Name: "one", Agent: bridge.Claude, SeenAt: 100},
		{ID: "p2", Name: "two", Agent: bridge.Codex, SessionID: "s2", SeenAt: 200},
		{ID: "p1", Name: "uno", Agent: bridge.Claude, SessionID: "s1", SeenAt: 300},
		{ID: "p3", Name: "one", Agent: bridge.OpenCode, SeenAt: 250}, // a name that p1 gave up
	} {
		if err := db.SavePeer(t.Context(), peer); err != nil {
			t.Fatal(err)
		}
	}
	inStore(t, path, `INSERT INTO peer_names VALUES ('["claude",17,"x"]', 'two', NULL, 'claude', 999)`)
	peers, err := db.Peers(t.Context())
	want := []Peer{
		{ID: "p1", Name: "uno", Agent: bridge.Claude, SessionID: "s1", SeenAt: 300},
		{ID: "p3", Name: "one", Agent: bridge.OpenCode, SeenAt: 250},
		{ID: "p2", Name: "two", Agent: bridge.Codex, SessionID: "s2", SeenAt: 200},
	}
	if diff := cmp.Diff(want, peers); err != nil || diff != "" {
		t.Errorf("Peers: %v (-want +got):\n%s", err, diff)
	}
	if err := db.SavePeer(t.Context(), Peer{ID: "p4"}); bridge.CodeOf(err) != bridge.Invalid {
		t.Errorf("a peer without a name: %v", err)
	}
}
