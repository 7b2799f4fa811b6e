package config

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"bridge/backend/core/bridge"
)

// TestSEC_09_AMountIsTheSameFolder: a folder that is mounted in another place, too, is
// known by itself.
func TestSEC_09_AMountIsTheSameFolder(t *testing.T) {
	user, check := ownersFolders(t, nil)
	mounted := filepath.Join(t.TempDir(), "mounted")
	if err := os.Mkdir(mounted, 0o700); err != nil {
		t.Fatal(err)
	}
	for from, refused := range map[string]bool{".ssh": true, "": true, "src": false} {
		if err := unix.Mount(filepath.Join(user, from), mounted, "", unix.MS_BIND, ""); err != nil {
			t.Skipf("SKIPPED, nothing was mounted: %v", err)
		}
		got := check(mounted)
		if err := unix.Unmount(mounted, unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
		if (bridge.CodeOf(got) == bridge.Denied) != refused {
			t.Errorf("%q mounted elsewhere: %v", from, got)
		}
	}
}
