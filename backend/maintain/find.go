package maintain

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"

	"bridge/backend/bridge"
	"bridge/backend/maintain/check"
	"bridge/backend/maintain/inventory"
)

// findSnapshot finds a full snapshot.
func (c Caretaker) findSnapshot(typed string) (string, error) {
	return c.findSet(typed, c.Home.Backups(), inventory.SnapshotName, "there is no snapshot yet: make one with `bridge doctor --backup`")
}

// findScoped finds a backup of messages.
func (c Caretaker) findScoped(typed string) (string, error) {
	return c.findSet(typed, c.Home.MessageBackups(), inventory.MessagesName, "there is no backup of messages: the broker makes them when BRIDGE_AUTO_BACKUP is 1")
}

// findSet turns what a person typed into a set's folder: a path, one relative to
// the home, or a name in the folder of such sets; "" and "latest" are the newest.
func (c Caretaker) findSet(typed, folder string, name *regexp.Regexp, none string) (string, error) {
	if typed == "" || typed == "latest" {
		found, err := inventory.Sets(folder, name)
		if err != nil {
			return "", err
		}
		if len(found) == 0 {
			return "", bridge.Errorf(bridge.NotFound, "%s", none)
		}
		return filepath.Join(folder, found[0].Path), nil
	}
	for _, candidate := range []string{typed, inventory.Join(c.Home.Dir(), typed), inventory.Join(folder, typed)} {
		if info, err := os.Stat(candidate); err == nil && info.IsDir() {
			return filepath.Abs(candidate)
		}
	}
	return "", bridge.Errorf(bridge.NotFound, "there is no snapshot %s", typed)
}

// openScoped reads a set of messages whole.
func (c Caretaker) openScoped(ctx context.Context, dir string) error {
	m, err := inventory.ReadMessagesManifest(dir)
	if err != nil {
		return err
	}
	if err := m.CheckSums(ctx, dir, c.Worker().ProgressOf("verifying the backup")); err != nil {
		return err
	}
	counts, err := check.VerifyDatabase(ctx, filepath.Join(dir, inventory.MessagesFile))
	if err == nil && !maps.Equal(counts, m.Counts[inventory.MessagesFile]) {
		err = bridge.Errorf(bridge.Storage, "%s does not have the rows that its manifest counts", dir)
	}
	return err
}
