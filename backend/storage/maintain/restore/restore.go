// Package restore restores a home from a set of copies. It puts the files of a snapshot
// in place, merges the messages of a backup, and replaces a lost store by an empty one.
// It also tests restores in a scratch home. It first copies replaced files to a recovery
// set, and rolls back after a failure.
package restore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/maintain/lease"
)

// Restorer restores one home.
type Restorer struct {
	Worker lease.Worker
}

// Restored reports what a restore did.
type Restored struct {
	Snapshot string `json:"snapshot"` // absolute
	Recovery string `json:"recovery"` // the permanent set of the displaced files
	Files    int    `json:"files"`
	// Rules is what the owner must know of the restored standing rules.
	Rules string `json:"rules,omitempty"`
}

// outcome is the end of a restore or merge.
type outcome struct {
	At         bridge.UnixMillis `json:"at"`
	Restored   bool              `json:"restored"`
	RolledBack bool              `json:"rolledBack"`
}

// Restore replaces the home's managed files by the snapshot's (STO-08). It first reads
// the whole snapshot and copies its files next to their places. Then it copies every
// managed file to a permanent recovery set, and replaces the files one by one. It rolls
// back after a failure. It does not touch the home's secrets, logs and backups. Restoring
// a recovery set undoes a restore. It fails with NotFound without such a snapshot, with
// Unsupported or Storage for an unsuitable one, and with Denied while a writer lives.
func (r Restorer) Restore(ctx context.Context, typed string) (done Restored, err error) {
	source, err := r.openSource(ctx, typed)
	if err != nil {
		return done, err
	}
	if err := r.Worker.Home.Ensure(); err != nil {
		return done, err
	}
	source.files = slices.DeleteFunc(source.files, func(file inventory.File) bool { return inventory.KeepsPrivate(r.Worker.Home.Dir(), file.Path) })
	var note string
	err = r.Worker.Exclusively(lease.Restore, false, func() (err error) {
		if err := r.checkTargets(source.files); err != nil {
			return err
		}
		staged, err := r.stage(ctx, source)
		defer func() { err = errors.Join(err, r.dropStaged(staged)) }()
		if err == nil {
			err = r.settleJobs(staged)
		}
		if err == nil {
			note, err = r.settleRules(staged)
		}
		if err != nil {
			return fmt.Errorf("prepare the files of the snapshot: %w", err)
		}
		set, displaced, err := r.backUpCurrent(ctx, source.dir, lease.Restore)
		if err != nil {
			return fmt.Errorf("copy the present files to a recovery set: %w", r.recordUnstarted(set, err))
		}
		done = Restored{Snapshot: source.dir, Recovery: set, Files: len(source.files), Rules: note}
		return r.replaceOrRollBack(ctx, source.files, staged, set, displaced)
	})
	return done, err
}

// source is a verified set of files to put in place.
type source struct {
	dir   string // the set
	root  string // the set's folder that the paths are relative to
	files []inventory.File
}

// openSource reads and verifies a whole set: checksums, and for a snapshot also that its
// databases are sound and of a known version.
func (r Restorer) openSource(ctx context.Context, typed string) (source, error) {
	dir, err := inventory.FindSnapshot(r.Worker.Home, typed)
	if err != nil {
		return source{}, err
	}
	if inventory.RecoveryName.MatchString(filepath.Base(dir)) {
		return r.openRecovery(ctx, dir)
	}
	manifest, err := inventory.ReadManifest(dir)
	if err != nil {
		return source{}, err
	}
	if err := manifest.CheckSums(ctx, dir, r.Worker.ProgressOf("verifying the snapshot")); err != nil {
		return source{}, err
	}
	for _, database := range inventory.Databases {
		if manifest.Has(database.Name) {
			if err := check.Restorable(ctx, database, inventory.JoinHome(dir, database.Name)); err != nil {
				return source{}, err
			}
		}
	}
	return source{dir: dir, root: dir, files: manifest.Files}, nil
}

func (r Restorer) openRecovery(ctx context.Context, dir string) (source, error) {
	described, err := inventory.ReadRecovery(dir)
	if err != nil {
		return source{}, err
	}
	root := filepath.Join(dir, inventory.DisplacedDir)
	if err := (inventory.Manifest{Files: described.Files}).CheckSums(ctx, root, r.Worker.ProgressOf("verifying the recovery set")); err != nil {
		return source{}, err
	}
	return source{dir: dir, root: root, files: described.Files}, nil
}

