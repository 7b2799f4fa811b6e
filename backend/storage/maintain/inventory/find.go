package inventory

import (
	"os"
	"path/filepath"
	"regexp"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
)

// FindSnapshot returns the folder of a full snapshot by a person's input: a path, a path
// relative to the home, or a name in the folder of snapshots; "" and "latest" mean the newest.
func FindSnapshot(home config.Home, typed string) (string, error) {
	return findSet(home.Dir(), typed, home.Backups(), SnapshotName, "there is no snapshot yet: make one with `bridge doctor --backup`")
}

// FindMessages finds a backup of messages in the same way.
func FindMessages(home config.Home, typed string) (string, error) {
	return findSet(home.Dir(), typed, home.MessageBackups(), MessagesName, "there is no backup of messages: the broker makes them when BRIDGE_AUTO_BACKUP is 1")
}

// findSet returns the folder of a set by a person's input. It fails with NotFound, with
// the message none if there is no set at all.
func findSet(dir, typed, folder string, name *regexp.Regexp, none string) (string, error) {
	if typed == "" || typed == "latest" {
		found, err := Sets(folder, name)
		if err != nil {
			return "", err
		}
		if len(found) == 0 {
			return "", bridge.Errorf(bridge.NotFound, "%s", none)
		}
		return filepath.Join(folder, found[0].Path), nil
	}
	for _, candidate := range []string{typed, JoinHome(dir, typed), JoinHome(folder, typed)} {
		if info, err := os.Stat(candidate); err == nil && info.IsDir() {
			return filepath.Abs(candidate)
		}
	}
	return "", bridge.Errorf(bridge.NotFound, "there is no snapshot %s", typed)
}
