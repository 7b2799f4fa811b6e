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

// VerifyDatabase reads the whole database at path, which has no writer, and returns the
// row counts of its tables. It fails with Storage for a damaged one.
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

// Restorable fails with Unsupported for a database that is damaged, newer, or not what
// its name states.
func Restorable(ctx context.Context, database inventory.Database, path string) error {
	seen, err := transfer.Inspect(ctx, path, false)
	if err != nil {
		return err
	}
	k := &checker{dir: filepath.Dir(path)}
	k.judge(ctx, database, seen)
	for _, finding := range k.report.Findings {
		if finding.Severity == Error && finding.Code != DatabaseReferences {
			return bridge.Errorf(bridge.Unsupported, "the snapshot cannot be restored: %s: %s", path, finding.Detail)
		}
	}
	return nil
}

// RequireDatabases fails with Storage if the home has lost a database, or another file
// replaces it: a snapshot without it would look complete.
func RequireDatabases(home config.Home) error {
	k := &checker{dir: home.Dir()}
	for _, database := range inventory.Databases {
		if !k.hasContent(database) && k.found(database.Name) && database.Name != inventory.History {
			lost := k.report.Findings[0]
			return bridge.Errorf(bridge.Storage, "a snapshot would lack %s: %s; %s", lost.Path, lost.Detail, lost.Code.Hint())
		}
	}
	return nil
}

// VerifyMessages reads a set of messages whole. It calls progress with the bytes read and
// all bytes. It fails with NotFound without a manifest, with Unsupported for any other
// set, and with Storage if the set is damaged.
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
