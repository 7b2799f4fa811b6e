//go:build !windows

package disk

import (
	"os"
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

func TestSTO_05_AFolderIsItsOwnersUnderAnyUmask(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	defer syscall.Umask(syscall.Umask(0o277))
	if err := MakeDir(dir); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != PrivateDir {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
