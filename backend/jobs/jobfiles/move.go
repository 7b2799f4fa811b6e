package jobfiles

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"bridge/backend/platform/disk"
)

// Move moves the files of a job to the archive: its approvals, by id, into its folder, then
// log, transcript and last the folder. By the folder the next start finds the rest after a
// crash. Each file moves as a whole, so it is in one place or in both. Move fails at the first
// file that cannot be moved, also if the archive has a different file of that name.
func Move(home, archive, name string, approvals []string) error {
	folder, archived := filepath.Join(home, "jobs", name), filepath.Join(archive, "jobs", name)
	for _, id := range approvals {
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
			continue // there is no log yet, or it is in the archive
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
	return disk.Publish(folder, archived)
}

// move moves a file. It also completes a move that a crash left with two equal copies.
func move(from, to string) error {
	err := disk.Move(from, to)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	sum, _, sumErr := disk.Checksum(from)
	targetSum, _, thereErr := disk.Checksum(to)
	if sumErr != nil || thereErr != nil || sum != targetSum {
		return err
	}
	return disk.Files{}.RemoveCopied(from)
}
