package check

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"bridge/backend/platform/disk"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/maintain/lease"
)

// checkBackups checks the published sets and their folders. It reads every byte of the
// newest set of each kind, and names and sizes of the others: a restore reads its set
// whole anyway.
func (k *checker) checkBackups(ctx context.Context) error {
	if err := k.checkSets(ctx, "backups", inventory.SnapshotName, inventory.ReadManifest); err != nil {
		return err
	}
	if err := k.checkSets(ctx, "message-backups", inventory.MessagesName, inventory.ReadMessagesManifest); err != nil {
		return err
	}
	slices.SortStableFunc(k.report.Backups, func(a, b inventory.Set) int { return cmp.Compare(b.CreatedAt, a.CreatedAt) })
	k.checkTests()
	return k.checkRecoveries()
}

// checkSets checks the sets of one folder; read reads their manifests.
func (k *checker) checkSets(ctx context.Context, folder string, name *regexp.Regexp, read func(dir string) (inventory.Manifest, error)) error {
	found, err := k.listSets(folder, name)
	if err != nil {
		return err
	}
	for i, set := range found {
		path := folder + "/" + set.Path
		manifest, err := read(inventory.JoinHome(k.dir, path))
		switch {
		case err == nil && i == 0 && !k.quick:
			err = manifest.CheckSums(ctx, inventory.JoinHome(k.dir, path), k.worker.ProgressOf("reading "+path))
		case err == nil:
			err = manifest.CheckSizes(inventory.JoinHome(k.dir, path))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			k.find(SnapshotDamaged, path, inventory.ShortErr(err))
		}
	}
	return nil
}

// checkTests reports the sets in place whose last restore test failed.
func (k *checker) checkTests() {
	results, err := inventory.TestResults(k.worker.Home.Backups())
	if err != nil {
		k.find(FileUnreadable, "backups/"+inventory.ResultsName, disk.Reason(err))
	}
	judged := map[string]bool{}
	for _, result := range results { // newest first
		inPlace := slices.IndexFunc(k.report.Backups, func(b inventory.Set) bool { return filepath.Base(b.Path) == result.Snapshot })
		if !result.OK && !judged[result.Snapshot] && inPlace >= 0 {
			k.find(TestFailed, k.report.Backups[inPlace].Path, "its last drill failed: "+result.Detail)
		}
		judged[result.Snapshot] = true
	}
}

// listSets reports the published sets of a folder, and unknown files in it.
func (k *checker) listSets(folder string, name *regexp.Regexp) ([]inventory.Set, error) {
	found, err := inventory.Sets(inventory.JoinHome(k.dir, folder), name)
	if err != nil {
		k.find(FileUnreadable, folder, disk.Reason(err))
		return nil, nil
	}
	for _, set := range found {
		k.report.Backups = append(k.report.Backups, inventory.Set{Path: folder + "/" + set.Path, CreatedAt: set.CreatedAt})
	}
	entries, err := os.ReadDir(inventory.JoinHome(k.dir, folder))
	if inventory.IsGone(err) {
		return found, nil
	}
	for _, entry := range entries {
		k.checkUnknown(folder, name, entry)
	}
	return found, err
}

// checkUnknown reports an unknown entry in a folder of sets.
func (k *checker) checkUnknown(folder string, name *regexp.Regexp, entry fs.DirEntry) {
	path := folder + "/" + entry.Name()
	isSet := entry.IsDir() && (name.MatchString(entry.Name()) || inventory.RecoveryName.MatchString(entry.Name()))
	switch {
	case isSet, entry.Name() == "archive", entry.Name() == inventory.ResultsName, strings.HasSuffix(entry.Name(), ".lock"):
	case strings.HasPrefix(entry.Name(), inventory.PendingPrefix):
		if !k.live {
			k.find(SnapshotUnfinished, path, "an attempt that did not finish")
		}
	case entry.Type().IsRegular() && strings.Contains(entry.Name(), ".bridge-tmp-"):
	default:
		k.find(UnknownFile, path, "it is no set of backups")
	}
}

// checkRecoveries reports a restore or merge that was interrupted.
func (k *checker) checkRecoveries() error {
	newest, interrupted, err := inventory.Interrupted(k.worker.Home.Backups())
	if err != nil || !interrupted {
		return nil //nolint:nilerr // a folder that cannot be listed is a finding already
	}
	described, _ := inventory.ReadRecovery(newest)
	k.find(RestoreUnfinished, "backups/"+filepath.Base(newest),
		"the "+cmp.Or(described.Work, lease.Restore)+" of "+described.Snapshot+" did not finish; what was there before is in this set")
	return nil
}
