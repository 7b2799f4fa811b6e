package jobfiles

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"bridge/backend/platform/disk"
)

// Move moves what there is of a job beside its entry to the archive: its questions,
// named by their ids, into its folder, its log, its transcript, and last its folder,
// by which the next start finds what a crash left. Each is moved as a whole: it is in
// one place or in both.
func Move(home, archive, name string, asked []string) error {
	folder, to := filepath.Join(home, "jobs", name), filepath.Join(archive, "jobs", name)
	for _, id := range asked {
		if err := disk.MakeDir(folder); err != nil {
			return err
		}
		if err := move(filepath.Join(home, "approvals", id+".json"), filepath.Join(folder, "approval-"+id+".json")); err != nil {
			return err
		}
	}
	for _, suffix := range []string{".log", ".jsonl"} {
		from, to := filepath.Join(home, "runs", name+suffix), filepath.Join(archive, "runs", name+suffix)
		if _, err := os.Lstat(from); err != nil {
			continue // it has said nothing, or it is there
		}
		if err := disk.MakeDir(filepath.Dir(to)); err != nil {
			return err
		}
		if err := move(from, to); err != nil {
			return err
		}
	}
	if _, err := os.Lstat(folder); err != nil {
		return nil //nolint:nilerr // it had none, or it is there
	}
	return disk.Publish(folder, to)
}

// move moves a file, also one that a crash left in both places.
func move(from, to string) error {
	err := disk.Move(from, to)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	sum, _, sumErr := disk.Checksum(from)
	there, _, thereErr := disk.Checksum(to)
	if sumErr != nil || thereErr != nil || sum != there {
		return err
	}
	return disk.Files{}.RemoveCopied(from)
}
