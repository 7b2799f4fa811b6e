package jobs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"bridge/backend/bridge"
	"bridge/backend/ipc/api"
	"bridge/backend/job"
)

// views is the part about what is shown.
type views struct{ *core }

// Views lists every job, the newest first.
func (j *views) Views() []api.JobView {
	views := []api.JobView{}
	for _, one := range slices.Backward(j.all()) {
		views = append(views, j.view(one))
	}
	return views
}

// View is one job, also one in the archive.
func (j *views) View(name string) (api.JobView, error) {
	one, err := j.find(name)
	if err != nil {
		return api.JobView{}, err
	}
	return j.view(one), nil
}

func (j *views) view(one job.Job) api.JobView {
	view := api.JobView{
		Job: one.Name, By: one.Owner, Agent: one.Agent, Title: one.Title, Status: one.State, Wait: one.Wait, Model: one.Model,
		Effort: one.Effort, Access: one.Access, Layer: one.Layer, Workdir: one.Workdir, Session: one.SessionID,
		Tokens: one.Tokens, CostUSD: one.CostUSD, StartedAt: int64(one.StartedAt), EndedAt: int64(one.FinishedAt),
		Progress: api.JobProgress{Percent: one.Percent, ETAMinutes: minutes(one.ETAAt.Time(), j.opts.Now()), Note: one.ProgressNote},
	}
	if one.Worktree != nil {
		view.Branch = one.Worktree.Branch
	}
	if len(one.QueuedMessages) > 0 {
		view.Next = one.QueuedMessages[0]
	}
	if one.State == job.Queued {
		view.StartedAt, view.EndedAt = 0, 0
	}
	if one.State.IsActive() {
		j.mu.Lock()
		defer j.mu.Unlock()
		if r := j.runs[one.Name]; r != nil {
			view.Step = r.step
		}
	}
	return view
}

// maxLogBytes bounds one piece of a log.
const maxLogBytes = 128 << 10

// Log is a piece of a run's log.
type Log struct {
	Text string
	Next int64 // where the next piece begins
	Size int64 // of the whole log
}

// ReadLog reads the log of a run from that byte on (JOB-10). It never ends within a
// character.
func (j *views) ReadLog(name string, from int64) (Log, error) {
	if !job.IsName(name) {
		return Log{}, bridge.Errorf(bridge.NotFound, "there is no run named %q", name)
	}
	file, err := os.Open(filepath.Join(j.opts.Home.Dir(), "runs", name+".log"))
	if errors.Is(err, fs.ErrNotExist) {
		file, err = os.Open(filepath.Join(j.opts.Home.ArchiveDir(), "runs", name+".log"))
	}
	if errors.Is(err, fs.ErrNotExist) {
		_, err := j.find(name)
		return Log{}, err // it has said nothing yet, or there is none
	}
	if err != nil {
		return Log{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return Log{}, err
	}
	if from < 0 || from > info.Size() {
		return Log{}, bridge.Errorf(bridge.Invalid, "from must be 0 to %d, not %d", info.Size(), from)
	}
	piece := make([]byte, min(maxLogBytes, info.Size()-from))
	n, err := file.ReadAt(piece, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return Log{}, err
	}
	piece = wholeRunes(piece[:n])
	return Log{Text: string(piece), Next: from + int64(len(piece)), Size: info.Size()}, nil
}

// wholeRunes leaves a character that is cut at the end for the next piece.
func wholeRunes(piece []byte) []byte {
	for back := 1; back < utf8.UTFMax && back <= len(piece); back++ {
		at := len(piece) - back
		if utf8.RuneStart(piece[at]) {
			if !utf8.FullRune(piece[at:]) && at > 0 {
				return piece[:at]
			}
			break
		}
	}
	return piece
}
