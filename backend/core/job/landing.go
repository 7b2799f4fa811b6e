package job

import (
	"fmt"
	"io/fs"
	"strings"

	"bridge/backend/core/bridge"
)

// LandingState is the state of a finish that the owner requested (JOB-18).
type LandingState string

// The states. A finish whose process dies is checked afterwards, never repeated
// automatically.
const (
	LandingBegun  LandingState = "begun"  // in progress
	LandingDone   LandingState = "done"   // as requested
	LandingStaged LandingState = "staged" // interrupted: staged in the main checkout, not committed
	LandingFailed LandingState = "failed" // interrupted before anything was done
)

// Landing is the owner's last finish of a worktree job, with all finishes before it.
type Landing struct {
	Finish
	Earlier []Finish `json:"earlier,omitempty"` // oldest first
}

// Finish is one action of the owner on the work of a worktree job.
type Finish struct {
	Action string       `json:"action"` // apply, squash, merge, keep, discard, undo
	State  LandingState `json:"state"`
	Run    int          `json:"run"` // the job's run with that work
	At     Millis       `json:"at"`
	Commit string       `json:"commit,omitempty"` // on the main checkout's branch

	// These are the results of the trial, before any change.
	Head   string `json:"head,omitempty"`   // of the job
	Target string `json:"target,omitempty"` // of the main checkout
	Next   string `json:"next,omitempty"`   // its planned next commit
	On     string `json:"on,omitempty"`     // its branch

	Of string `json:"of,omitempty"` // the action that an undo takes back
}

// discarded is the action that drops a job's work.
const discarded = "discard"

// refuses fails with Conflict if a job may not continue after its finish.
func (l *Landing) refuses(name string) error {
	switch {
	case l == nil:
		return nil
	case l.State == LandingBegun:
		return bridge.Errorf(bridge.Conflict, "%s is being finished just now: say it again in a moment", name)
	case l.IsDone(discarded):
		return bridge.Errorf(bridge.Conflict, "the owner has discarded the work of %s: give a new job instead", name)
	}
	return nil
}

// IsDone reports whether that action is the owner's last completed one.
func (l *Landing) IsDone(action string) bool {
	return l != nil && l.State == LandingDone && l.Action == action
}

// IsMade reports whether the worktree was created, not only requested.
func (w *Worktree) IsMade() bool { return w != nil && w.Base != "" }

// Exists reports whether the job has a worktree that was not removed.
func (w *Worktree) Exists() bool { return w.IsMade() && w.ReclaimedAt == 0 }

// holdsWork reports whether a repository has data that depends on the job's entry: a
// worktree, or a discarded branch.
func (j *Job) holdsWork() bool {
	return j.Worktree.Exists() || j.Landing.IsDone(discarded) && j.Worktree.IsMade() && j.Worktree.ExpiredAt == 0
}

// Folder returns the folder in which the job works.
func (j *Job) Folder() string {
	if j.Worktree != nil && j.Worktree.Cwd != "" {
		return j.Worktree.Cwd
	}
	return j.Workdir
}

// Limits of the comments on a job's changes.
const (
	MaxComments     = 200
	MaxCommentChars = 4_000
)

// Comment is a comment of the owner on a line of a job's changes.
type Comment struct {
	Path string `json:"path"`
	Line int    `json:"line"` // from 1; 0 is the whole file
	Side string `json:"side"` // new, the default, or old
	Body string `json:"body"`
}

// CommentsText returns one message with all comments for the job (JOB-18). It fails
// with Invalid without comments or for an unsuitable one, and with TooLarge beyond the
// limits.
func CommentsText(comments []Comment) (string, error) {
	if len(comments) == 0 {
		return "", bridge.Errorf(bridge.Invalid, "comments must hold at least one comment")
	}
	if len(comments) > MaxComments {
		return "", bridge.Errorf(bridge.TooLarge, "comments holds %d: at most %d are allowed", len(comments), MaxComments)
	}
	text := strings.Builder{}
	fmt.Fprintf(&text, "Your user has looked at your changes and has %s. Take up each of them.", bridge.Counted(len(comments), "comment"))
	for i, comment := range comments {
		if err := comment.check(); err != nil {
			return "", bridge.Errorf(bridge.CodeOf(err), "comment %d: %w", i+1, err)
		}
		fmt.Fprintf(&text, "\n\n%s\n%s", comment.location(), comment.Body)
	}
	return text.String(), bridge.CheckText("the message of all comments", text.String(), MaxPromptChars)
}

func (c Comment) check() error {
	if err := checkLine("path", c.Path, bridge.MaxPathChars); err != nil {
		return err
	}
	switch {
	case !fs.ValidPath(c.Path) || c.Path == ".":
		return bridge.Errorf(bridge.Invalid, "path must lead from the top of the job's repository to a file in it, not be %q", c.Path)
	case c.Line < 0:
		return bridge.Errorf(bridge.Invalid, "line must be 1 or more, or 0 for the whole file, not %d", c.Line)
	case c.Side != "" && c.Side != "new" && c.Side != "old":
		return bridge.Errorf(bridge.Invalid, "unknown side %q: use new or old", c.Side)
	case strings.TrimSpace(c.Body) == "":
		return bridge.Errorf(bridge.Invalid, "body must not be empty")
	}
	return bridge.CheckText("body", c.Body, MaxCommentChars)
}

func (c Comment) location() string {
	switch {
	case c.Line == 0:
		return c.Path + ":"
	case c.Side == "old":
		return fmt.Sprintf("%s, line %d as it was before your changes:", c.Path, c.Line)
	default:
		return fmt.Sprintf("%s, line %d:", c.Path, c.Line)
	}
}

// maxNamed limits the paths in a sentence.
const maxNamed = 10

// ConflictsWith returns a Conflict for the job's work and those files of the main checkout.
func (j Job) ConflictsWith(paths []string) error {
	return bridge.Errorf(bridge.Conflict, "the work of %s conflicts with what is in %s (%s): nothing was done", j.Name, j.Worktree.RepoRoot, NamedPaths(paths))
}

// UndoConflictsWith returns a Conflict for the undo of a landing and those files, which later
// commits changed.
func (j Job) UndoConflictsWith(paths []string) error {
	return bridge.Errorf(bridge.Conflict, "later commits in %s changed what %s landed (%s): nothing was undone", j.Worktree.RepoRoot, j.Name, NamedPaths(paths))
}

// NamedPaths returns the first ten paths for an error, and how many more there are.
func NamedPaths(paths []string) string {
	named := strings.Join(paths[:min(maxNamed, len(paths))], ", ")
	if more := len(paths) - maxNamed; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return named
}
