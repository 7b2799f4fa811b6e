package check

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/maintain/lease"
	"bridge/backend/storage/store/transfer"
)

// A store is lost if the home has had one and bridge.db is gone or empty (STO-17). No
// store replaces it without the owner's consent: the evidence of it may be all that is
// left, and a new store would hide the loss.

// ErrLost is in every error that reports a lost store.
var ErrLost = errors.New("the store is lost")

// HasStore reports whether the home has a store. It returns false if none was created
// yet. It fails with Denied and ErrLost if one is lost: the sentence names the evidence,
// and the commands that help. It changes nothing.
func HasStore(ctx context.Context, home config.Home) (bool, error) {
	lost, has := FindLoss(ctx, home)
	if lost == nil {
		return has, nil
	}
	if err := lease.CheckFree(home); err != nil {
		return false, err // replacing or interrupted maintenance gives a better reason
	}
	return false, lost.Refusal()
}

// Loss describes a lost store.
type Loss struct {
	home  config.Home
	how   string   // it is gone, or empty
	signs []string // the evidence of a store: paths in the home
}

// FindLoss checks for the store, and if there is none, for evidence that there was one.
// Another process may be creating the first one meanwhile: only a state that is the same
// before and after counts.
func FindLoss(ctx context.Context, home config.Home) (lost *Loss, has bool) {
	writers, err := lease.Live(home)
	live := err != nil || len(writers) > 0
	for how := MissingStore(ctx, home, live); ; {
		if how == "" {
			return nil, true
		}
		signs, before := signsOf(ctx, home, live, how), how
		if how = MissingStore(ctx, home, live); how != before {
			continue
		}
		if len(signs) == 0 {
			return nil, false
		}
		return &Loss{home: home, how: how, signs: signs}, false
	}
}

// detail returns what is missing, the evidence, and the commands that help, in sentences.
func (l *Loss) detail() string {
	show := " show"
	if len(l.signs) == 1 {
		show = " shows"
	}
	return "it " + l.how + ", but " + listed(l.signs) + show + " that there was one. " + l.ways()
}

// Refusal returns the error of every operation that needs a store.
func (l *Loss) Refusal() error {
	return bridge.WithCause(bridge.Denied, ErrLost, "the store "+l.home.DB()+" is lost: "+l.detail())
}

// ways returns the commands that help, as sentences.
func (l *Loss) ways() string {
	command := func(purpose string, args ...string) string {
		return "To " + purpose + ", run `" + l.home.CommandLine("bridge", args...) + "`"
	}
	empty := command("start empty", "serve", "--new-store") + "; Bridge keeps what is left."
	if set := newestWhole(l.home, inventory.SnapshotName); set != "" {
		return command("restore the newest snapshot", "doctor", "--restore", set) + ". " + empty
	}
	if set := newestWhole(l.home, inventory.RecoveryName); set != "" {
		return command("restore the newest recovery set", "doctor", "--restore", set) + ". " + empty
	}
	if found, err := inventory.Sets(l.home.MessageBackups(), inventory.MessagesName); err == nil && len(found) > 0 {
		return "There is no snapshot. " + command("restore the newest backup of the messages", "doctor", "--merge", found[0].Path) + ". " + empty
	}
	return "There is no snapshot. " + empty
}

// HasSnapshot reports whether a snapshot would restore the store.
func (l *Loss) HasSnapshot() bool { return newestWhole(l.home, inventory.SnapshotName) != "" }

// newestWhole returns the newest full set that holds a store, as a command argument; ""
// for none.
func newestWhole(home config.Home, name *regexp.Regexp) string {
	for _, folder := range []string{"backups", "backups/archive"} {
		found, err := inventory.Sets(inventory.JoinHome(home.Dir(), folder), name)
		if err != nil {
			continue // the doctor reports it
		}
		for _, set := range found {
			if !holdsStore(inventory.JoinHome(home.Dir(), folder+"/"+set.Path)) {
				continue
			}
			if folder == "backups" {
				return set.Path
			}
			return folder + "/" + set.Path
		}
	}
	return ""
}

// holdsStore reports whether a published full set has a restorable store, by names and
// sizes.
func holdsStore(dir string) bool {
	if inventory.RecoveryName.MatchString(filepath.Base(dir)) {
		described, err := inventory.ReadRecovery(dir)
		files := inventory.Manifest{Files: described.Files}
		return err == nil && files.Has(inventory.Primary) && files.CheckSizes(filepath.Join(dir, inventory.DisplacedDir)) == nil &&
			inventory.SizeOf(filepath.Join(dir, inventory.DisplacedDir, inventory.Primary)) > 0
	}
	manifest, err := inventory.ReadManifest(dir)
	return err == nil && manifest.Has(inventory.Primary) && manifest.CheckSizes(dir) == nil
}

