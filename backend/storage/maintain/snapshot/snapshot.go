// Package snapshot makes the sets of copies from which a home is restored: full
// snapshots, even during a live broker, and backups of the messages alone, which wait
// while the broker is busy. A set is prepared under a pending name, read again whole and
// published by one rename. Sets beyond the retention move to an archive folder, and none
// is deleted.
package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"

	"github.com/google/uuid"

	"bridge/backend/platform/disk"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/maintain/lease"
)

// Maker makes the sets of one home.
type Maker struct {
	Worker lease.Worker
	// Retention is how many sets of a kind stay in place; 0 keeps all (seed 8).
	Retention int
}

// Made is a set that was made.
type Made struct {
	Path  string   `json:"path"` // absolute
	Files int      `json:"files"`
	Bytes int64    `json:"bytes"`
	Moved []string `json:"moved"` // older ones that moved to backups/archive
	// Omitted are damaged databases that hold only data that is rebuilt.
	Omitted []string `json:"omitted"`
}

// Backup captures a full snapshot, even during a live broker (STO-04, STO-05): the
// databases by SQLite's online backup, the JSON stores unchanged. It reads everything
// again before it writes the manifest, and names the set last. Then it moves snapshots
// beyond Retention away (STO-11). It fails with NotFound without a home, with Denied
// during maintenance, and with Storage if a database is lost. A failed attempt stays in
// the folder under its pending name.
func (m Maker) Backup(ctx context.Context) (made Made, err error) {
	if err := check.RequireHome(m.Worker.Home); err != nil {
		return made, err
	}
	if err := m.Worker.Home.Ensure(); err != nil {
		return made, err
	}
	if _, err := check.HasStore(ctx, m.Worker.Home); err != nil {
		return made, err
	}
	live, err := lease.Live(m.Worker.Home) // before our own lease is among them
	if err != nil {
		return made, err
	}
	held, err := m.Worker.Register()
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	if err := check.RequireDatabases(m.Worker.Home); err != nil {
		return made, err
	}
	at, err := inventory.NextTime(m.Worker.Home.Backups(), inventory.SnapshotName, m.Worker.Now())
	if err != nil {
		return made, err
	}
	final := filepath.Join(m.Worker.Home.Backups(), fmt.Sprintf("snapshot-%013d-%s", at, uuid.NewString()))
	pending := filepath.Join(m.Worker.Home.Backups(), inventory.PendingPrefix+filepath.Base(final))
	if err := disk.MakeDir(pending); err != nil {
		return made, err
	}
	manifest := inventory.Manifest{Version: inventory.ManifestVersion, Kind: inventory.KindFull, CreatedAt: at, Files: []inventory.File{}, Counts: map[string]map[string]int{}}
	set := &capture{Maker: m, pending: pending, live: len(live) > 0}
	if err := set.gather(ctx, &manifest); err != nil {
		return made, fmt.Errorf("capture a snapshot (the attempt is kept as %s): %w", pending, err)
	}
	if err := m.publish(pending, final, manifest); err != nil {
		return made, fmt.Errorf("publish the snapshot: %w", err)
	}
	made = Made{Path: final, Files: len(manifest.Files), Bytes: manifest.Size(), Omitted: []string{}}
	if !manifest.Has(inventory.History) && inventory.SizeOf(m.Worker.Home.History()) > 0 {
		made.Omitted = append(made.Omitted, inventory.History)
	}
	made.Moved, err = m.Rotate()
	return made, err
}

// publish writes the manifest, makes everything durable and gives the set its final name.
func (m Maker) publish(pending, final string, manifest inventory.Manifest) error {
	data, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return err
	}
	if err := m.Worker.Files().WriteNew(filepath.Join(pending, inventory.ManifestName), append(data, '\n'), disk.PrivateFile); err != nil {
		return err
	}
	return m.Worker.Files().Publish(pending, final)
}

// Rotate moves the snapshots beyond the retention into their archive folder and returns
// their new paths. It fails if one cannot be moved.
func (m Maker) Rotate() ([]string, error) {
	return m.rotateSets(m.Worker.Home.Backups(), inventory.SnapshotName)
}

// rotateSets moves the sets beyond the retention into their archive folder, oldest first,
// and returns their new paths. It deletes nothing.
func (m Maker) rotateSets(dir string, name *regexp.Regexp) ([]string, error) {
	moved := []string{}
	found, err := inventory.Sets(dir, name)
	if err != nil || m.Retention == 0 || len(found) <= m.Retention {
		return moved, err
	}
	archive := filepath.Join(dir, "archive")
	if err := disk.MakeDir(archive); err != nil {
		return moved, err
	}
	for i := len(found) - 1; i >= m.Retention; i-- {
		target := filepath.Join(archive, found[i].Path)
		if err := m.Worker.Files().Publish(filepath.Join(dir, found[i].Path), target); err != nil {
			return moved, fmt.Errorf("move an older snapshot away: %w", err)
		}
		moved = append(moved, target)
	}
	return moved, nil
}
