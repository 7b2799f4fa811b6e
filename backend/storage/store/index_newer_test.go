package store

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"bridge/backend/core/bridge"
)

// A history.db that this build cannot work beside is refused byte for byte, and
// the store works on without the search.
func TestVER_06_AHistoryThatIsNotForThisBuildIsLeftAsItIs(t *testing.T) {
	for name, script := range map[string]string{
		"a newer history":      "CREATE TABLE history_documents (x); PRAGMA user_version = 3",
		"a newer search index": "CREATE TABLE bridge_components (name TEXT PRIMARY KEY, version INTEGER NOT NULL); INSERT INTO bridge_components VALUES ('search', 2)",
		"somebody else's":      "CREATE TABLE recipes (name TEXT)",
		"a message store":      "CREATE TABLE messages (id TEXT)",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bridge.db")
			inStore(t, indexPath(path), script)
			before, err := os.ReadFile(indexPath(path))
			if err != nil {
				t.Fatal(err)
			}
			db := openIndexed(t, path)
			appendAll(t, db, note("m1", "alice", "a word", 1000, "bob"))
			eventually(t, "the search says that it is refused", func() bool {
				_, _, err := db.SearchWords(t.Context(), wordQuery(t, "word"))
				return bridge.CodeOf(err) == bridge.Unsupported
			})
			if after, err := os.ReadFile(indexPath(path)); err != nil || !slices.Equal(before, after) {
				t.Errorf("history.db has other bytes, %v", err)
			}
			if beside, err := filepath.Glob(indexPath(path) + "-*"); err != nil || len(beside) != 0 {
				t.Errorf("beside it: %v, %v", beside, err)
			}
		})
	}
}
