package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"bridge/backend/bridge"
	"bridge/backend/config"
	"bridge/backend/maintain"
)

// doctorFlags are what `bridge doctor` was asked to do; at most one of the
// works is set.
type doctorFlags struct {
	backup, fix, archive, drill, yes bool
	restore, merge                   string
}

func (a *App) doctorCommand() *cobra.Command {
	var flags doctorFlags
	cmd := a.jsonFlag(&cobra.Command{
		Use: "doctor [SNAPSHOT]", Short: "Check the storage; back it up, archive it, restore it, prove a restore",
		Long: "Without a flag doctor looks through the whole home and changes nothing: databases, JSON files, leftovers,\n" +
			"backups. It exits 1 when it finds errors; warnings alone exit 0.",
		Example: "  bridge doctor\n  bridge doctor --backup\n  bridge doctor --drill\n  bridge doctor --restore latest\n  bridge doctor --merge latest",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.check(cmd.Flags().Changed("restore"), cmd.Flags().Changed("merge")); err != nil {
				return err
			}
			if len(args) > 1 || len(args) == 1 && !flags.drill {
				return &usageError{fmt.Errorf("unexpected argument %q: only --drill takes a snapshot", args[len(args)-1])}
			}
			return a.doctor(cmd.Context(), flags, strings.Join(args, ""))
		},
	})
	cmd.Flags().BoolVar(&flags.backup, "backup", false, "make a full snapshot, also beside a running broker")
	cmd.Flags().BoolVar(&flags.fix, "fix", false, "move abandoned temporary files to archive/orphaned")
	cmd.Flags().BoolVar(&flags.archive, "archive", false, "move old messages to archive.db")
	cmd.Flags().StringVar(&flags.restore, "restore", "", "put the files of this full snapshot (a folder, or latest) in the place of the present ones")
	cmd.Flags().StringVar(&flags.merge, "merge", "", "bring back what is missing of this backup of messages (a folder, or latest); overwrites nothing")
	cmd.Flags().BoolVar(&flags.drill, "drill", false, "prove that a snapshot, by default the newest, can be restored")
	cmd.Flags().BoolVar(&flags.yes, "yes", false, "consent to --fix, --archive, --restore or --merge without being asked")
	return cmd
}

// check refuses several works at once, and a restore or merge of nothing.
func (f doctorFlags) check(restoring, merging bool) error {
	works := 0
	for _, asked := range []bool{f.backup, f.fix, f.archive, f.drill, restoring, merging} {
		if asked {
			works++
		}
	}
	switch {
	case works > 1:
		return &usageError{errors.New("--backup, --fix, --archive, --restore, --merge and --drill exclude each other")}
	case restoring && f.restore == "":
		return &usageError{errors.New("--restore needs the folder of a snapshot")}
	case merging && f.merge == "":
		return &usageError{errors.New("--merge needs the folder of a backup of messages")}
	}
	return nil
}

// asks returns the work that needs consent and the set that it is about; "" where
// nothing that is there changes.
func (f doctorFlags) asks(c maintain.Caretaker) (work maintain.Work, set string) {
	switch {
	case f.restore != "":
		return maintain.WorkRestore, f.restore
	case f.merge != "":
		return maintain.WorkMerge, f.merge
	case f.fix:
		return maintain.WorkFix, ""
	case f.archive && c.ArchiveAge > 0:
		return maintain.WorkArchive, ""
	}
	return "", ""
}

