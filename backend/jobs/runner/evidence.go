package runner

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/core/remote"
	"bridge/backend/jobs/gitwork"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/sandbox"
)

// evidence is the runner's own observation of a run (JOB-15).
type evidence struct {
	open     map[string]job.StepStarted
	commands []runs.Command
	choices  map[string]int // how many choices each question has
	bytes    int            // of the commands
}

func newEvidence() evidence {
	return evidence{open: map[string]job.StepStarted{}, choices: map[string]int{}}
}

// shells lists the tools that run commands, by the CLIs' names. "execute" is the kind of
// such a tool in the Agent Client Protocol.
var shells = map[string]bool{"Bash": true, "bash": true, "shell": true, "execute": true}

// step records a step of the agent.
func (d *drive) step(event job.Event) {
	switch e := event.(type) {
	case job.StepStarted:
		d.saw.open[e.Step] = e
		d.state.Step = firstLine(e.Tool + " " + e.Subject)
		d.line("$ " + strings.TrimSpace(e.Tool+" "+e.Subject))
	case job.StepEnded:
		began, has := d.saw.open[e.Step]
		if !has {
			return
		}
		delete(d.saw.open, e.Step)
		d.state.Step = ""
		d.watch.Call(hash(began.Tool, began.Subject, string(began.Input)), hash(string(e.State), exitText(e.Exit), e.Output))
		if e.State != job.StepRefused && (e.Exit != nil || shells[began.Tool]) {
			d.saw.ran(runs.Command{Command: began.Subject, Exit: e.Exit})
		}
		d.line("= " + strings.TrimSpace(string(e.State)+" "+exitText(e.Exit)))
	}
	d.keep(false)
}

// maxStepChars limits the text of a step in the state.
const maxStepChars = 200

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(line); len(runes) > maxStepChars {
		return string(runes[:maxStepChars-1]) + "…"
	}
	return line
}

func exitText(exit *int) string {
	if exit == nil {
		return ""
	}
	return fmt.Sprintf("(exit %d)", *exit)
}

