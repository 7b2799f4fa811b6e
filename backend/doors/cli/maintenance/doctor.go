// Package maintenance holds the commands that look after Bridge: `bridge doctor`, backups,
// backup, restore, drill and logs, and `bridge prove`.
package maintenance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/cli/command"
	"bridge/backend/doors/cli/outcome"
	"bridge/backend/doors/cli/report"
	"bridge/backend/doors/cli/terminal"
	"bridge/backend/platform/config"
	"bridge/backend/storage/maintain"
	"bridge/backend/storage/maintain/archive"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/storage/maintain/inventory"
)

// doctorFlags are the requested works of `bridge doctor`; at most one is set.
type doctorFlags struct {
	backup, fix, archive, drill, yes bool
	restore, merge                   string
}

// doctor is one run of `bridge doctor`.
type doctor struct {
	command.Run
	flags       doctorFlags
	maintenance maintain.Maintenance
	progress    *terminal.Progress
}

// Doctor returns `bridge doctor`.
func Doctor(r command.Run) *cobra.Command {
	var flags doctorFlags
	cmd := r.JSONFlag(&cobra.Command{
		Use: "doctor [SNAPSHOT]", Short: "Check the storage; back it up, archive it, restore it, prove a restore",
		Long: "Without a flag doctor looks through the whole home and changes nothing: databases, JSON files, leftovers,\n" +
			"backups. It exits 1 when it finds errors; warnings alone exit 0.",
		Example: "  bridge doctor\n  bridge doctor --backup\n  bridge doctor --drill\n  bridge doctor --restore latest\n  bridge doctor --merge latest",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.check(cmd.Flags().Changed("restore"), cmd.Flags().Changed("merge")); err != nil {
				return err
			}
			if len(args) > 1 || len(args) == 1 && !flags.drill {
				return &outcome.UsageError{Err: fmt.Errorf("unexpected argument %q: only --drill takes a snapshot", args[len(args)-1])}
			}
			return doctor{Run: r, flags: flags}.carryOut(cmd.Context(), strings.Join(args, ""))
		},
	})
	cmd.Flags().BoolVar(&flags.backup, "backup", false, "make a full snapshot, also beside a running broker")
	cmd.Flags().BoolVar(&flags.fix, "fix", false, "move abandoned temporary files to archive/orphaned, and end what dead runners of jobs left running")
	cmd.Flags().BoolVar(&flags.archive, "archive", false, "move old messages to archive.db")
	cmd.Flags().StringVar(&flags.restore, "restore", "", "replace the current data with this full snapshot (a name, a folder, or latest); the current data is kept")
	cmd.Flags().StringVar(&flags.merge, "merge", "", "add the messages that are missing here from this backup (a name, a folder, or latest); changes nothing else")
	cmd.Flags().BoolVar(&flags.drill, "drill", false, "prove that a snapshot, by default the newest, can be restored")
	cmd.Flags().BoolVar(&flags.yes, "yes", false, "consent to --fix, --archive, --restore or --merge without being asked")
	if err := cmd.RegisterFlagCompletionFunc("restore", completeSets(r)); err != nil {
		panic(err) // there is such a flag
	}
	return cmd
}

// check fails for several works at once, and for a restore or merge without a set.
func (f doctorFlags) check(restoring, merging bool) error {
	works := 0
	for _, requested := range []bool{f.backup, f.fix, f.archive, f.drill, restoring, merging} {
		if requested {
			works++
		}
	}
	switch {
	case works > 1:
		return &outcome.UsageError{Err: errors.New("--backup, --fix, --archive, --restore, --merge and --drill exclude each other")}
	case restoring && f.restore == "":
		return &outcome.UsageError{Err: errors.New("--restore needs the folder of a snapshot")}
	case merging && f.merge == "":
		return &outcome.UsageError{Err: errors.New("--merge needs the folder of a backup of messages")}
	}
	return nil
}

// asks returns the work that needs consent and its set, or "" if no existing data
// changes.
func (f doctorFlags) asks(c maintain.Maintenance) (task maintain.Task, set string) {
	switch {
	case f.restore != "":
		return maintain.TaskRestore, f.restore
	case f.merge != "":
		return maintain.TaskMerge, f.merge
	case f.fix:
		return maintain.TaskFix, ""
	case f.archive && c.ArchiveAge > 0:
		return maintain.TaskArchive, ""
	}
	return "", ""
}

func (d doctor) carryOut(ctx context.Context, snapshot string) error {
	home, err := d.Home()
	if err != nil {
		return err
	}
	settings, err := home.Settings(d.Getenv)
	if err != nil {
		// Damaged settings are a finding of the report; the works then use the variables.
		settings = config.FallbackSettings(d.Getenv)
	}
	d.progress = terminal.NewProgress(d.Stderr, d.Now)
	defer d.progress.End()
	d.maintenance = maintain.New(home, "bridge doctor", settings, d.Now)
	d.maintenance.OnProgress = d.progress.Tell
	if d.flags != (doctorFlags{restore: d.flags.restore, yes: d.flags.yes}) {
		if err := check.RequireHome(home); err != nil {
			return err
		}
	}
	if task, set := d.flags.asks(d.maintenance); task != "" {
		if err := checkSet(home, task, set); err != nil { // before the owner is asked
			return err
		}
		d.Explain(d.maintenance.Explain(task, set))
		if err := d.Consent(d.flags.yes); err != nil {
			return err
		}
	}
	// From here on an interruption ends the work in order: replaced files are
	// restored, and leases and locks released.
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch {
	case d.flags.backup:
		return d.backup(ctx)
	case d.flags.drill:
		return d.drill(ctx, snapshot)
	case d.flags.restore != "":
		return d.restore(ctx, d.flags.restore)
	case d.flags.merge != "":
		return d.merge(ctx, d.flags.merge)
	case d.flags.fix:
		return d.fix(ctx)
	case d.flags.archive:
		return d.archive(ctx)
	}
	return d.check(ctx)
}

