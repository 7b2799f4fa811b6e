package maintain

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

	"bridge/backend/bridge"
	"bridge/backend/disk"
	"bridge/backend/maintain/inventory"
	"bridge/backend/maintain/lease"
	"bridge/backend/store"
)

// A store is lost when the home has had one and bridge.db is gone or empty
// (STO-17). Nothing takes its place without the owner's word: what shows that
// there was one may be all that is left, and a new store would hide the loss.

// ErrLost is in every error that says that the home's store is lost.
var ErrLost = errors.New("the store is lost")

// HasStore reports whether the home has a store. It is false where none was made
// yet, and Denied, with ErrLost, where one is lost: the sentence names what shows
// that, and the commands that help. It changes nothing.
func (c Caretaker) HasStore(ctx context.Context) (bool, error) {
	lost, has := c.lookForLoss(ctx)
	if lost == nil {
		return has, nil
	}
	if err := lease.CheckFree(c.Home); err != nil {
		return false, err // maintenance that replaces the store, or was cut off there, says more
	}
	return false, lost.refusal()
}

// loss is a lost store.
type loss struct {
	home  Caretaker
	how   string   // it is gone, or empty
	signs []string // what shows that there was one: paths in the home
}

// lookForLoss looks for the store, and where there is none for what shows that
// there was one. Another process may be making the first one meanwhile: only what
// is the same before and after counts.
func (c Caretaker) lookForLoss(ctx context.Context) (lost *loss, has bool) {
	writers, err := lease.Live(c.Home)
	live := err != nil || len(writers) > 0
	for how := lease.MissingStore(ctx, c.Home, live); ; {
		if how == "" {
			return nil, true
		}
		signs, before := c.signs(ctx, live, how), how
		if how = lease.MissingStore(ctx, c.Home, live); how != before {
			continue
		}
		if len(signs) == 0 {
			return nil, false
		}
		return &loss{home: c, how: how, signs: signs}, false
	}
}

func (l *loss) detail() string {
	show := " show"
	if len(l.signs) == 1 {
		show = " shows"
	}
	return "it " + l.how + ", but " + listed(l.signs) + show + " that there was one; " + l.ways()
}

// refusal is the one sentence that everybody says who would need a store.
func (l *loss) refusal() error {
	return bridge.WithCause(bridge.Denied, ErrLost, fmt.Sprintf("the store %s is lost: %s", l.home.Home.DB(), l.detail()))
}

// ways says which commands help.
func (l *loss) ways() string {
	anew := "`" + l.home.Home.CommandLine("bridge", "serve", "--new-store") + "` begins with an empty store and keeps what is left"
	back := func(flag, set string) string {
		return "`" + l.home.Home.CommandLine("bridge", "doctor", flag, set) + "` brings "
	}
	if set := l.home.newestWhole(inventory.SnapshotName); set != "" {
		return back("--restore", set) + "the newest snapshot back, and " + anew
	}
	if set := l.home.newestWhole(inventory.RecoveryName); set != "" {
		return back("--restore", set) + "the newest recovery set back, and " + anew
	}
	if found, err := inventory.Sets(l.home.Home.MessageBackups(), inventory.MessagesName); err == nil && len(found) > 0 {
		return "there is no snapshot of it: " + back("--merge", found[0].Path) + "the newest backup of the messages back, and " + anew
	}
	return "there is no snapshot of it: " + anew
}

