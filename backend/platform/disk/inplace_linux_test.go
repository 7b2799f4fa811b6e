package disk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bridge/backend/testing/testkit"
)

// TestRWM_13_AMountedFileIsWrittenInPlace: as a dev container mounts one settings file
// of its host.
func TestRWM_13_AMountedFileIsWrittenInPlace(t *testing.T) {
	for name, test := range map[string]struct {
		folder, file uintptr // flags of the mounts, the folder's only where not 0
		refused      string
	}{
		"writable":              {},
		"in a read-only folder": {folder: unix.MS_RDONLY},
		"read-only":             {file: unix.MS_RDONLY, refused: "it is mounted read-only"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			testkit.PrivateMounts(t)
			host, folder := filepath.Join(dir, "host.json"), filepath.Join(dir, "folder")
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			path, copies := filepath.Join(folder, "settings.json"), filepath.Join(dir, "copies")
			put(t, host, "as it was")
			put(t, path, "")
			if test.folder != 0 {
				testkit.Bind(t, folder, folder, test.folder)
			}
			testkit.Bind(t, host, path, test.file)
			err := Files{}.Overwrite(path, []byte("new"), PrivateFile, copies)
			if test.refused == "" {
				if err != nil || text(t, path) != "new" || text(t, host) != "new" {
					t.Errorf("got %v: %q, and on the host %q", err, text(t, path), text(t, host))
				}
			} else if err == nil || !strings.HasPrefix(WhyNotWritten(err), test.refused) || text(t, host) != "as it was" {
				t.Errorf("got %v: the host has %q", err, text(t, host))
			}
			if left := names(t, folder); len(left) != 1 {
				t.Errorf("left in the folder: %v", left)
			}
		})
	}
}
