package check

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"bridge/backend/platform/config"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/maintain/lease"
)

// checkFiles walks the home once for sizes, links, permissions, unknown files and
// abandoned temporary files.
func (k *checker) checkFiles(ctx context.Context) error {
	bytes, folders := map[string]int64{}, config.Folders()
	isOpen := k.checkRights(".") // otherwise its content is inaccessible to others
	err := k.walk(ctx, func(name string, entry fs.DirEntry) error {
		top, rest, _ := strings.Cut(name, "/")
		if inventory.IsAgents(name) { // whatever it is: only its size counts
			if info, err := entry.Info(); err == nil && entry.Type().IsRegular() {
				bytes[top] += info.Size()
			}
			return nil
		}
		if !config.IsKnownName(top) && (!entry.Type().IsRegular() || !isLeftover(name)) {
			if rest == "" {
				k.find(UnknownFile, name, "Bridge keeps no "+kindName(entry)+" of this name in its home")
			}
		} else if rest == "" && entry.Type().IsRegular() && isOpen {
			k.checkRights(name)
		}
		if slices.Contains(folders, name) && !entry.IsDir() && entry.Type()&fs.ModeSymlink == 0 {
			k.find(NotAFolder, name, "it is "+inventory.KindOf(entry.Type())+", not a folder")
		}
		if name == "broker.lock" {
			k.regular(name)
		}
		if !utf8.ValidString(name) && !inQuarantine(name) {
			k.find(UnknownFile, name, "its name is not valid UTF-8: Bridge writes no such name, and no snapshot holds it")
		}
		if entry.Type()&fs.ModeSymlink != 0 && !inQuarantine(name) && !k.found(name) {
			k.find(Link, name, "it is a symbolic link")
		}
		if isAbandonable(name) && entry.Type().IsRegular() && k.abandoned(entry) {
			k.find(TempAbandoned, name, "a write to it was never finished")
		}
		if info, err := entry.Info(); err == nil && entry.Type().IsRegular() {
			bytes[top] += info.Size()
		}
		return nil
	})
	k.report.setSizes(bytes)
	return err
}

func kindName(entry fs.DirEntry) string {
	if entry.IsDir() {
		return "folder"
	}
	return "file"
}

// settled is the maximum duration of a write: a live process may still finish a younger
// temporary file.
const settled = time.Hour

// abandoned reports whether no process will finish the write. Programs without leases are
// known only by their records.
func (k *checker) abandoned(entry fs.DirEntry) bool {
	info, err := entry.Info()
	if err != nil {
		return false
	}
	if k.worker.Now().Sub(info.ModTime()) > settled {
		return true
	}
	older, err := lease.OlderPrograms(k.worker.Home)
	return err == nil && !k.live && len(older.Programs) == 0
}

// checkRights reports a file that others than the owner may read or write. Windows has
// that in the home's own permissions. It returns whether it reported one.
func (k *checker) checkRights(name string) bool {
	info, err := os.Lstat(filepath.Join(k.dir, name))
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0 {
		return false
	}
	k.find(OpenToOthers, name, "its rights are "+info.Mode().Perm().String()+": others on this computer may use it")
	return true
}
