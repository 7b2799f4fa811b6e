package check

import (
	"context"
	"maps"
	"path/filepath"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/store/transfer"
)

// VerifyDatabase reads the whole database at path, which nobody writes, and
// returns the rows of its tables. A damaged one is refused.
func VerifyDatabase(ctx context.Context, path string) (map[string]int, error) {
	seen, err := transfer.Inspect(ctx, path, false)
	if err != nil {
		return nil, err
	}
	if len(seen.Problems) > 0 {
		return nil, bridge.Errorf(bridge.Storage, "%s is damaged: %s", filepath.Base(path), some(seen.Problems))
	}
	return transfer.Counts(ctx, path, false)
}

// Restorable refuses a database that is damaged, newer, or not what its
// name says.
func Restorable(ctx context.Context, one inventory.Database, path string) error {
	seen, err := transfer.Inspect(ctx, path, false)
	if err != nil {
		return err
	}
	k := &checker{dir: filepath.Dir(path)}
	k.judge(ctx, one, seen)
	for _, finding := range k.report.Findings {
		if finding.Severity == Error && finding.Code != DatabaseReferences {
			return bridge.Errorf(bridge.Unsupported, "the snapshot cannot be restored: %s: %s", path, finding.Detail)
		}
	}
	return nil
}

// RequireDatabases refuses a home that has lost a database, or has something else in
// its place: a snapshot without it would pass for a whole one.
func RequireDatabases(home config.Home) error {
	k := &checker{dir: home.Dir()}
	for _, one := range inventory.Databases {
		if !k.hasContent(one) && k.found(one.Name) && one.Name != inventory.History {
			lost := k.report.Findings[0]
			return bridge.Errorf(bridge.Storage, "a snapshot would lack %s: %s; %s", lost.Path, lost.Detail, lost.Code.Hint())
		}
	}
	return nil
}

// VerifyMessages reads a set of messages whole. progress hears how many bytes of
// all were read.
func VerifyMessages(ctx context.Context, dir string, progress func(done, all int64)) error {
	m, err := inventory.ReadMessagesManifest(dir)
	if err != nil {
		return err
	}
	if err := m.CheckSums(ctx, dir, progress); err != nil {
		return err
	}
	counts, err := VerifyDatabase(ctx, filepath.Join(dir, inventory.MessagesFile))
	if err == nil && !maps.Equal(counts, m.Counts[inventory.MessagesFile]) {
		err = bridge.Errorf(bridge.Storage, "%s does not have the rows that its manifest counts", dir)
	}
	return err
}
