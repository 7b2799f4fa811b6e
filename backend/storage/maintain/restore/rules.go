package restore

import (
	"errors"
	"io/fs"
	"path/filepath"

	"bridge/backend/core/job"
	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
	"bridge/backend/storage/rules"
)

// settleRules revokes staged standing rules that were revoked since, and returns what the
// owner must know of the others. Unreadable present rules revoke nothing.
func (r Restorer) settleRules(temps staged) (note string, err error) {
	temp, has := temps[config.RulesStore]
	if !has {
		return "", nil
	}
	restored, err := disk.ReadLimited(temp, rules.MaxBytes)
	if err != nil {
		return "", err
	}
	present, err := disk.ReadLimited(filepath.Join(r.Worker.Home.Dir(), config.RulesStore), rules.MaxBytes)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	merged, alreadyRevoked, stillLive, err := rules.TakenBackSince(restored, present, job.MillisOf(r.Worker.Now()))
	if err != nil || merged == nil {
		return rules.RestoredNote(0, stillLive), err
	}
	return rules.RestoredNote(alreadyRevoked, stillLive), r.Worker.Files().WriteAtomic(temp, merged, disk.PrivateFile)
}
