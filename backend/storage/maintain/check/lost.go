package check

import (
	"context"
	"errors"
	"fmt"
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

// A store is lost when the home has had one and bridge.db is gone or empty
// (STO-17). Nothing takes its place without the owner's word: what shows that
// there was one may be all that is left, and a new store would hide the loss.

// ErrLost is in every error that says that the home's store is lost.
var ErrLost = errors.New("the store is lost")

// HasStore reports whether the home has a store. It is false where none was made
// yet, and Denied, with ErrLost, where one is lost: the sentence names what shows
// that, and the commands that help. It changes nothing.
func HasStore(ctx context.Context, home config.Home) (bool, error) {
	lost, has := FindLoss(ctx, home)
	if lost == nil {
		return has, nil
	}
	if err := lease.CheckFree(home); err != nil {
		return false, err // maintenance that replaces the store, or was cut off there, says more
	}
	return false, lost.Refusal()
}

// Loss is a lost store.
type Loss struct {
	home  config.Home
	how   string   // it is gone, or empty
	signs []string // what shows that there was one: paths in the home
}

// FindLoss looks for the store, and where there is none for what shows that
// there was one. Another process may be making the first one meanwhile: only what
// is the same before and after counts.
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

func (l *Loss) detail() string {
	show := " show"
	if len(l.signs) == 1 {
		show = " shows"
	}
	return "it " + l.how + ", but " + listed(l.signs) + show + " that there was one; " + l.ways()
}

// Refusal is the one sentence that everybody says who would need a store.
func (l *Loss) Refusal() error {
	return bridge.WithCause(bridge.Denied, ErrLost, fmt.Sprintf("the store %s is lost: %s", l.home.DB(), l.detail()))
}

// ways says which commands help.
func (l *Loss) ways() string {
	anew := "`" + l.home.CommandLine("bridge", "serve", "--new-store") + "` begins with an empty store and keeps what is left"
	back := func(flag, set string) string {
		return "`" + l.home.CommandLine("bridge", "doctor", flag, set) + "` brings "
	}
	if set := newestWhole(l.home, inventory.SnapshotName); set != "" {
		return back("--restore", set) + "the newest snapshot back, and " + anew
	}
	if set := newestWhole(l.home, inventory.RecoveryName); set != "" {
		return back("--restore", set) + "the newest recovery set back, and " + anew
	}
	if found, err := inventory.Sets(l.home.MessageBackups(), inventory.MessagesName); err == nil && len(found) > 0 {
		return "there is no snapshot of it: " + back("--merge", found[0].Path) + "the newest backup of the messages back, and " + anew
	}
	return "there is no snapshot of it: " + anew
}

// HasSnapshot reports whether a snapshot would bring the store back.
func (l *Loss) HasSnapshot() bool { return newestWhole(l.home, inventory.SnapshotName) != "" }

// newestWhole names the newest full set that holds a store, as a command takes
// it; "" without one.
func newestWhole(home config.Home, name *regexp.Regexp) string {
	for _, folder := range []string{"backups", "backups/archive"} {
		found, err := inventory.Sets(inventory.JoinHome(home.Dir(), folder), name)
		if err != nil {
			continue // the doctor names it
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

// holdsStore reports whether a published full set has a store that can be
// restored, as far as names and sizes tell.
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

// signsOf lists what shows that the home has had a store, one path of each kind.
// What cannot be read counts: nobody but a store's owner has such files.
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
	for _, one := range signDatabases {
		if holdsRows(ctx, home.Dir(), one, live) {
			found = append(found, one.name)
		}
	}
	if sizesKnowStore(home) {
		found = append(found, "logs/"+sizesName)
	}
	return append(found, leasesOfStore(home)...)
}

// strayLogs are the logs that cannot be those of what is in the store's place: the
// making of a first store, cut off, leaves the others.
var strayLogs = map[string][]string{StoreGone: {"-wal", "-journal"}, StoreEmpty: {"-wal"}}

// signFiles are files and folders that only work with a store leaves, as patterns
// in the home.
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

// newestMatch returns the last of what fits, by name; of a set its folder.
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

// globEscape makes a folder's name match itself alone.
func globEscape(dir string) string {
	return strings.NewReplacer("[", "[[]", "*", "[*]", "?", "[?]").Replace(dir)
}

// signDatabase is one whose rows show that there was a store.
type signDatabase struct {
	name string
	says func(table string) bool // which tables' rows do
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

func holdsRows(ctx context.Context, dir string, one signDatabase, live bool) bool {
	path := inventory.JoinHome(dir, one.name)
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false
	}
	has, err := transfer.HasRows(ctx, path, live, one.says)
	return has || err != nil
}

// sizesKnowStore reports whether the record of sizes has ever measured a store.
func sizesKnowStore(home config.Home) bool {
	points, err := readSizes(home)
	return err == nil && slices.ContainsFunc(points, func(p SizePoint) bool { return p.Parts[inventory.Primary] > 0 })
}

// leasesOfStore lists the leases of programs that wrote to the store.
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

// listed joins words as people do.
func listed(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
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
	for _, set := range found { // the newest first
		path := "backups/" + set.Path
		var described inventory.Recovery
		err := disk.ReadJSON(inventory.JoinHome(k.dir, path+"/"+inventory.RecoveryFile), inventory.MaxManifestBytes, &described)
		switch {
		case err != nil, described.Work == lease.Merge, inventory.IsMissing(inventory.JoinHome(k.dir, path+"/"+inventory.OutcomeName)):
			continue // the doctor names what is wrong with it elsewhere
		case described.Work == lease.Replacement:
			k.find(StoreReplaced, path, "an earlier store of this home was lost, and its owner began with an empty one on "+
				time.UnixMilli(set.CreatedAt).Format(time.DateOnly)+"; what was left of the lost one is kept here")
		}
		break // what is there now came from a restore, or was begun anew
	}
	return nil
}
