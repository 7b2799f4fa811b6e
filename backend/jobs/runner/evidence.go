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

// evidence is what the runner sees of a run itself (JOB-15).
type evidence struct {
	open     map[string]job.StepStarted
	commands []runs.Command
	choices  map[string]int // of each question, how many things it asks
	bytes    int            // of the commands
}

func newEvidence() evidence {
	return evidence{open: map[string]job.StepStarted{}, choices: map[string]int{}}
}

// shells are the tools that run commands, as the CLIs name them.
var shells = map[string]bool{"Bash": true, "bash": true, "shell": true}

// step takes in a step of the agent.
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

// maxStepChars is how much of a step the state shows.
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

// detailOf is exactly what a question is about, for whoever is asked.
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
		return err // a home that was deleted is not begun anew
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
	top      string // of its checkout; "" outside of a repository
	folder   string
	writable []string // besides the folder: git's own
}

// sentence says in which folders a job can write: the sandbox refuses others, and Bridge is
// not told of it.
func (p place) sentence() string {
	return "+ This job can write in " + strings.Join(append([]string{p.folder}, p.writable...), ", ") +
		" and in a temporary folder of its own, $TMPDIR. The sandbox refuses other folders."
}

// settleIn makes the job's place and keeps what it holds at the start.
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
		r.place.writable = r.gitsOwn(checkout, r.spec.Folder)
	}
	if err == nil && r.state.BaseTree == "" {
		r.state.Checkout = &checkout
		var head gitwork.Head
		head, r.state.BaseTree, err = r.git().Start(ctx, checkout.Top, r.spec.Job)
		r.state.Base = head.Commit
	}
	if err != nil { // not in a repository, or in one without a commit: there is nothing to compare with
		r.state.Base, r.state.BaseTree, r.state.Checkout = "", "", nil
		return ctx.Err()
	}
	r.place.top = checkout.Top
	return r.save()
}

// checkoutOf is what was recorded of the job's checkout before it began, or is found now.
func (r *runner) checkoutOf(ctx context.Context, folder string) (job.Checkout, error) {
	if r.state.Checkout != nil {
		return *r.state.Checkout, nil
	}
	return r.Git.Checkout(ctx, folder)
}

// git goes by what was recorded before the job began, and says in the log of the run what
// a snapshot left out.
func (r *runner) git() *gitwork.Git {
	return r.Git.Pin(r.state.Checkout).Say(func(sentence string) { r.log.line("! " + sentence) })
}

// gitsOwn returns git's folders of a checkout, so that a job may commit. Those of a paired
// PC it returns only within what that PC was allowed: a file named .git, which the job may
// have written itself, leads to any repository (RMT-09).
func (r *runner) gitsOwn(checkout job.Checkout, allowed string) []string {
	folders := checkout.GitFolders()
	if r.spec.Unlinked && slices.ContainsFunc(folders, func(folder string) bool { return !remote.IsWithin(allowed, folder) }) {
		return nil
	}
	return folders
}

// checkLinks refuses a folder to which a link leads by now, where it was allowed by its
// own name.
func (r *runner) checkLinks() error {
	if !r.spec.Unlinked {
		return nil
	}
	folders := []string{r.spec.Folder}
	if w := r.spec.Worktree; w.IsMade() {
		folders = append(folders, w.Path, w.RepoRoot)
	}
	for _, folder := range folders {
		if there, err := disk.CanonicalTarget(folder); err != nil || there != folder {
			return bridge.Errorf(bridge.Denied, "%s is not the folder any more that was allowed: a link leads elsewhere", folder)
		}
	}
	return nil
}