// signsOf returns the evidence that the home has had a store, one path of each kind.
// Unreadable files count: only a home with a store has such files.
func signsOf(ctx context.Context, home config.Home, live bool, how string) []string {
	var found []string
	for _, suffix := range strayLogs[how] {
		if inventory.SizeOf(home.DB()+suffix) > 0 {
			found = append(found, inventory.Primary+suffix)
		}
	}
	for _, pattern := range signFiles {
		if path := newestMatch(home.Dir(), pattern); path != "" {
			found = append(found, path)
		}
	}
	for _, signDatabase := range signDatabases {
		if holdsRows(ctx, home.Dir(), signDatabase, live) {
			found = append(found, signDatabase.name)
		}
	}
	if sizesKnowStore(home) {
		found = append(found, "logs/"+sizesName)
	}
	return append(found, leasesOfStore(home)...)
}

// strayLogs are the logs that cannot belong to the file that is there now: an interrupted
// first creation leaves the others.
var strayLogs = map[string][]string{StoreGone: {"-wal", "-journal"}, StoreEmpty: {"-wal"}}

// signFiles are patterns of files and folders in the home that only work with a store
// leaves.
var signFiles = []string{
	"backups/snapshot-*/" + inventory.Primary,
	"backups/archive/snapshot-*/" + inventory.Primary,
	"backups/" + inventory.PendingPrefix + "*/" + inventory.Primary,
	"backups/recovery-*",
	"message-backups/messages-*",
	"message-backups/archive/messages-*",
	".migration-snapshots/*",
	inventory.Primary + ".backup-*",
	"read-journal/*.json",
}

// newestMatch returns the last match by name; for a set its folder.
func newestMatch(dir, pattern string) string {
	found, err := filepath.Glob(inventory.JoinHome(globEscape(dir), pattern))
	if err != nil || len(found) == 0 {
		return ""
	}
	path, err := filepath.Rel(dir, slices.Max(found))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(filepath.ToSlash(path), "/"+inventory.Primary)
}

// globEscape escapes a folder's name so that it matches only itself.
func globEscape(dir string) string {
	return strings.NewReplacer("[", "[[]", "*", "[*]", "?", "[?]").Replace(dir)
}

// signDatabase is a database whose rows show that there was a store.
type signDatabase struct {
	name string
	says func(table string) bool // selects the tables whose rows do
}

var signDatabases = []signDatabase{
	{inventory.Archive, func(table string) bool { return strings.HasPrefix(table, "archived_") }},
	{inventory.History, func(table string) bool {
		isOfField := strings.HasPrefix(table, "history_") && !strings.HasPrefix(table, "history_fts")
		return isOfField || table == "search_documents" || table == "search_upto"
	}},
	{"questions.db", func(table string) bool { return table == "questions" }},
	{inventory.Sidecar, func(table string) bool { return table != "bridge_components" && table != "message_peers_upto" }},
}

func holdsRows(ctx context.Context, dir string, database signDatabase, live bool) bool {
	path := inventory.JoinHome(dir, database.name)
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false
	}
	has, err := transfer.HasRows(ctx, path, live, database.says)
	return has || err != nil
}

// sizesKnowStore reports whether the record of sizes has ever measured a store.
func sizesKnowStore(home config.Home) bool {
	points, err := readSizes(home)
	return err == nil && slices.ContainsFunc(points, func(p SizePoint) bool { return p.Parts[inventory.Primary] > 0 })
}

// leasesOfStore returns the leases of programs that wrote to the store.
func leasesOfStore(home config.Home) []string {
	writers, err := lease.Writers(home)
	if err != nil {
		return nil
	}
	for _, writer := range writers {
		if !writer.NoStore {
			return []string{".storage-users/" + filepath.Base(writer.Path)}
		}
	}
	return nil
}

// listed joins items for a sentence.
func listed(items []string) string {
	last := len(items) - 1
	if last == 0 {
		return items[0]
	}
	return strings.Join(items[:last], ", ") + " and " + items[last]
}

// checkLoss reports a lost store, and one that was lost and replaced.
func (k *checker) checkLoss(ctx context.Context) error {
	if lost, _ := FindLoss(ctx, k.worker.Home); lost != nil {
		k.find(StoreLost, inventory.Primary, lost.detail())
	}
	found, err := inventory.Sets(inventory.JoinHome(k.dir, "backups"), inventory.RecoveryName)
	if err != nil {
		return nil //nolint:nilerr // a folder that cannot be listed is a finding already
	}
	for _, set := range found { // newest first
		path := "backups/" + set.Path
		var described inventory.Recovery
		err := disk.ReadJSON(inventory.JoinHome(k.dir, path+"/"+inventory.RecoveryFile), inventory.MaxManifestBytes, &described)
		switch {
		case err != nil, described.Work == lease.Merge, inventory.IsMissing(inventory.JoinHome(k.dir, path+"/"+inventory.OutcomeName)):
			continue // other checks report its errors
		case described.Work == lease.Replacement:
			k.find(StoreReplaced, path, "an earlier store of this home was lost, and its owner began with an empty one on "+
				time.UnixMilli(set.CreatedAt).Format(time.DateOnly)+"; what was left of the lost one is kept here")
		}
		break // the present store was restored or newly created
	}
	return nil
}