func hash(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// detailOf returns the exact subject of a question for its recipient.
func detailOf(question job.Question) string {
	var detail strings.Builder
	detail.WriteString(question.Subject)
	add := func(more string) {
		if detail.Len() > 0 {
			detail.WriteString("\n")
		}
		detail.WriteString(more)
	}
	switch question.Kind {
	case job.QuestionEdit, job.QuestionTool:
		more := question.Diff
		if more == "" {
			more = string(bytes.TrimSpace(question.Input))
		}
		if more != "" {
			add(more)
		}
	case job.QuestionChoice:
		for _, choice := range question.Choices {
			add(choice.Question + " [" + strings.Join(choice.Options, " | ") + "]")
		}
	case job.QuestionCommand:
	}
	return detail.String()
}

// saveApproval writes approvals/<id>.json.
func (r *runner) saveApproval(approval job.Approval) error {
	if _, err := os.Stat(r.Folder); err != nil {
		return err // a deleted home is not created again
	}
	if err := disk.MakeDir(r.Approvals); err != nil {
		return err
	}
	data, err := approval.MarshalJSON()
	if err != nil {
		return err
	}
	return disk.WriteAtomic(filepath.Join(r.Approvals, approval.ID+".json"), data, disk.PrivateFile)
}

// place is where the agent works.
type place struct {
	top      string // of its checkout; "" outside a repository
	folder   string
	writable []string // in addition to the folder: git's own
}

// sentence names the folders in which a job can write. The sandbox refuses others
// without a report to Bridge.
func (p place) sentence() string {
	return "+ This job can write in " + strings.Join(append([]string{p.folder}, p.writable...), ", ") +
		" and in a temporary folder of its own, $TMPDIR. The sandbox refuses other folders."
}

// settleIn prepares the job's place and records its content at the start.
func (r *runner) settleIn(ctx context.Context) error {
	if err := r.checkLinks(); err != nil {
		return err
	}
	if r.spec.Worktree != nil {
		return r.settleInWorktree(ctx)
	}
	r.place.folder = r.spec.Folder
	if r.Git == nil {
		return nil
	}
	checkout, err := r.checkoutOf(ctx, r.spec.Folder)
	if err == nil {
		r.place.writable = r.gitFolders(checkout, r.spec.Folder)
	}
	if err == nil && r.state.BaseTree == "" {
		r.state.Checkout = &checkout
		var head gitwork.Head
		head, r.state.BaseTree, err = r.git().Start(ctx, checkout.Top, r.spec.Job)
		r.state.Base = head.Commit
	}
	if err != nil { // not in a repository, or one without a commit: there is no base to compare with
		r.state.Base, r.state.BaseTree, r.state.Checkout = "", "", nil
		return ctx.Err()
	}
	r.place.top = checkout.Top
	return r.save()
}

// checkoutOf returns the checkout that was recorded before the job began, or finds it now.
func (r *runner) checkoutOf(ctx context.Context, folder string) (job.Checkout, error) {
	if r.state.Checkout != nil {
		return *r.state.Checkout, nil
	}
	return r.Git.Checkout(ctx, folder)
}

// git returns a git that uses the record from before the job began. It logs what a
// snapshot omitted.
func (r *runner) git() *gitwork.Git {
	return r.Git.Pin(r.state.Checkout).Say(func(sentence string) { r.log.line("! " + sentence) })
}

// gitFolders returns git's folders of a checkout, so that a job may commit. For a paired
// PC it returns them only within that PC's permitted folder. The job may have written a
// .git file that leads to any repository (RMT-09).
func (r *runner) gitFolders(checkout job.Checkout, allowed string) []string {
	folders := checkout.GitFolders()
	if r.spec.Unlinked && slices.ContainsFunc(folders, func(folder string) bool { return !remote.IsWithin(allowed, folder) }) {
		return nil
	}
	return folders
}

// checkLinks refuses a permitted folder that is now behind a link. It fails with
// Denied.
func (r *runner) checkLinks() error {
	if !r.spec.Unlinked {
		return nil
	}
	folders := []string{r.spec.Folder}
	if w := r.spec.Worktree; w.IsMade() {
		folders = append(folders, w.Path, w.RepoRoot)
	}
	for _, folder := range folders {
		if canonical, err := disk.CanonicalTarget(folder); err != nil || canonical != folder {
			return bridge.Errorf(bridge.Denied, "%s is not the folder any more that was allowed: a link leads elsewhere", folder)
		}
	}
	return nil
}

// settleInWorktree gives the job a new checkout, or its existing one (JOB-08).
func (r *runner) settleInWorktree(ctx context.Context) error {
	if r.Git == nil {
		return bridge.Errorf(bridge.Unavailable, "git is not on this PC: there can be no worktree")
	}
	had := *r.spec.Worktree
	if !had.IsMade() && r.state.Worktree != nil {
		had = *r.state.Worktree
	}
	isNew := !had.IsMade()
	if isNew {
		worktree, err := r.makeWorktree(ctx)
		if err != nil {
			return err
		}
		had = worktree
	}
	reused, err := r.git().Again(ctx, gitwork.Recorded(had), r.spec.Job)
	if err == nil && reused {
		r.made = &had
		had.ReclaimedAt, had.Bytes = 0, 0
		err = r.makeReady(ctx, gitwork.Recorded(had))
	}
	if err != nil {
		return err
	}
	checkout, err := r.own(ctx, gitwork.Recorded(had), isNew, reused)
	if err != nil {
		return err
	}
	r.state.Worktree, r.state.Base, r.state.BaseTree = &had, had.Base, had.BaseTree
	r.place = place{top: had.Path, folder: had.Cwd, writable: r.gitFolders(checkout, had.RepoRoot)}
	if r.place.folder == "" {
		r.place.folder = had.Path
	}
	return r.save()
}

// own verifies that the worktree still belongs to the job, and records git's data on it
// before the job begins. An older job has no record, and its current settings are not
// trusted.
func (r *runner) own(ctx context.Context, w gitwork.Worktree, isNew, reused bool) (job.Checkout, error) {
	if r.state.Checkout != nil && !reused {
		return r.git().Describe(ctx, w)
	}
	checkout, err := r.Git.Describe(ctx, w)
	if err != nil {
		return job.Checkout{}, err
	}
	if r.state.Checkout != nil {
		had := r.state.Checkout
		checkout.Filters, checkout.Author, checkout.Committer = had.Filters, had.Author, had.Committer
	}
	if isNew || r.state.Checkout != nil {
		r.state.Checkout = &checkout
	}
	return checkout, nil
}

// worktrees returns the folder for this job's checkout.
func (r *runner) worktrees() string { return cmp.Or(r.spec.Worktrees, r.Worktrees) }

func (r *runner) makeWorktree(ctx context.Context) (job.Worktree, error) {
	repository, err := r.Git.Repository(ctx, r.spec.Folder)
	if err != nil {
		return job.Worktree{}, err
	}
	worktree, err := r.Git.Add(ctx, repository, r.spec.Job, r.worktrees())
	if bridge.CodeOf(err) == bridge.Conflict {
		worktree, err = r.adopt(ctx, repository, err)
	}
	if err != nil {
		return job.Worktree{}, err
	}
	record := worktree.Record()
	r.made, r.madeNew = &record, true
	r.at(StepPlaced)
	if err := r.makeReady(ctx, worktree); err != nil {
		return job.Worktree{}, err
	}
	return record, nil
}

// withdraw removes the worktree of a run whose agent was not started. The worktree
// stays if an agent may have worked in it, or if it has other content.
func (r *runner) withdraw(ctx context.Context) {
	if r.made == nil {
		return
	}
	w := gitwork.Recorded(*r.made)
	if err := r.git().Withdraw(ctx, w, r.madeNew, r.tried); err != nil {
		r.log.line("! the worktree of the job stays: " + err.Error())
		r.Log.Warn("the worktree of a job that was not started stays", "job", r.spec.Job, "err", err)
		return
	}
	if r.madeNew {
		planned := job.Worktree{RepoRoot: w.Main, Path: w.Path, Cwd: w.Folder, Branch: w.Branch}
		r.state.Worktree, r.state.Base, r.state.BaseTree, r.state.Checkout = &planned, "", "", nil
	} else {
		had := *r.spec.Worktree
		r.state.Worktree = &had // as before: removed, with its branch in place
	}
	r.place = place{}
}

// makeReady copies the files that a new worktree needs to run (JOB-19).
func (r *runner) makeReady(ctx context.Context, worktree gitwork.Worktree) error {
	copied, err := r.Git.Include(ctx, worktree)
	if err != nil {
		return err
	}
	for _, name := range copied {
		r.log.line("+ " + name)
	}
	return r.setUp(ctx, worktree.Folder)
}

// adopt takes over the worktree of a runner that died before it recorded the worktree.
// No agent has worked in it. If that fails, adopt returns refused.
func (r *runner) adopt(ctx context.Context, repository gitwork.Repository, refused error) (gitwork.Worktree, error) {
	path, folder, err := repository.WorktreePath(r.spec.Job, r.worktrees())
	if err != nil {
		return gitwork.Worktree{}, refused
	}
	if _, err := r.Git.Describe(ctx, gitwork.Worktree{Main: repository.Main, Path: path}); err != nil {
		return gitwork.Worktree{}, refused
	}
	head, err := r.Git.Head(ctx, path)
	if err != nil || head.Branch != gitwork.BranchOf(r.spec.Job) {
		return gitwork.Worktree{}, refused
	}
	tree, err := r.Git.Snapshot(ctx, path)
	return gitwork.Worktree{
		Main: repository.Main, Path: path, Folder: folder, Branch: head.Branch, Base: head.Commit, BaseTree: tree,
	}, err
}

// setUp runs the owner's command in a new worktree and logs its output (JOB-19).
func (r *runner) setUp(ctx context.Context, folder string) error {
	if len(r.SetUp) == 0 {
		return nil
	}
	r.log.line("$ " + strings.Join(r.SetUp, " "))
	cmd := exec.CommandContext(ctx, r.SetUp[0], r.SetUp[1:]...)
	// The command gets the file, not a pipe: a server that it leaves running keeps the file open.
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, r.log.file, r.log.file
	cmd.Env = append(os.Environ(), sandbox.JobVariable+"="+r.spec.Job, sandbox.TokenVariable+"="+r.spec.Token)
	if err := cmd.Run(); err != nil {
		return bridge.Errorf(bridge.Invalid, "the set-up command %q of the worktree failed, its output is in the log of the run: %w", r.SetUp[0], err)
	}
	return nil
}

// conclude saves the work of a worktree and returns the run's changes. It logs
// failures: the run has ended in any case, and its worktree stays.
func (r *runner) conclude(ctx context.Context, saw *evidence) runs.Evidence {
	seen := runs.Evidence{Base: r.state.Base, Commands: saw.commands, Layer: string(r.state.Layer), Tracking: r.state.Tracking}
	if r.place.top == "" {
		return seen
	}
	changes, err := r.changes(ctx)
	for _, change := range changes {
		seen.Files = append(seen.Files, runs.Changed{Path: change.Path, From: change.From, Status: change.Status, Added: change.Added, Removed: change.Removed})
	}
	if w := r.state.Worktree; w != nil {
		parked, parkErr := r.git().Park(ctx, gitwork.Recorded(*w), r.spec.Job)
		if err = errors.Join(err, parkErr); parkErr == nil {
			w.Branch, w.BranchHead = parked.Branch, parked.Head
		}
	}
	head, headErr := r.git().Head(ctx, r.place.top)
	seen.Head = head.Commit
	if err = errors.Join(err, headErr); err != nil {
		r.log.line("! what the job has changed could not be told or kept whole: " + err.Error())
		r.Log.Error("the work of a job could not be told or kept whole", "job", r.spec.Job, "err", err)
	}
	return seen
}

// changes compares the files at the job's start with the current ones, and stores the
// current ones. The owner may continue to work in the same folder.
func (r *runner) changes(ctx context.Context) ([]gitwork.FileChange, error) {
	if r.state.Worktree != nil {
		return r.git().Diff(ctx, r.place.top, r.state.BaseTree)
	}
	tree, err := r.git().End(ctx, r.place.top, r.spec.Job)
	if err != nil {
		return nil, err
	}
	r.state.HeadTree = tree
	return r.git().DiffTrees(ctx, r.place.top, r.state.BaseTree, tree)
}
