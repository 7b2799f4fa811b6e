package maintain

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// checkBackups looks at the published sets and at what is beside them. Of the
// newest full snapshot every byte is read, of the others names and sizes: what
// is restored is read whole in any case.
func (k *checker) checkBackups(ctx context.Context) error {
	full, err := k.listSets("backups", snapshotName)
	if err != nil {
		return err
	}
	for i, set := range full {
		if err := k.checkSnapshot(ctx, "backups/"+set.Path, i == 0); err != nil {
			return err
		}
	}
	if _, err := k.listSets("message-backups", scopedName); err != nil {
		return err
	}
	return k.checkRecoveries()
}

// listSets reports the published sets of a folder, and its strangers.
func (k *checker) listSets(folder string, name *regexp.Regexp) ([]Backup, error) {
	found, err := sets(in(k.dir, folder), name)
	if err != nil {
		k.find(FileUnreadable, folder, reason(err))
		return nil, nil
	}
	for _, set := range found {
		k.report.Backups = append(k.report.Backups, Backup{Path: folder + "/" + set.Path, CreatedAt: set.CreatedAt})
	}
	entries, err := os.ReadDir(in(k.dir, folder))
	if isGone(err) {
		return found, nil
	}
	for _, entry := range entries {
		k.checkBeside(folder, name, entry)
	}
	return found, err
}

// checkBeside judges what lies in a folder of sets.
func (k *checker) checkBeside(folder string, name *regexp.Regexp, entry fs.DirEntry) {
	path := folder + "/" + entry.Name()
	isSet := entry.IsDir() && (name.MatchString(entry.Name()) || recoveryName.MatchString(entry.Name()))
	switch {
	case isSet, entry.Name() == "archive", entry.Name() == drillsName, strings.HasSuffix(entry.Name(), ".lock"):
	case strings.HasPrefix(entry.Name(), pendingPrefix):
		if !k.live {
			k.find(SnapshotUnfinished, path, "an attempt that did not finish")
		}
	case entry.Type().IsRegular() && strings.Contains(entry.Name(), ".bridge-tmp-"):
	default:
		k.find(UnknownFile, path, "it is no set of backups")
	}
}

func (k *checker) checkSnapshot(ctx context.Context, path string, whole bool) error {
	dir := in(k.dir, path)
	manifest, err := readManifest(dir)
	switch {
	case err == nil && whole:
		err = k.checkSums(ctx, manifest, dir, "reading "+path)
	case err == nil:
		err = manifest.checkSizes(dir)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		k.find(SnapshotDamaged, path, sentence(err))
	}
	return nil
}

// checkRecoveries reports a restore that was interrupted: its recovery set has
// no word of its end.
func (k *checker) checkRecoveries() error {
	found, err := sets(k.Home.Backups(), recoveryName)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return nil
	}
	// Only the last one counts: a later restore put everything right.
	newest := filepath.Join(k.Home.Backups(), found[0].Path)
	if _, err := os.Lstat(filepath.Join(newest, outcomeName)); isGone(err) {
		recovery, _ := readRecovery(newest)
		k.find(RestoreUnfinished, "backups/"+found[0].Path, "the restore of "+recovery.Snapshot+" did not finish; what was there before is in this set")
	}
	return nil
}