// settleInWorktree gives the job its own checkout, or the one that it had (JOB-08).
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
		made, err := r.makeWorktree(ctx)
		if err != nil {
			return err
		}
		had = made
	}
	again, err := r.git().Again(ctx, gitwork.Recorded(had), r.spec.Job)
	if err == nil && again {
		r.made = &had
		had.ReclaimedAt, had.Bytes = 0, 0
		err = r.makeReady(ctx, gitwork.Recorded(had))
	}
	if err != nil {
		return err
	}
	checkout, err := r.own(ctx, gitwork.Recorded(had), isNew, again)
	if err != nil {
		return err
	}
	r.state.Worktree, r.state.Base, r.state.BaseTree = &had, had.Base, had.BaseTree
	r.place = place{top: had.Path, folder: had.Cwd, writable: r.gitsOwn(checkout, had.RepoRoot)}
	if r.place.folder == "" {
		r.place.folder = had.Path
	}
	return r.save()
}

// own makes sure that the worktree is still the job's, and records what git knows of it
// where the job has not begun in it. Of an older job nothing was recorded, and what its
// settings say now is nothing to go by.
func (r *runner) own(ctx context.Context, w gitwork.Worktree, isNew, again bool) (job.Checkout, error) {
	if r.state.Checkout != nil && !again {
		return r.git().Own(ctx, w)
	}
	checkout, err := r.Git.Own(ctx, w)
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

// worktrees is where this job's checkout is made.
func (r *runner) worktrees() string { return cmp.Or(r.spec.Worktrees, r.Worktrees) }

func (r *runner) makeWorktree(ctx context.Context) (job.Worktree, error) {
	repository, err := r.Git.Repository(ctx, r.spec.Folder)
	if err != nil {
		return job.Worktree{}, err
	}
	made, err := r.Git.Add(ctx, repository, r.spec.Job, r.worktrees())
	if bridge.CodeOf(err) == bridge.Conflict {
		made, err = r.adopt(ctx, repository, err)
	}
	if err != nil {
		return job.Worktree{}, err
	}
	record := made.Record()
	r.made, r.madeNew = &record, true
	r.at(StepPlaced)
	if err := r.makeReady(ctx, made); err != nil {
		return job.Worktree{}, err
	}
	return record, nil
}

// withdraw takes away the worktree that was made for a run whose agent was not started. It
// stays where an agent may have worked in it, and where something else is there.
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
		r.state.Worktree = &had // as it was: taken away, and its branch is there
	}
	r.place = place{}
}

// makeReady brings what a checkout lacks to run into a new worktree (JOB-19).
func (r *runner) makeReady(ctx context.Context, made gitwork.Worktree) error {
	copied, err := r.Git.Include(ctx, made)
	if err != nil {
		return err
	}
	for _, name := range copied {
		r.log.line("+ " + name)
	}
	return r.setUp(ctx, made.Folder)
}

// adopt takes over the worktree that a runner made and died before it could write
// that down: nothing worked in it so far. refused is why there can be no new one.
func (r *runner) adopt(ctx context.Context, repository gitwork.Repository, refused error) (gitwork.Worktree, error) {
	path, folder, err := repository.PlaceOf(r.spec.Job, r.worktrees())
	if err != nil {
		return gitwork.Worktree{}, refused
	}
	if _, err := r.Git.Own(ctx, gitwork.Worktree{Main: repository.Main, Path: path}); err != nil {
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

// setUp runs the owner's command in a new worktree, with its output in the log
// (JOB-19).
func (r *runner) setUp(ctx context.Context, folder string) error {
	if len(r.SetUp) == 0 {
		return nil
	}
	r.log.line("$ " + strings.Join(r.SetUp, " "))
	cmd := exec.CommandContext(ctx, r.SetUp[0], r.SetUp[1:]...)
	// The file itself, no pipe into it: a server that the command leaves running holds it.
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, r.log.file, r.log.file
	cmd.Env = append(os.Environ(), sandbox.JobVariable+"="+r.spec.Job, sandbox.TokenVariable+"="+r.spec.Token)
	if err := cmd.Run(); err != nil {
		return bridge.Errorf(bridge.Invalid, "the set-up command %q of the worktree failed, its output is in the log of the run: %w", r.SetUp[0], err)
	}
	return nil
}

// conclude keeps the work of a worktree and says what the run has changed. What goes
// wrong is in the log: the run has ended in any case, and its worktree stays.
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

// changes compares the files at the job's start with those now, which are kept: in the
// owner's own folder he goes on working.
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
