package sqlitex

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// What a first store's maker leaves when the disk fails it is nothing: an empty store, or
// the journal of one, would stand for a loss.
func TestSTO_17_AStoreThatWasNeverMadeLeavesNothing(t *testing.T) {
	failure := errors.New("the disk fails")
	for _, tt := range []struct {
		name    string
		there   map[string]string
		failure error
		left    []string
	}{
		{"nothing was written", map[string]string{"s.db": "", "other": "x"}, failure, []string{"other"}},
		{"its journal was", map[string]string{"s.db": "", "s.db-journal": "header"}, failure, nil},
		{"something was", map[string]string{"s.db": "page", "s.db-journal": "header"}, failure, []string{"s.db", "s.db-journal"}},
		{"its log was", map[string]string{"s.db": "", "s.db-wal": "frame"}, failure, []string{"s.db-wal"}},
		{"it did not fail", map[string]string{"s.db": "", "s.db-journal": "header"}, nil, []string{"s.db", "s.db-journal"}},
		{"it is not there", map[string]string{"s.db-journal": "header"}, failure, []string{"s.db-journal"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range tt.there {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := DropEmpty(filepath.Join(dir, "s.db"), tt.failure); !errors.Is(err, tt.failure) {
				t.Errorf("it says %v", err)
			}
			left := maps.Clone(tt.there)
			for name := range tt.there {
				if _, err := os.Lstat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) {
					delete(left, name)
				}
			}
			if got := slices.Sorted(maps.Keys(left)); !slices.Equal(got, tt.left) {
				t.Errorf("left is %q, want %q", got, tt.left)
			}
		})
	}
}