// checkTargets fails with Conflict if a target is no regular file, or is reached through
// a link: a link's target is not the home's, and no recovery set would hold it.
func (r Restorer) checkTargets(files []inventory.File) error {
	for _, file := range files {
		target := inventory.JoinHome(r.Worker.Home.Dir(), file.Path)
		info, err := os.Lstat(target)
		if err == nil && !info.Mode().IsRegular() {
			return bridge.Errorf(bridge.Conflict, "%s is %s: move it away first, a restore replaces only files", target, inventory.KindOf(info.Mode()))
		}
		for folder := filepath.Dir(target); folder != r.Worker.Home.Dir(); folder = filepath.Dir(folder) {
			info, err := os.Lstat(folder)
			if err == nil && !info.IsDir() {
				return bridge.Errorf(bridge.Conflict, "%s is %s: put a folder there first, a restore writes only to the home itself", folder, inventory.KindOf(info.Mode()))
			}
		}
	}
	return nil
}

// backUpCurrent copies every present file into a new recovery set and publishes it before
// the work with the snapshot.
func (r Restorer) backUpCurrent(ctx context.Context, snapshot, work string) (set string, displaced []inventory.File, err error) {
	at, err := inventory.NextTime(r.Worker.Home.Backups(), inventory.RecoveryName, r.Worker.Now())
	if err != nil {
		return "", nil, err
	}
	set = filepath.Join(r.Worker.Home.Backups(), fmt.Sprintf("recovery-%013d-%s", at, uuid.NewString()))
	pending := filepath.Join(r.Worker.Home.Backups(), inventory.PendingPrefix+filepath.Base(set))
	root := filepath.Join(pending, inventory.DisplacedDir)
	if err := disk.MakeDir(root); err != nil {
		return "", nil, err
	}
	paths, err := inventory.Present(ctx, r.Worker.Home.Dir())
	if err != nil {
		return "", nil, err
	}
	displaced = []inventory.File{}
	for i, path := range paths {
		if err := inventory.MakeDirs(root, path); err != nil {
			return "", nil, err
		}
		sum, size, err := inventory.CopyInto(r.Worker.Files(), r.Worker.Home.Dir(), path, inventory.JoinHome(root, path))
		if err != nil {
			return "", nil, err
		}
		displaced = append(displaced, inventory.File{Path: path, SHA256: sum, Bytes: size})
		r.Worker.Progress("copying the present files", int64(i+1), int64(len(paths)))
	}
	data, err := json.MarshalIndent(inventory.Recovery{Version: inventory.ManifestVersion, Snapshot: snapshot, Work: work, CreatedAt: at, Files: displaced}, "", "  ")
	if err != nil {
		return "", nil, err
	}
	if err := r.Worker.Files().WriteNew(filepath.Join(pending, inventory.RecoveryFile), append(data, '\n'), disk.PrivateFile); err != nil {
		return "", nil, err
	}
	return set, displaced, r.Worker.Files().Publish(pending, set)
}

// recordUnstarted records in a set, published but not durable, that no work followed: otherwise
// it would mean an interrupted work. It returns why.
func (r Restorer) recordUnstarted(set string, why error) error {
	if _, err := os.Lstat(set); set == "" || err != nil {
		return why
	}
	return errors.Join(why, r.writeOutcome(set, false))
}

// replaceOrRollBack puts the staged files in place. If that fails, it restores the
// displaced files. Only if that fails too, the home is half done, which the recovery set
// without an outcome shows.
func (r Restorer) replaceOrRollBack(ctx context.Context, files []inventory.File, temps staged, set string, displaced []inventory.File) error {
	err := r.replaceFiles(ctx, files, temps, displaced)
	if err != nil {
		// The caller's context may have caused the failure; the rollback must not depend on it.
		back := source{dir: set, root: filepath.Join(set, inventory.DisplacedDir), files: displaced}
		if backErr := r.install(context.WithoutCancel(ctx), back, slices.Concat(files, displaced)); backErr != nil {
			return bridge.WithCause(bridge.Storage, errors.Join(err, backErr), fmt.Sprintf(
				"the restore failed and so did bringing the files back: what was there is in %s; run the restore again", set))
		}
	}
	endErr := r.writeOutcome(set, err == nil)
	if err != nil {
		return bridge.WithCause(bridge.Storage, errors.Join(err, endErr), "the restore failed and every file was brought back: "+inventory.ErrText(err))
	}
	return endErr
}

