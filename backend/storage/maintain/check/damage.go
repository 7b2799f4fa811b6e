package check

import (
	"context"
	"path"
	"slices"
	"strings"

	"bridge/backend/platform/config"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/maintain/lease"
	"bridge/backend/storage/store/transfer"
)

// DamageError reports a store that no broker can start with.
type DamageError struct {
	cause error
	lines []string
}

// Error returns what is wrong, what it means for the owner and what to do, as one text.
func (e *DamageError) Error() string { return strings.Join(e.lines, " ") }

// Lines returns the same as three lines.
func (e *DamageError) Lines() []string { return slices.Clone(e.lines) }

// Unwrap returns the store's error.
func (e *DamageError) Unwrap() error { return e.cause }

// VerifyStart reads from the home's store what the start of a broker reads, and changes
// nothing. It fails with Storage and a DamageError if that is damaged.
func VerifyStart(ctx context.Context, home config.Home) error {
	writers, err := lease.Live(home)
	live := err != nil || len(writers) > 0
	return ExplainDamage(home, transfer.VerifyStart(ctx, home.DB(), live))
}

// ExplainDamage returns a DamageError for an error about damage of the home's store, and
// any other error unchanged.
func ExplainDamage(home config.Home, err error) error {
	if !sqlitex.IsDamage(err) {
		return err
	}
	detail, _, _ := strings.Cut(err.Error(), ": restore a backup")
	do := noSnapshot
	if name := newestWhole(home, inventory.SnapshotName); name != "" {
		do = "Restore the newest snapshot: `" + home.CommandLine("bridge", "doctor", "--restore", name) + "`."
	}
	return &DamageError{cause: err, lines: []string{
		detail + ".",
		"No broker starts, so your sessions get no mail. Bridge has not changed the store.",
		do,
	}}
}

// noSnapshot is what to do about damage without a snapshot.
const noSnapshot = "There is no snapshot: keep a copy of the file, and ask for help before you change it."

// ReadDamage returns what an unreadable part of the store means for the owner, and what to
// do about it. The report's backups name the newest snapshot; nil stands for no report.
func (r *Report) ReadDamage() (means, do string) {
	if r == nil {
		kind := Kinds()[DatabaseDamaged]
		return kind.Means, strings.ReplaceAll(kind.Do, "{restore}", anySnapshot)
	}
	return r.Advice(DatabaseDamaged)
}

// newestSnapshot returns the name of the newest full set, or "" for none.
func (r Report) newestSnapshot() string {
	for _, set := range r.Backups { // newest first
		if name := path.Base(set.Path); inventory.SnapshotName.MatchString(name) {
			return name
		}
	}
	return ""
}