func (a *App) doctor(ctx context.Context, flags doctorFlags, snapshot string) error {
	home, err := a.home()
	if err != nil {
		return err
	}
	settings, err := home.Settings(a.Getenv)
	if err != nil {
		// Damaged settings are a finding of the report; for work the variables do.
		settings = config.FallbackSettings(a.Getenv)
	}
	progress := a.progress()
	defer progress.end()
	c := maintain.Caretaker{
		Home: home, Program: "bridge doctor", Now: a.Now,
		Retention: settings.BackupRetention, ArchiveAge: settings.ArchiveAge, Told: progress.tell,
	}
	if flags != (doctorFlags{restore: flags.restore, yes: flags.yes}) {
		if err := c.RequireHome(); err != nil {
			return err
		}
	}
	if work, set := flags.asks(c); work != "" {
		a.explain(c.Explain(work, set))
		if err := a.consent(flags.yes); err != nil {
			return err
		}
	}
	// From here on an interruption ends the work in order: what a restore replaced
	// comes back, leases and locks are given up.
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch {
	case flags.backup:
		return a.doctorBackup(ctx, c, progress)
	case flags.drill:
		return a.doctorDrill(ctx, c, snapshot, progress)
	case flags.restore != "":
		return a.doctorRestore(ctx, c, flags.restore, progress)
	case flags.merge != "":
		return a.doctorMerge(ctx, c, flags.merge, progress)
	case flags.fix:
		return a.doctorFix(ctx, c, progress)
	case flags.archive:
		return a.doctorArchive(ctx, c, progress)
	}
	return a.doctorCheck(ctx, c, progress)
}

func (a *App) doctorCheck(ctx context.Context, c maintain.Caretaker, progress *progress) error {
	report, err := c.Check(ctx)
	progress.end()
	if err != nil {
		return err
	}
	if err := a.print(report, reportText(report, c, a.Now())); err != nil {
		return err
	}
	if !report.OK {
		return &reported{exitFailed}
	}
	return nil
}

func (a *App) doctorBackup(ctx context.Context, c maintain.Caretaker, progress *progress) error {
	made, err := c.Backup(ctx)
	progress.end()
	if err != nil {
		return err
	}
	text := fmt.Sprintf("Snapshot made and verified: %s\n  %d files, %s. Prove that it can be restored: bridge doctor --drill\n", made.Path, made.Files, bridge.Size(made.Bytes))
	for _, omitted := range made.Omitted {
		text += "  left out: " + omitted + ", a damaged search index that the broker makes anew (see bridge doctor)\n"
	}
	for _, moved := range made.Moved {
		text += "  an older one moved to " + moved + "\n"
	}
	return a.print(made, text)
}

func (a *App) doctorDrill(ctx context.Context, c maintain.Caretaker, snapshot string, progress *progress) error {
	proof, err := c.Drill(ctx, snapshot)
	progress.end()
	if err != nil && proof.Detail == "" {
		return err
	}
	verdict := "Proven: "
	if !proof.OK {
		verdict = "NOT proven: "
	}
	if err := a.print(proof, verdict+proof.Snapshot+"\n  "+proof.Detail+"\n"); err != nil {
		return err
	}
	if !proof.OK {
		return &reported{exitFailed}
	}
	return err
}

func (a *App) doctorRestore(ctx context.Context, c maintain.Caretaker, snapshot string, progress *progress) error {
	done, err := c.Restore(ctx, snapshot)
	progress.end()
	if err != nil {
		return err
	}
	return a.print(done, fmt.Sprintf("Restored %d files from %s\n  What was there before is kept in %s\n  To undo: bridge doctor --restore %s\n",
		done.Files, done.Snapshot, done.Recovery, done.Recovery))
}

func (a *App) doctorMerge(ctx context.Context, c maintain.Caretaker, set string, progress *progress) error {
	done, err := c.Merge(ctx, set)
	progress.end()
	if err != nil {
		return err
	}
	text := fmt.Sprintf("Nothing was missing: all %s of %s are there. Nothing was changed.\n", bridge.Counted(done.Present, "row"), done.Snapshot)
	if done.Missing() > 0 {
		text = fmt.Sprintf("Merged %s, %s and %s from %s\n  There already, and left as they were: %s\n  What was there before is kept in %s\n  To undo: bridge doctor --restore %s\n",
			bridge.Counted(done.Messages, "message"), bridge.Counted(done.Archived, "archived message"), bridge.Counted(done.Routes, "job route"), done.Snapshot,
			bridge.Counted(done.Present, "row"), done.Recovery, done.Recovery)
	}
	if done.Unread > 0 {
		text += fmt.Sprintf("  Unread here but read in the backup, so delivered once more: %s\n", bridge.Counted(done.Unread, "message"))
	}
	return a.print(done, text)
}

// fixed is what `bridge doctor --fix --json` prints.
type fixed struct {
	Moved []maintain.Moved `json:"moved"`
}