// checkSet fails with NotFound or Ambiguous if a task's set cannot be found by its name.
func checkSet(home config.Home, task maintain.Task, set string) (err error) {
	switch task {
	case maintain.TaskRestore:
		_, err = inventory.FindSnapshot(home, set)
	case maintain.TaskMerge:
		_, err = inventory.FindMessages(home, set)
	}
	return err
}

func (d doctor) check(ctx context.Context) error {
	found, err := d.maintenance.Doctor().Check(ctx)
	d.progress.End()
	if err != nil {
		return err
	}
	if err := d.Print(found, report.Doctor(found, d.maintenance, d.Now())); err != nil {
		return err
	}
	if !found.OK {
		return &outcome.ReportedError{Code: outcome.Failed}
	}
	return nil
}

func (d doctor) backup(ctx context.Context) error {
	made, err := d.maintenance.Snapshots().Backup(ctx)
	d.progress.End()
	if err != nil {
		return err
	}
	text := fmt.Sprintf("Snapshot made and verified: %s\n  %s, %s. Prove that it can be restored: %s\n", made.Path, bridge.Counted(made.Files, "file"), bridge.Size(made.Bytes),
		d.maintenance.Home.CommandLine("bridge", "doctor", "--drill"))
	for _, omitted := range made.Omitted {
		text += "  left out: " + omitted + ", a damaged search index, which the broker rebuilds (see bridge doctor)\n"
	}
	for _, moved := range made.Moved {
		text += "  an older one moved to " + moved + "\n"
	}
	return d.Print(made, text)
}

func (d doctor) drill(ctx context.Context, snapshot string) error {
	result, err := d.maintenance.Restores().Test(ctx, snapshot)
	d.progress.End()
	if err != nil && result.Detail == "" {
		return err
	}
	verdict := "Proven: "
	if !result.OK {
		verdict = "NOT proven: "
	}
	if err := d.Print(result, verdict+result.Snapshot+"\n  "+result.Detail+"\n"); err != nil {
		return err
	}
	if !result.OK {
		return &outcome.ReportedError{Code: outcome.Failed}
	}
	return err
}

func (d doctor) restore(ctx context.Context, snapshot string) error {
	done, err := d.maintenance.Restores().Restore(ctx, snapshot)
	d.progress.End()
	if err != nil {
		return err
	}
	text := fmt.Sprintf("Restored %s from %s\n  What was there before is kept in %s\n  To undo: %s\n",
		bridge.Counted(done.Files, "file"), done.Snapshot, done.Recovery, d.undo(done.Recovery))
	if done.Rules != "" {
		text += "  " + done.Rules + "\n"
	}
	return d.Print(done, text)
}

func (d doctor) merge(ctx context.Context, set string) error {
	done, err := d.maintenance.Restores().Merge(ctx, set)
	d.progress.End()
	if err != nil {
		return err
	}
	text := fmt.Sprintf("Nothing was missing: all %s of %s are there. Nothing was changed.\n", bridge.Counted(done.Present, "row"), done.Snapshot)
	if done.Missing() > 0 {
		text = fmt.Sprintf("Merged %s, %s and %s from %s\n  There already, and left as they were: %s\n  What was there before is kept in %s\n  To undo: %s\n",
			bridge.Counted(done.Messages, "message"), bridge.Counted(done.Archived, "archived message"), bridge.Counted(done.Routes, "job route"), done.Snapshot,
			bridge.Counted(done.Present, "row"), done.Recovery, d.undo(done.Recovery))
	}
	if done.Unread > 0 {
		text += fmt.Sprintf("  Unread here but read in the backup, so delivered once more: %s\n", bridge.Counted(done.Unread, "message"))
	}
	return d.Print(done, text)
}

// undo returns the command that brings back what a restore or merge replaced.
func (d doctor) undo(recovery string) string {
	return d.maintenance.Home.CommandLine("bridge", "doctor", "--restore", recovery)
}

func (d doctor) fix(ctx context.Context) error {
	done, err := d.maintenance.Archive().Fix(ctx)
	d.progress.End()
	if err != nil {
		return err
	}
	text := "Nothing was abandoned, so nothing was moved.\n"
	if len(done.Moved) > 0 {
		text = fmt.Sprintf("Moved %d:\n", len(done.Moved))
	}
	for _, move := range done.Moved {
		text += fmt.Sprintf("  %s\n    to %s\n", move.From, move.To)
	}
	for _, folder := range done.Ended {
		text += fmt.Sprintf("Ended what the runner of %s had left running.\n", filepath.Base(folder))
	}
	return d.Print(done, text)
}

func (d doctor) archive(ctx context.Context) error {
	if d.maintenance.ArchiveAge == 0 {
		return d.Print(archive.Archived{}, d.maintenance.Explain(maintain.TaskArchive, "")+"\n")
	}
	done, err := d.maintenance.Archive().Messages(ctx)
	d.progress.End()
	if err != nil {
		return err
	}
	return d.Print(done, fmt.Sprintf("Archived: %s.\n", bridge.Counted(done.Messages, "message")))
}
