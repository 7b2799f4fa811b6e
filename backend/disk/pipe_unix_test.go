//go:build !windows

package disk

import (
	"path/filepath"
	"syscall"
	"testing"
)

func TestSTO_01_APipeInAFilesPlaceIsRefusedAndNotWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := ReadLimited(path, 100); err == nil {
		t.Errorf("read %q from a pipe", data)
	}
}