// newestWhole names the newest full set that holds a store, as a command takes
// it; "" without one.
func (c Caretaker) newestWhole(name *regexp.Regexp) string {
	for _, folder := range []string{"backups", "backups/archive"} {
		found, err := inventory.Sets(inventory.Join(c.Home.Dir(), folder), name)
		if err != nil {
			continue // the doctor names it
		}
		for _, set := range found {
			if !holdsStore(inventory.Join(c.Home.Dir(), folder+"/"+set.Path)) {
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

// signs lists what shows that the home has had a store, one path of each kind.
// What cannot be read counts: nobody but a store's owner has such files.
func (c Caretaker) signs(ctx context.Context, live bool, how string) []string {
	var found []string
	for _, suffix := range strayLogs[how] {
		if inventory.SizeOf(c.Home.DB()+suffix) > 0 {
			found = append(found, inventory.Primary+suffix)
		}
	}
	for _, pattern := range signFiles {
		if path := c.newestMatch(pattern); path != "" {
			found = append(found, path)
		}
	}
	for _, one := range signDatabases {
		if c.holdsRows(ctx, one, live) {
			found = append(found, one.name)
		}
	}
	if c.sizesKnowStore() {
		found = append(found, "logs/"+sizesName)
	}
	return append(found, c.leasesOfStore()...)
}

// strayLogs are the logs that cannot be those of what is in the store's place: the
// making of a first store, cut off, leaves the others.
var strayLogs = map[string][]string{lease.StoreGone: {"-wal", "-journal"}, lease.StoreEmpty: {"-wal"}}

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
func (c Caretaker) newestMatch(pattern string) string {
	found, err := filepath.Glob(inventory.Join(globEscape(c.Home.Dir()), pattern))
	if err != nil || len(found) == 0 {
		return ""
	}
	path, err := filepath.Rel(c.Home.Dir(), slices.Max(found))
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

func (c Caretaker) holdsRows(ctx context.Context, one signDatabase, live bool) bool {
	path := inventory.Join(c.Home.Dir(), one.name)
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false
	}
	has, err := store.HasRows(ctx, path, live, one.says)
	return has || err != nil
}

// sizesKnowStore reports whether the record of sizes has ever measured a store.
func (c Caretaker) sizesKnowStore() bool {
	points, err := c.readSizes()
	return err == nil && slices.ContainsFunc(points, func(p SizePoint) bool { return p.Parts[inventory.Primary] > 0 })
}

// leasesOfStore lists the leases of programs that wrote to the store.
func (c Caretaker) leasesOfStore() []string {
	writers, err := lease.Writers(c.Home)
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

// Replace makes room for an empty store in the place of the lost one, on the
// owner's word. It is what a restore of nothing would be: everything managed goes
// to a recovery set that stays, and only then is taken away what belonged to the
// lost store. It returns the set. The next broker makes the store.
func (c Caretaker) Replace(ctx context.Context) (set string, err error) {
	err = c.Worker().Exclusively(lease.Replacement, false, func() error {
		if lost, _ := c.lookForLoss(ctx); lost == nil {
			return bridge.Errorf(bridge.Conflict, "the store %s is not lost: nothing was changed", c.Home.DB())
		}
		var displaced []inventory.File
		if set, displaced, err = c.displace(ctx, c.Home.DB(), lease.Replacement); err != nil {
			return fmt.Errorf("copy what is left of the store to a recovery set: %w", c.notBegun(set, err))
		}
		if err := c.dropLeft(ctx, displaced); err != nil {
			return fmt.Errorf("take away what is left of the store (its copy is %s): %w", set, err)
		}
		return c.writeOutcome(set, true)
	})
	return set, err
}

// dropLeft takes away what belonged to the lost store and was copied. Archived
// messages and what other programs keep stay where they are. Side files go first:
// without its log a database is older, not another one.
func (c Caretaker) dropLeft(ctx context.Context, copied []inventory.File) error {
	for _, file := range slices.Backward(copied) {
		base := file.Path
		for _, suffix := range inventory.SideFiles {
			base = strings.TrimSuffix(base, suffix)
		}
		switch {
		case base == inventory.History && !store.OnlyIndex(ctx, c.Home.History(), false):
			if err := c.dropIndex(ctx, file.Path); err != nil {
				return err
			}
		case base == inventory.Primary, base == inventory.History, base == inventory.Sidecar, strings.HasPrefix(base, "read-journal/"):
			if err := c.Worker().Files().RemoveCopied(inventory.Join(c.Home.Dir(), file.Path)); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropIndex takes the search index of the lost store out of a history.db that
// holds more than that. One that cannot be read stays as it is: the doctor names it.
func (c Caretaker) dropIndex(ctx context.Context, path string) error {
	if path != inventory.History {
		return nil // a side file
	}
	if err := c.Worker().At("drop the search index"); err != nil {
		return err
	}
	err := store.DropIndex(ctx, c.Home.History())
	if bridge.CodeOf(err) == bridge.Storage {
		return nil
	}
	return err
}

// checkLoss reports a lost store, and one that was lost and replaced.
func (k *checker) checkLoss(ctx context.Context) error {
	if lost, _ := k.lookForLoss(ctx); lost != nil {
		k.find(StoreLost, inventory.Primary, lost.detail())
	}
	found, err := inventory.Sets(inventory.Join(k.dir, "backups"), inventory.RecoveryName)
	if err != nil {
		return nil //nolint:nilerr // a folder that cannot be listed is a finding already
	}
	for _, set := range found { // the newest first
		path := "backups/" + set.Path
		var described inventory.Recovery
		err := disk.ReadJSON(inventory.Join(k.dir, path+"/"+inventory.RecoveryFile), inventory.MaxManifestBytes, &described)
		switch {
		case err != nil, described.Work == lease.Merge, inventory.IsMissing(inventory.Join(k.dir, path+"/"+inventory.OutcomeName)):
			continue // the doctor names what is wrong with it elsewhere
		case described.Work == lease.Replacement:
			k.find(StoreReplaced, path, "an earlier store of this home was lost, and its owner began with an empty one on "+
				time.UnixMilli(set.CreatedAt).Format(time.DateOnly)+"; what was left of the lost one is kept here")
		}
		break // what is there now came from a restore, or was begun anew
	}
	return nil
}