func (a *App) doctorFix(ctx context.Context, c maintain.Caretaker, progress *progress) error {
	moved, err := c.Fix(ctx)
	progress.end()
	if err != nil {
		return err
	}
	text := "Nothing was abandoned, so nothing was moved.\n"
	if len(moved) > 0 {
		text = fmt.Sprintf("Moved %d:\n", len(moved))
	}
	for _, one := range moved {
		text += fmt.Sprintf("  %s\n    to %s\n", one.From, one.To)
	}
	return a.print(fixed{moved}, text)
}

func (a *App) doctorArchive(ctx context.Context, c maintain.Caretaker, progress *progress) error {
	if c.ArchiveAge == 0 {
		return a.print(maintain.Archived{}, c.Explain(maintain.WorkArchive, "")+"\n")
	}
	done, err := c.Archive(ctx)
	progress.end()
	if err != nil {
		return err
	}
	return a.print(done, fmt.Sprintf("Archived: %s.\n", bridge.Counted(done.Messages, "message")))
}

// explain says before a question what it is about; a script reads one document.
func (a *App) explain(sentences string) {
	if !a.json {
		fmt.Fprintln(a.Stdout, sentences)
	}
}

// reportText is the report for people: the verdict first, then what to do.
func reportText(r maintain.Report, c maintain.Caretaker, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Storage in %s: %s\n", c.Home.Dir(), r.Summary().Words())
	for _, finding := range r.Findings {
		mark := "!"
		if finding.Severity == maintain.Error {
			mark = "✗"
		}
		fmt.Fprintf(&b, "\n %s %s: %s [%s]\n   %s\n   → %s\n", mark, finding.Severity, finding.Path, finding.Code, finding.Detail, finding.Code.Hint())
	}
	b.WriteString("\n")
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, schema := range r.Schema {
		fmt.Fprintf(table, "  %s\tschema %d of %d\n", schema.Path, schema.Actual, schema.Expected)
	}
	fmt.Fprintf(table, "  size\t%s in %d places\n", bridge.Size(r.TotalBytes), len(r.Sizes))
	fmt.Fprintf(table, "  backups\t%s\n", backupsText(r, now))
	fmt.Fprintf(table, "  last proven restore\t%s\n", proofText(c, now))
	_ = table.Flush() // a strings.Builder never fails
	return b.String()
}

func backupsText(r maintain.Report, now time.Time) string {
	if len(r.Backups) == 0 {
		return "none yet; make one with `bridge doctor --backup`"
	}
	return fmt.Sprintf("%d, the newest made %s: %s", len(r.Backups), bridge.Ago(r.Backups[0].CreatedAt, now), r.Backups[0].Path)
}

func proofText(c maintain.Caretaker, now time.Time) string {
	proof, ok := c.LastProof()
	if !ok {
		return "none; prove one with `bridge doctor --drill`"
	}
	return fmt.Sprintf("%s, of %s", bridge.Ago(proof.At, now), proof.Snapshot)
}

// progress shows on a terminal how far long work is, on one line that goes
// again. Elsewhere it says nothing.
type progress struct {
	out   *os.File // nil where nothing is shown
	now   func() time.Time
	shown time.Time
	width int
}

// progressPace is the shortest time between two lines.
const progressPace = 100 * time.Millisecond

func (a *App) progress() *progress {
	out, ok := a.Stderr.(*os.File)
	if !ok || !term.IsTerminal(int(out.Fd())) {
		out = nil
	}
	return &progress{out: out, now: a.Now}
}

func (p *progress) tell(what string, done, all int64) {
	if p.out == nil || all <= 0 || p.now().Sub(p.shown) < progressPace {
		return
	}
	p.shown = p.now()
	line := fmt.Sprintf("%3d%% %s", done*100/all, filepath.ToSlash(what))
	fmt.Fprintf(p.out, "\r%-*s", p.width, line)
	p.width = max(p.width, len(line))
}

func (p *progress) end() {
	if p.out != nil && p.width > 0 {
		fmt.Fprintf(p.out, "\r%*s\r", p.width, "")
		p.width = 0
	}
}
