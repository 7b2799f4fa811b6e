package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/maintain/lease"
	"bridge/backend/storage/store"
	"bridge/backend/storage/store/fulltext"
	"bridge/backend/storage/store/schema"
	"bridge/backend/storage/store/transfer"
)

// inspection is the result of the inspection of one database.
type inspection struct {
	seen transfer.Inspection
	err  error
}

// looksAtOnce is how many databases are inspected at once: an inspection keeps one
// processor busy.
const looksAtOnce = 2

// checkDatabases inspects every database that exists.
func (k *checker) checkDatabases(ctx context.Context) error {
	look := transfer.Inspect
	if k.quick {
		look = transfer.QuickInspect
	}
	looks := make([]*inspection, len(inventory.Databases))
	progress := databaseProgress(k.worker, k.dir)
	var group errgroup.Group
	group.SetLimit(looksAtOnce)
	for i, database := range inventory.Databases {
		if !k.hasContent(database) {
			continue
		}
		looks[i] = &inspection{}
		group.Go(func() error {
			looks[i].seen, looks[i].err = look(ctx, inventory.JoinHome(k.dir, database.Name), k.live)
			progress(database.Name)
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, database := range inventory.Databases {
		switch {
		case looks[i] == nil:
		case looks[i].err != nil:
			k.findUnreadable(ctx, database, looks[i].err)
		default:
			k.report.Schema = append(k.report.Schema, Schema{Path: database.Name, Actual: looks[i].seen.Version, Expected: database.Version})
			k.judge(ctx, database, looks[i].seen)
			k.checkPromise(ctx, database)
			k.checkRows(ctx, database)
		}
	}
	return ctx.Err()
}

// databaseProgress reports that no database is checked yet. It returns a function that
// reports one more as checked, in bytes of all.
func databaseProgress(worker lease.Worker, dir string) (checked func(name string)) {
	var all int64
	sizes := map[string]int64{}
	for _, database := range inventory.Databases {
		sizes[database.Name] = inventory.SizeOf(inventory.JoinHome(dir, database.Name))
		all += sizes[database.Name]
	}
	var mu sync.Mutex
	var done int64
	report := func() {
		worker.Progress(fmt.Sprintf("checking the databases, %s of %s", bridge.Size(done), bridge.Size(all)), done, all)
	}
	report()
	return func(name string) {
		mu.Lock()
		defer mu.Unlock()
		done += sizes[name]
		report()
	}
}

// checkPromise compares a sound database with its version's promise.
func (k *checker) checkPromise(ctx context.Context, database inventory.Database) {
	if k.found(database.Name) && !k.report.awaitsUpgrade(database.Name) || database.Promise == "" {
		return
	}
	missing, err := schema.Lacks(ctx, inventory.JoinHome(k.dir, database.Name), database.Promise, k.live)
	if err != nil {
		k.findUnreadable(ctx, database, err)
	}
	for _, lack := range missing {
		k.find(codeOf(database, lack), database.Name, "it lacks "+lack.String()+", which its version has")
	}
}

// codeOf returns the code of a lack. An archive has one essential table; the next
// archiving creates the rest.
func codeOf(database inventory.Database, lack schema.Lack) Code {
	switch {
	case database.Name == inventory.Archive && lack.Table != database.Table:
		return ArchiveIncomplete
	case lack.Kind == schema.LacksIndex, database.Name == inventory.Archive && lack.Kind == schema.LacksKey:
		return IndexMissing
	case lack.Kind == schema.LacksTrigger:
		return TriggerMissing
	case lack.Kind == schema.LacksColumn && lack.Kept:
		return SchemaDifferent
	}
	return SchemaIncomplete
}

// awaitsUpgrade reports whether the findings of the path are only that it awaits its
// upgrade.
func (r Report) awaitsUpgrade(path string) bool {
	return !slices.ContainsFunc(r.Findings, func(f Finding) bool {
		return f.Path == path && f.Code != DatabaseOlder && f.Code != UpgradeDeferred
	})
}

// checkRows reports the unreadable rows of a sound database.
func (k *checker) checkRows(ctx context.Context, database inventory.Database) {
	if k.quick || k.found(database.Name) {
		return
	}
	rows, err := store.UnreadableRows(ctx, inventory.JoinHome(k.dir, database.Name), k.live)
	if err != nil {
		k.findUnreadable(ctx, database, err)
	}
	for _, row := range rows {
		code := RowUnreadable
		switch {
		case row.Replaced:
			code = RowReplaced
		case row.Newer:
			code = RowNewer
		}
		topic := ""
		if row.Topic != "" {
			topic = fmt.Sprintf(" on %q", row.Topic)
		}
		k.find(code, database.Name, fmt.Sprintf("%s: %s%s is passed over: %s", row.Table, row.Key, topic, row.Why))
	}
}

// hasContent reports whether there is a database to inspect; a missing one may be a
// finding.
func (k *checker) hasContent(database inventory.Database) bool {
	logged := inventory.SizeOf(inventory.JoinHome(k.dir, database.Name)+"-wal") > 0
	info, ok := k.regular(database.Name)
	switch {
	case k.found(database.Name):
		return false
	case !ok && logged:
		k.find(DatabaseMissing, database.Name, "it is gone, but the log beside it is there")
		return false
	case !ok:
		return false
	case info.Size() < sqlitex.SmallestDatabase:
		k.findEmpty(database, info.Size(), logged)
		return false
	}
	return true
}

// findEmpty reports a file that SQLite would take for an empty database.
func (k *checker) findEmpty(database inventory.Database, bytes int64, logged bool) {
	detail := "it is empty"
	if bytes > 0 {
		detail = "it is too short to be a database"
	}
	switch {
	case database.Name == inventory.History:
		k.findIndexDamaged(detail)
	case logged:
		k.find(DatabaseEmpty, database.Name, detail+", but the log beside it is not")
	default:
		k.find(DatabaseEmpty, database.Name, detail)
	}
}

// judge turns an inspection into findings.
func (k *checker) judge(ctx context.Context, database inventory.Database, seen transfer.Inspection) {
	if len(seen.Problems) > 0 {
		how := "the integrity check says: "
		if k.quick {
			how = "a quick look finds damage: "
		}
		k.findDamage(ctx, database, DatabaseDamaged, how+some(seen.Problems))
	}
	if len(seen.References) > 0 {
		k.find(DatabaseReferences, database.Name, some(seen.References))
	}
	isEmpty := seen.Version == 0 && len(seen.Tables) == 0
	switch {
	case database.Name != inventory.Primary && seen.Foreign == nil && !isEmpty:
		k.find(DatabaseForeign, database.Name, "it is a primary store in the place of another database")
	case seen.Version < 0:
		k.find(DatabaseVersion, database.Name, fmt.Sprintf("it has schema version %d, which no Bridge writes", seen.Version))
	case seen.Version > database.Version:
		k.find(DatabaseNewer, database.Name, fmt.Sprintf("it has schema version %d and this Bridge knows versions up to %d", seen.Version, database.Version))
	case isEmpty && database.Name == inventory.Primary && !k.found(database.Name):
		k.find(StoreUnmade, database.Name, "it has no tables: the start that was to make it did not finish")
	case isEmpty:
	case database.Name == inventory.Primary && seen.Foreign != nil:
		k.find(DatabaseForeign, database.Name, "it is a database, but no store of Bridge's: "+inventory.ShortErr(seen.Foreign))
	case database.Table != "" && !slices.Contains(seen.Tables, database.Table):
		k.find(DatabaseForeign, database.Name, "it is a database, but has no table "+database.Table)
	case database.Name == inventory.History && !fulltext.IsHistory(seen.Version, seen.Tables):
		k.find(DatabaseForeign, database.Name, "it is a database, but no history of Bridge's")
	case database.Name == inventory.Primary && seen.Version < database.Version:
		k.findOlder(database, fmt.Sprintf("it has schema version %d, the newest is %d", seen.Version, database.Version))
	case database.Name == inventory.Primary && !seen.Upgraded:
		k.findOlder(database, "it lacks what this build adds to its version")
	}
}

// findUnreadable reports a database that could not be read: it is damaged, or the system
// refused access.
func (k *checker) findUnreadable(ctx context.Context, database inventory.Database, err error) {
	if sqlitex.IsDamage(err) {
		k.findDamage(ctx, database, DatabaseUnreadable, inventory.ShortErr(err))
		return
	}
	k.find(DatabaseUnreadable, database.Name, inventory.ShortErr(err))
}

// findDamage reports a damaged database. A search index is rebuilt, unless its file holds
// more.
func (k *checker) findDamage(ctx context.Context, database inventory.Database, code Code, detail string) {
	if database.Name != inventory.History || fulltext.HoldsMore(ctx, inventory.JoinHome(k.dir, inventory.History), k.live) {
		k.find(code, database.Name, detail)
		return
	}
	k.findIndexDamaged(detail)
}

func (k *checker) findIndexDamaged(detail string) {
	k.find(IndexDamaged, inventory.History, detail)
	if log := inventory.History + "-wal"; inventory.SizeOf(inventory.JoinHome(k.dir, log)) > 0 {
		k.find(IndexDamaged, log, "it is the log of the damaged search index")
	}
}

// farBehind is the number of unindexed rows from which checkIndex reports them.
const farBehind = 10_000

// checkIndex checks how far the search index is.
func (k *checker) checkIndex(ctx context.Context) error {
	if k.found(inventory.History) || k.found(inventory.Primary) || k.found(inventory.Archive) {
		return nil
	}
	if _, ok := k.regular(inventory.History); !ok {
		return nil
	}
	state, err := fulltext.Inspect(ctx, inventory.JoinHome(k.dir, inventory.History), inventory.JoinHome(k.dir, inventory.Primary), inventory.JoinHome(k.dir, inventory.Archive), k.live)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		k.findUnreadable(ctx, inventory.Database{Name: inventory.History}, err)
	case state.Torn != "":
		k.findDamage(ctx, inventory.Database{Name: inventory.History}, DatabaseDamaged, "the search index is damaged: "+state.Torn)
	case state.Version > state.Newest:
		k.find(DatabaseNewer, inventory.History, fmt.Sprintf("its search index has version %d and this Bridge knows versions up to %d", state.Version, state.Newest))
	case state.Archive > 0 && inventory.IsMissing(inventory.JoinHome(k.dir, inventory.Archive)):
		k.find(DatabaseMissing, inventory.Archive, "it is gone, but the search index knows messages of it")
	case state.Version > 0 && state.Behind >= farBehind:
		k.find(IndexBehind, inventory.History, "the search index does not reach the newest messages yet: "+bridge.Counted(int(state.Behind), "row"))
	}
	return nil
}

// findOlder reports a store that awaits its upgrade, and the programs that it waits for.
func (k *checker) findOlder(database inventory.Database, detail string) {
	older, err := lease.OlderPrograms(k.worker.Home)
	if err != nil {
		k.find(FileUnreadable, "storage-capabilities", disk.Reason(err))
	}
	if older.Schema > 0 {
		k.find(UpgradeDeferred, database.Name, detail+": its upgrade waits until older programs have left: "+strings.Join(older.Programs, ", "))
		return
	}
	k.find(DatabaseOlder, database.Name, detail)
}

// checkCompat reports a compatibility store that its store no longer needs.
func (k *checker) checkCompat(context.Context) error {
	waits := false
	for _, schema := range k.report.Schema {
		waits = waits || schema.Path == inventory.Primary && schema.Actual == schema.Expected
	}
	if waits && !k.found(inventory.Primary) && !k.found(inventory.Sidecar) && inventory.SizeOf(inventory.JoinHome(k.dir, inventory.Sidecar)) > 0 {
		k.find(CompatWaiting, inventory.Sidecar, "it holds what was stored while older programs read "+inventory.Primary)
	}
	return nil
}

// some joins the first lines and counts the rest.
func some(lines []string) string {
	const most = 3
	text := strings.Join(lines[:min(most, len(lines))], "; ")
	if len(lines) > most {
		text += fmt.Sprintf("; and %d more", len(lines)-most)
	}
	return strings.ReplaceAll(text, "\n", " ") // a problem may have several lines
}