// writeOutcome records in a recovery set that its work has ended.
func (r Restorer) writeOutcome(set string, done bool) error {
	data, err := json.Marshal(outcome{At: r.Worker.Now().UnixMilli(), Restored: done, RolledBack: !done})
	if err != nil {
		return err
	}
	if err := r.Worker.Files().WriteAtomic(filepath.Join(set, inventory.OutcomeName), append(data, '\n'), disk.PrivateFile); err != nil {
		return fmt.Errorf("it has ended (done: %v), but that could not be noted: %w", done, err)
	}
	return nil
}

// install replaces those files of the home by the source's of which the caller has
// copies. It first copies all next to their places, so that a full disk is detected
// before any replacement.
func (r Restorer) install(ctx context.Context, from source, copied []inventory.File) (err error) {
	temps, err := r.stage(ctx, from)
	defer func() { err = errors.Join(err, r.dropStaged(temps)) }()
	if err != nil {
		return err
	}
	return r.replaceFiles(ctx, from.files, temps, copied)
}

// staged maps files to their copies next to their places.
type staged map[string]string

// stage copies the files of the source next to their places. The caller must drop the
// result, after an error too.
func (r Restorer) stage(ctx context.Context, from source) (staged, error) {
	temps := staged{}
	for i, file := range from.files {
		if err := ctx.Err(); err != nil {
			return temps, err
		}
		if err := inventory.MakeDirs(r.Worker.Home.Dir(), file.Path); err != nil {
			return temps, err
		}
		temp := disk.TempName(inventory.JoinHome(r.Worker.Home.Dir(), file.Path))
		temps[file.Path] = temp // also if it fails midway
		sum, _, err := r.Worker.Files().Copy(inventory.JoinHome(from.root, file.Path), temp)
		if err != nil {
			return temps, err
		}
		if sum != file.SHA256 {
			return temps, bridge.Errorf(bridge.Storage, "%s changed while it was restored", inventory.JoinHome(from.root, file.Path))
		}
		r.Worker.Progress("preparing the files", int64(i+1), int64(len(from.files)))
	}
	return temps, nil
}

// replaceFiles replaces files of the home by the staged ones; copied are those with copies
// elsewhere. A log must never be next to another database: files that are not staged are
// removed before the first replacement.
func (r Restorer) replaceFiles(ctx context.Context, files []inventory.File, temps staged, copied []inventory.File) error {
	if err := r.clear(ctx, files, copied); err != nil {
		return err
	}
	for _, file := range files {
		if err := r.Worker.Files().Replace(temps[file.Path], inventory.JoinHome(r.Worker.Home.Dir(), file.Path)); err != nil {
			return err
		}
		delete(temps, file.Path)
	}
	return nil
}

// clear removes the present files that are not in keep, and the databases' side files in
// any case. Files newer than the copies stay, such as a receipt of a hook, which waits
// for no broker and takes no lease.
func (r Restorer) clear(ctx context.Context, keep, copied []inventory.File) error {
	paths, err := inventory.Present(ctx, r.Worker.Home.Dir())
	if err != nil {
		return err
	}
	retained, safe := map[string]bool{}, map[string]bool{}
	for _, file := range keep {
		retained[file.Path] = !inventory.IsSideFile(file.Path)
	}
	for _, file := range copied {
		safe[file.Path] = true
	}
	for _, path := range paths {
		switch {
		case retained[path]:
		case safe[path], strings.HasSuffix(path, "-shm"): // a -shm holds no data of its own
			if err := r.Worker.Files().RemoveCopied(inventory.JoinHome(r.Worker.Home.Dir(), path)); err != nil {
				return err
			}
		case inventory.IsSideFile(path) && inventory.SizeOf(inventory.JoinHome(r.Worker.Home.Dir(), path)) > 0:
			return bridge.Errorf(bridge.Conflict, "a program that asks for no lease writes to the home: %s is new", path)
		}
	}
	return nil
}

// dropStaged removes the copies that were not put in place; the set has the files.
func (r Restorer) dropStaged(temps staged) error {
	var errs []error
	for _, temp := range temps {
		if err := os.Remove(temp); err != nil && !inventory.IsGone(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
