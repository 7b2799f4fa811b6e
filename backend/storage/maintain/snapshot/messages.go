package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/maintain/lease"
	"bridge/backend/storage/store/transfer"
)

// generationLock lets one process at a time make a set of messages. It ends with its
// process, however that ends.
const generationLock = "generation.lock"

// BackupMessages makes a set of messages only, during a live broker (STO-10). pause is
// called before each piece of work and waits while the broker is busy. It fails with
// Conflict while another process makes one. A failed attempt keeps its pending name; sets
// beyond Retention move away (STO-11).
func (m Maker) BackupMessages(ctx context.Context, pause func(context.Context) error) (made Made, err error) {
	if err := m.Worker.Home.Ensure(); err != nil {
		return made, err
	}
	if err := disk.MakeDir(m.Worker.Home.MessageBackups()); err != nil {
		return made, err
	}
	if _, err := check.HasStore(ctx, m.Worker.Home); err != nil {
		return made, err
	}
	lock, err := sqlitex.AcquireLock(ctx, filepath.Join(m.Worker.Home.MessageBackups(), generationLock))
	if errors.Is(err, sqlitex.ErrLocked) {
		return made, bridge.Errorf(bridge.Conflict, "another process is making a backup of the messages")
	}
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	live, err := lease.Live(m.Worker.Home) // before our own lease is among them
	if err != nil {
		return made, err
	}
	held, err := m.Worker.Register()
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	return m.makeScoped(ctx, len(live) > 0, pause)
}

// makeScoped captures, verifies and publishes one set.
func (m Maker) makeScoped(ctx context.Context, live bool, pause func(context.Context) error) (made Made, err error) {
	at, err := inventory.NextTime(m.Worker.Home.MessageBackups(), inventory.MessagesName, m.Worker.Now())
	if err != nil {
		return made, err
	}
	final := filepath.Join(m.Worker.Home.MessageBackups(), fmt.Sprintf("messages-%013d-%s", at, uuid.NewString()))
	pending := filepath.Join(m.Worker.Home.MessageBackups(), inventory.PendingPrefix+filepath.Base(final))
	if err := disk.MakeDir(pending); err != nil {
		return made, err
	}
	manifest := inventory.Manifest{Version: inventory.ManifestVersion, Kind: inventory.KindMessages, CreatedAt: at}
	if err := m.captureScoped(ctx, pending, live, pause, &manifest); err != nil {
		return made, fmt.Errorf("capture the messages (the attempt is kept as %s): %w", pending, err)
	}
	if err := m.publish(pending, final, manifest); err != nil {
		return made, fmt.Errorf("publish the backup of the messages: %w", err)
	}
	made = Made{Path: final, Files: len(manifest.Files), Bytes: manifest.Size(), Omitted: []string{}}
	made.Moved, err = m.rotateSets(m.Worker.Home.MessageBackups(), inventory.MessagesName)
	return made, err
}

func (m Maker) captureScoped(ctx context.Context, pending string, live bool, pause func(context.Context) error, manifest *inventory.Manifest) error {
	target := filepath.Join(pending, inventory.MessagesFile)
	window := func(name string) error { return errors.Join(pause(ctx), m.Worker.At(name)) }
	if err := window("copy messages"); err != nil {
		return err
	}
	copied, err := transfer.CopyMessages(ctx, transfer.ScopedCopy{
		Store: m.Worker.Home.DB(), Archive: m.Worker.Home.Archive(), To: target, Live: live, Pause: func() error { return pause(ctx) },
	})
	if err != nil {
		return err
	}
	if err := window("verify messages"); err != nil {
		return err
	}
	counts, err := check.VerifyDatabase(ctx, target)
	if err != nil {
		return err
	}
	for table, count := range copied {
		if counts[table] != count {
			return bridge.Errorf(bridge.Storage, "the copy has %s in %s, not %d", bridge.Counted(counts[table], "row"), table, count)
		}
	}
	if err := window("checksum messages"); err != nil {
		return err
	}
	sum, size, err := disk.Checksum(target)
	manifest.Files = []inventory.File{{Path: inventory.MessagesFile, SHA256: sum, Bytes: size}}
	manifest.Counts = map[string]map[string]int{inventory.MessagesFile: counts}
	return err
}

// NextMessageBackup returns when a set of messages is due: an interval after the newest
// one, or at once without one. It fails if the folder of sets is unreadable.
func (m Maker) NextMessageBackup(interval time.Duration) (time.Time, error) {
	found, err := inventory.Sets(m.Worker.Home.MessageBackups(), inventory.MessagesName)
	if err != nil || len(found) == 0 {
		return time.Time{}, err
	}
	newest := time.UnixMilli(found[0].CreatedAt)
	if newest.After(m.Worker.Now()) { // the clock was set back: the disk shows which clock the set is from
		info, err := os.Lstat(filepath.Join(m.Worker.Home.MessageBackups(), found[0].Path))
		if err != nil || info.ModTime().After(m.Worker.Now()) {
			return time.Time{}, err
		}
		newest = info.ModTime()
	}
	return newest.Add(interval), nil
}
