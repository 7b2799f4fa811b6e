package maintain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/google/uuid"

	"bridge/backend/bridge"
	"bridge/backend/disk"
	"bridge/backend/maintain/check"
	"bridge/backend/maintain/inventory"
	"bridge/backend/maintain/lease"
)

// Snapshot is one that Backup made.
type Snapshot struct {
	Path  string   `json:"path"` // absolute
	Files int      `json:"files"`
	Bytes int64    `json:"bytes"`
	Moved []string `json:"moved"` // older ones that went to backups/archive
	// Omitted are databases that are damaged and hold nothing but what is made anew.
	Omitted []string `json:"omitted"`
}

// Backup captures a full snapshot, also beside a live broker (STO-04, STO-05):
// the databases by SQLite's online backup, the JSON stores as they are. All is
// read again before the manifest is written, and the set gets its name last.
// Then older snapshots than Retention move away (STO-11).
func (c Caretaker) Backup(ctx context.Context) (made Snapshot, err error) {
	if err := check.RequireHome(c.Home); err != nil {
		return made, err
	}
	if err := c.Home.Ensure(); err != nil {
		return made, err
	}
	if _, err := check.HasStore(ctx, c.Home); err != nil {
		return made, err
	}
	live, err := lease.Live(c.Home) // before our own lease is among them
	if err != nil {
		return made, err
	}
	held, err := c.Worker().Register()
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	if err := check.RequireDatabases(c.Home); err != nil {
		return made, err
	}
	at, err := inventory.NextTime(c.Home.Backups(), inventory.SnapshotName, c.Now())
	if err != nil {
		return made, err
	}
	final := filepath.Join(c.Home.Backups(), fmt.Sprintf("snapshot-%013d-%s", at, uuid.NewString()))
	pending := filepath.Join(c.Home.Backups(), inventory.PendingPrefix+filepath.Base(final))
	if err := disk.MakeDir(pending); err != nil {
		return made, err
	}
	manifest := inventory.Manifest{Version: inventory.ManifestVersion, Kind: inventory.KindFull, CreatedAt: at, Files: []inventory.File{}, Counts: map[string]map[string]int{}}
	set := &capture{Caretaker: c, pending: pending, live: len(live) > 0}
	if err := set.gather(ctx, &manifest); err != nil {
		return made, fmt.Errorf("capture a snapshot (the attempt is kept as %s): %w", pending, err)
	}
	if err := c.publish(pending, final, manifest); err != nil {
		return made, fmt.Errorf("publish the snapshot: %w", err)
	}
	made = Snapshot{Path: final, Files: len(manifest.Files), Bytes: manifest.Size(), Omitted: []string{}}
	if !manifest.Has(inventory.History) && inventory.SizeOf(c.Home.History()) > 0 {
		made.Omitted = append(made.Omitted, inventory.History)
	}
	made.Moved, err = c.rotate(c.Home.Backups())
	return made, err
}

// publish writes the manifest, makes everything durable and gives the set its
// name.
func (c Caretaker) publish(pending, final string, manifest inventory.Manifest) error {
	data, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return err
	}
	if err := c.Worker().Files().WriteNew(filepath.Join(pending, inventory.ManifestName), append(data, '\n'), disk.PrivateFile); err != nil {
		return err
	}
	return c.Worker().Files().Publish(pending, final)
}

// rotate is rotateSets for full snapshots.
func (c Caretaker) rotate(dir string) ([]string, error) {
	return c.rotateSets(dir, inventory.SnapshotName)
}

// rotateSets moves the sets beyond the retention into the archive folder beside
// them, the oldest first, and returns their new paths. Nothing is deleted.
func (c Caretaker) rotateSets(dir string, name *regexp.Regexp) ([]string, error) {
	moved := []string{}
	found, err := inventory.Sets(dir, name)
	if err != nil || c.Retention == 0 || len(found) <= c.Retention {
		return moved, err
	}
	archive := filepath.Join(dir, "archive")
	if err := disk.MakeDir(archive); err != nil {
		return moved, err
	}
	for i := len(found) - 1; i >= c.Retention; i-- {
		to := filepath.Join(archive, found[i].Path)
		if err := c.Worker().Files().Publish(filepath.Join(dir, found[i].Path), to); err != nil {
			return moved, fmt.Errorf("move an older snapshot away: %w", err)
		}
		moved = append(moved, to)
	}
	return moved, nil
}

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
