package sqlitex

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"bridge/backend/core/bridge"
)

// A page that the disk does not give is an error, not the end of the process.
func TestSTO_01_AMappedPageThatCannotBeReadIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, make([]byte, 2*os.Getpagesize()), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	pages, err := syscall.Mmap(int(file.Fd()), 0, 2*os.Getpagesize(), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(pages) }()
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	var seen byte
	err = withoutFaults(func() error {
		seen = pages[os.Getpagesize()]
		return nil
	})
	if bridge.CodeOf(err) != bridge.Storage {
		t.Errorf("a missing page gives %v and %d", err, seen)
	}
}
