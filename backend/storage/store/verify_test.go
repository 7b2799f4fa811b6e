package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/storage/store/transfer"
	"bridge/backend/testing/testkit"
)

// stored is the path of a closed store with messages on many pages and with a session.
func stored(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bridge.db")
	db := openAt(t, path)
	for i := range 200 {
		appendAll(t, db, note(fmt.Sprintf("m%03d", i), "alice", strings.Repeat("text ", 20), int64(i+1), "bob"))
	}
	if err := db.SavePeer(t.Context(), Peer{ID: "peer-1", Name: "bob", Agent: bridge.Claude, SeenAt: 1}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := openAt(t, path).Close(); err != nil { // a start indexes the messages of the last broker
		t.Fatal(err)
	}
	return path
}

// TestSTO_18_AStartReadsOnlyWhatItNeeds: damage that a start does not meet refuses no store,
// damage that it meets does, and the check changes no byte.
func TestSTO_18_AStartReadsOnlyWhatItNeeds(t *testing.T) {
	for _, tt := range []struct {
		name string
		page testkit.Page
		bad  bool
	}{
		{"messages", testkit.RootPage, true},
		{"messages", testkit.LeafPage, false}, // the first: a start reads the last
		{"peer_names", testkit.RootPage, true},
		{"message_peers_upto", testkit.RootPage, true},
		{"decisions", testkit.RootPage, false},
		{"delivery_stages", testkit.RootPage, false},
		{"archived_messages", testkit.RootPage, false},
		{"remote_outbox", testkit.RootPage, false},
	} {
		t.Run("STO-18 "+tt.name+" "+string(tt.page), func(t *testing.T) {
			path := stored(t)
			testkit.DamagePage(t, path, tt.name, tt.page)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			err = transfer.VerifyStart(t.Context(), path, false)
			if bad := bridge.CodeOf(err) == bridge.Storage; bad != tt.bad || !bad && err != nil {
				t.Errorf("VerifyStart = %v", err)
			}
			after, readErr := os.ReadFile(path)
			if beside, _ := filepath.Glob(path + "*"); readErr != nil || !cmp.Equal(before, after) || len(beside) != 1 {
				t.Errorf("the store was changed: %v, %v", beside, readErr)
			}
			db, err := Open(t.Context(), path, testOptions())
			if err == nil {
				_, err = db.Peers(t.Context())
				if closeErr := db.Close(); closeErr != nil {
					t.Log(closeErr)
				}
			}
			if (err != nil) != tt.bad {
				t.Errorf("a start that VerifyStart judged as refused %v: %v", tt.bad, err)
			}
		})
	}
}
