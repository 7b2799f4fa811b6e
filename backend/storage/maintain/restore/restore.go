// Package restore brings a home back from a set of copies: it puts the files of a
// snapshot in place, merges the messages of a backup, makes room for an empty store
// where the old one is lost, and tests in a scratch home that a set can be restored.
// What it replaces is in a recovery set first, and a failure brings everything back.
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

// Restorer brings one home back.
type Restorer struct {
	Worker lease.Worker
}

// Restored says what a restore did.
type Restored struct {
	Snapshot string `json:"snapshot"` // absolute
	Recovery string `json:"recovery"` // the set of what was displaced, for good
	Files    int    `json:"files"`
	// Rules is what the owner must know of the standing rules that came back with it.
	Rules string `json:"rules,omitempty"`
}

// outcome is the end of a restore or merge.
type outcome struct {
	At         bridge.UnixMillis `json:"at"`
	Restored   bool              `json:"restored"`
	RolledBack bool              `json:"rolledBack"`
}

// Restore puts the snapshot's files in the place of the home's managed files
// (STO-08). The snapshot is read whole first and its files are copied beside
// their places; then every managed file is copied to a recovery set that stays;
// then files are replaced one by one. A failure brings everything back. The home's secrets, logs and backups are not touched.
// A recovery set can be restored too: that undoes a restore.
func (r Restorer) Restore(ctx context.Context, typed string) (done Restored, err error) {
	source, err := r.openSource(ctx, typed)
	if err != nil {
		return done, err
	}
	if err := r.Worker.Home.Ensure(); err != nil {
		return done, err
	}
	source.files = slices.DeleteFunc(source.files, func(file inventory.File) bool { return inventory.KeepsPrivate(r.Worker.Home.Dir(), file.Path) })
	var said string
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
			said, err = r.settleRules(staged)
		}
		if err != nil {
			return fmt.Errorf("prepare the files of the snapshot: %w", err)
		}
		set, displaced, err := r.backUpCurrent(ctx, source.dir, lease.Restore)
		if err != nil {
			return fmt.Errorf("copy the present files to a recovery set: %w", r.notBegun(set, err))
		}
		done = Restored{Snapshot: source.dir, Recovery: set, Files: len(source.files), Rules: said}
		return r.replaceOrRollBack(ctx, source.files, staged, set, displaced)
	})
	return done, err
}

// source is a verified set of files to put in place.
type source struct {
	dir   string // the set
	root  string // the folder within it that the paths are relative to
	files []inventory.File
}

// openSource reads a set whole: checksums, and for a snapshot also that its
// databases are sound and of a version that this build knows.
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
	for _, one := range inventory.Databases {
		if manifest.Has(one.Name) {
			if err := check.Restorable(ctx, one, inventory.JoinHome(dir, one.Name)); err != nil {
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

// checkTargets refuses to replace what is no regular file, and to write through
// a link: what that leads to is not the home's, and no recovery set would have it.
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

// backUpCurrent copies every present file into a new recovery set and publishes it:
// work with the snapshot comes next.
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

// notBegun notes in a set that was published, but not durably, that nothing was
// done after it: else it would stand for an interrupted work. It returns why.
func (r Restorer) notBegun(set string, why error) error {
	if _, err := os.Lstat(set); set == "" || err != nil {
		return why
	}
	return errors.Join(why, r.writeOutcome(set, false))
}

// replaceOrRollBack puts the staged files in place. When that fails, the
// displaced files come back; only if that fails too is the home left half done,
// and the recovery set without its outcome says so.
func (r Restorer) replaceOrRollBack(ctx context.Context, files []inventory.File, temps staged, set string, displaced []inventory.File) error {
	err := r.putInPlace(ctx, files, temps, displaced)
	if err != nil {
		// The caller's context may be what failed; bringing back must not.
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

// writeOutcome notes in a recovery set that the work it was made for has ended.
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

// install puts the files of the source in the place of those of the home that
// the caller has copies of. All of them are copied beside their places first, so
// that a full disk is met before anything is replaced.
func (r Restorer) install(ctx context.Context, from source, copied []inventory.File) (err error) {
	temps, err := r.stage(ctx, from)
	defer func() { err = errors.Join(err, r.dropStaged(temps)) }()
	if err != nil {
		return err
	}
	return r.putInPlace(ctx, from.files, temps, copied)
}

// staged are copies beside the places of the files that they are for.
type staged map[string]string

// stage copies the files of the source beside their places. What it returns is
// the caller's to drop, after an error too.
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
		temps[file.Path] = temp // also when it fails half-way
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

// putInPlace replaces files of the home by the staged ones; copied are those of
// which there are copies elsewhere. A log never stands beside a database that is
// not its own: what is not staged goes before the first file comes.
func (r Restorer) putInPlace(ctx context.Context, files []inventory.File, temps staged, copied []inventory.File) error {
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

// clear takes away the present files that are not among those to keep, and the
// databases' side files in any case. What came after the copies were made stays:
// a receipt of a hook, which waits for no broker and asks for no lease.
func (r Restorer) clear(ctx context.Context, keep, copied []inventory.File) error {
	paths, err := inventory.Present(ctx, r.Worker.Home.Dir())
	if err != nil {
		return err
	}
	kept, safe := map[string]bool{}, map[string]bool{}
	for _, file := range keep {
		kept[file.Path] = !inventory.IsSideFile(file.Path)
	}
	for _, file := range copied {
		safe[file.Path] = true
	}
	for _, path := range paths {
		switch {
		case kept[path]:
		case safe[path], strings.HasSuffix(path, "-shm"): // a -shm holds nothing that is nowhere else
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
