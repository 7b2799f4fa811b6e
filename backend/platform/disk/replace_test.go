package disk_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"bridge/backend/platform/disk"
)

func TestReplacePutsTheFinishedFileOverTheOld(t *testing.T) {
	dir := t.TempDir()
	final, pending := filepath.Join(dir, "a"), filepath.Join(dir, ".a-new")
	for path, text := range map[string]string{final: "old", pending: "new"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	refused := errors.New("refused")
	failing := disk.Files{Before: func(disk.Step, string) error { return refused }}
	if err := failing.Replace(pending, final); !errors.Is(err, refused) {
		t.Errorf("Replace with a failing step = %v", err)
	}
	if err := failing.RemoveCopied(final); !errors.Is(err, refused) {
		t.Errorf("RemoveCopied with a failing step = %v", err)
	}
	if data, _ := os.ReadFile(final); string(data) != "old" {
		t.Errorf("after the failures the file holds %q", data)
	}
	if err := (disk.Files{}).Replace(pending, final); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(final); string(data) != "new" {
		t.Errorf("the file holds %q", data)
	}
	for range 2 { // the second time there is nothing left to remove
		if err := (disk.Files{}).RemoveCopied(final); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(final); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the removed file: %v", err)
	}
}
