package upgrade

import (
	"testing"

	"bridge/backend/platform/disk"
)

func TestPendingNamesAreUnfinishedFilesToTheDoctor(t *testing.T) {
	if name := pendingName("/home/x/bridge.db.backup-1-to-9-now"); !disk.IsTemp(name) {
		t.Errorf("%s is not known as an unfinished file", name)
	}
}
