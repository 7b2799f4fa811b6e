package store

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
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

func TestVER_01_PeersAreSavedWhateverTheKeysOfTheirTables(t *testing.T) {
	for name, keys := range map[string][4]string{
		"no keys at all":   {"", "", "", ""},
		"keys of one word": {", PRIMARY KEY (identity)", ", PRIMARY KEY (identity)", ", PRIMARY KEY (name)", ", PRIMARY KEY (name)"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bridge.db")
			if err := openAt(t, path).Close(); err != nil {
				t.Fatal(err)
			}
			inStore(t, path, "DROP TABLE session_bindings", "DROP TABLE peer_names", "DROP TABLE peer_name_owners", "DROP TABLE peer_last_seen",
				"CREATE TABLE session_bindings (identity TEXT NOT NULL, session_id TEXT NOT NULL, learned_at INTEGER NOT NULL"+keys[0]+")",
				"CREATE TABLE peer_names (identity TEXT NOT NULL, name TEXT NOT NULL, session_id TEXT, agent TEXT NOT NULL, learned_at INTEGER NOT NULL"+keys[1]+")",
				"CREATE TABLE peer_name_owners (name TEXT, identity TEXT NOT NULL"+keys[2]+")",
				"CREATE TABLE peer_last_seen (name TEXT, seen_at INTEGER NOT NULL"+keys[3]+")")
			db := openAt(t, path)
			for _, seen := range []int64{100, 200} {
				if err := db.SavePeer(t.Context(), Peer{ID: "p1", Name: "one", Agent: bridge.Claude, SessionID: "s1", SeenAt: seen}); err != nil {
					t.Fatal(err)
				}
			}
			peers, err := db.Peers(t.Context())
			want := []Peer{{ID: "p1", Name: "one", Agent: bridge.Claude, SessionID: "s1", SeenAt: 200}}
			if diff := cmp.Diff(want, peers); err != nil || diff != "" {
				t.Errorf("Peers: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}
