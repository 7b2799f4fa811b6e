package restore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/store"
	"bridge/backend/storage/store/transfer"
)

// Test restores a snapshot, the newest if typed is "", into a scratch home and verifies
// it there. It checks the checksums, the doctor's report, the rows of every table against
// the manifest, and that the store opens. A set of messages is merged into an empty home
// instead. Test records the result, even a failure, and removes the scratch home. It
// fails with NotFound without such a snapshot, with Denied during maintenance, and with
// Storage if the snapshot cannot be restored.
func (r Restorer) Test(ctx context.Context, typed string) (result inventory.TestResult, err error) {
	find := inventory.FindSnapshot
	if inventory.MessagesName.MatchString(filepath.Base(typed)) {
		find = inventory.FindMessages
	}
	dir, err := find(r.Worker.Home, typed)
	if err != nil {
		return result, err
	}
	if err := disk.MakeDir(r.Worker.Home.Backups()); err != nil { // a home may have sets of messages only
		return result, err
	}
	held, err := r.Worker.Register()
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	result = inventory.TestResult{At: r.Worker.Now().UnixMilli(), Snapshot: filepath.Base(dir)}
	test := r.testSnapshot
	if inventory.MessagesName.MatchString(result.Snapshot) {
		test = r.testMessages
	}
	failure := test(ctx, dir, &result)
	if ctx.Err() != nil {
		return result, ctx.Err() // without a result
	}
	result.OK = failure == nil
	if failure != nil {
		result.Detail = inventory.ErrText(failure)
	}
	line, err := json.Marshal(result)
	if err != nil {
		return result, err
	}
	return result, errors.Join(r.Worker.Files().AppendSync(filepath.Join(r.Worker.Home.Backups(), inventory.ResultsName), line, disk.PrivateFile), asFailure(failure))
}

// asFailure returns the reason of a failed restore test as a sentence for people.
func asFailure(failure error) error {
	if failure == nil {
		return nil
	}
	return bridge.WithCause(bridge.Storage, failure, "the drill failed: "+inventory.ErrText(failure))
}

// testSnapshot runs the restore test of a full snapshot.
func (r Restorer) testSnapshot(ctx context.Context, dir string, result *inventory.TestResult) error {
	manifest, err := inventory.ReadManifest(dir)
	if err != nil {
		return err
	}
	from, err := r.openSource(ctx, dir)
	if err != nil {
		return err
	}
	return r.inScratch(func(restorer Restorer) error {
		if err := restorer.install(ctx, from, nil); err != nil {
			return err
		}
		result.Files = len(manifest.Files)
		if result.Rows, err = restorer.checkCounts(ctx, manifest); err != nil {
			return err
		}
		result.Detail = fmt.Sprintf("%s and %s were restored into a scratch home and found whole", bridge.Counted(result.Files, "file"), bridge.Counted(result.Rows, "row"))
		return restorer.checkSound(ctx)
	})
}

// testMessages runs the restore test of a set of messages.
func (r Restorer) testMessages(ctx context.Context, dir string, result *inventory.TestResult) error {
	manifest, err := inventory.ReadMessagesManifest(dir)
	if err != nil {
		return err
	}
	result.Files = len(manifest.Files)
	for _, count := range manifest.Counts[inventory.MessagesFile] {
		result.Rows += count
	}
	return r.inScratch(func(restorer Restorer) error {
		merged, err := restorer.Merge(ctx, dir)
		if err != nil {
			return err
		}
		if got := merged.Missing() + merged.Present; got != result.Rows {
			return bridge.Errorf(bridge.Storage, "%s of %s came into an empty home, not the %d that its manifest counts", bridge.Counted(got, "row"), dir, result.Rows)
		}
		result.Detail = bridge.Counted(result.Rows, "row") + " of messages were merged into a scratch home and found whole"
		return restorer.checkSound(ctx)
	})
}

// inScratch runs work on an empty home in the folder of the snapshots, where there is
// room for it. It then removes that home.
func (r Restorer) inScratch(work func(restorer Restorer) error) (err error) {
	scratch := filepath.Join(r.Worker.Home.Backups(), inventory.PendingPrefix+"drill-"+uuid.NewString())
	if err := disk.MakeDir(scratch); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dropScratch(scratch)) }()
	inCopy := r
	if inCopy.Worker.Home, err = config.ResolveHome(scratch, func(string) string { return "" }); err != nil {
		return err
	}
	return work(inCopy)
}

// dropScratch removes a copy that this call created: a scratch home, or a captured
// damaged index.
func dropScratch(dir string) error { return os.RemoveAll(dir) }

// checkCounts compares the rows of every table with the manifest.
func (r Restorer) checkCounts(ctx context.Context, manifest inventory.Manifest) (rows int, err error) {
	for _, database := range inventory.Databases {
		if !manifest.Has(database.Name) {
			continue
		}
		counts, err := transfer.Counts(ctx, inventory.JoinHome(r.Worker.Home.Dir(), database.Name), false)
		if err != nil {
			return rows, err
		}
		for _, count := range counts {
			rows += count
		}
		want, recorded := manifest.Counts[database.Name]
		if recorded && !maps.Equal(want, counts) {
			return rows, bridge.Errorf(bridge.Storage, "%s does not have the rows that the manifest counts", database.Name)
		}
	}
	return rows, nil
}

// checkSound runs the doctor on the scratch home and opens its store like a broker, with
// the upgrade.
func (r Restorer) checkSound(ctx context.Context) error {
	report, err := check.Doctor{Worker: r.Worker}.Check(ctx)
	if err != nil {
		return err
	}
	for _, finding := range report.Findings {
		if finding.Severity == check.Error && finding.Code != check.DatabaseReferences { // these were captured unchanged
			return bridge.Errorf(bridge.Storage, "%s: %s", finding.Path, finding.Detail)
		}
	}
	if _, err := os.Stat(r.Worker.Home.DB()); inventory.IsGone(err) {
		return nil
	}
	db, err := store.Open(ctx, r.Worker.Home.DB(), store.Options{Now: r.Worker.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	_, err = db.Recent(ctx, 1)
	return errors.Join(err, db.Close())
}
