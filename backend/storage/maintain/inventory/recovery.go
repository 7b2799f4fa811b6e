package inventory

import (
	"fmt"
	"os"
	"path/filepath"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// Recovery describes a recovery set. Its files are in its folder displaced.
type Recovery struct {
	Version   int               `json:"version"`
	Snapshot  string            `json:"snapshot"` // what was restored over them, or merged
	Work      string            `json:"work"`     // restore or merge; older sets lack it
	CreatedAt bridge.UnixMillis `json:"createdAt"`
	Files     []File            `json:"files"`
}

// The files of a recovery set.
const (
	RecoveryFile = "recovery.json"
	DisplacedDir = "displaced"
	// OutcomeName is written when the restore or merge has ended, with or without success.
	OutcomeName = "outcome.json"
)

// ReadRecovery reads the description of a recovery set. It fails for any other set.
func ReadRecovery(dir string) (Recovery, error) {
	var described Recovery
	err := disk.ReadJSON(filepath.Join(dir, RecoveryFile), MaxManifestBytes, &described)
	if err != nil || described.Version != ManifestVersion {
		return described, bridge.WithCause(bridge.Unsupported, err, fmt.Sprintf("%s is no recovery set that this Bridge knows", dir))
	}
	for _, file := range described.Files {
		if !isPlain(file.Path) || !IsManaged(file.Path) && !IsSideFile(file.Path) {
			return described, bridge.Errorf(bridge.Unsupported, "the recovery set %s names %q, which no restore displaces", dir, file.Path)
		}
	}
	return described, nil
}

// Interrupted returns the newest recovery set of the folder, and whether it lacks its
// outcome. Only this one counts: later work repaired everything. It fails if the folder
// is unreadable.
func Interrupted(backups string) (newest string, is bool, err error) {
	found, err := Sets(backups, RecoveryName)
	if err != nil || len(found) == 0 {
		return "", false, err
	}
	newest = filepath.Join(backups, found[0].Path)
	_, err = os.Lstat(filepath.Join(newest, OutcomeName))
	return newest, IsGone(err), nil
}
