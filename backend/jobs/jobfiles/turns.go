package jobfiles

import (
	"errors"
	"io/fs"

	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/platform/disk"
)

// Limits of [Files.Turns]: the newest turns, and how much of each answer, in bytes.
const (
	MaxTurns      = 50
	MaxTurnAnswer = 64 << 10
)

// Turn is one run of a job in its conversation: the words that began it and its end.
type Turn struct {
	Run     int
	Message string         // "" if no file has it
	By      []string       // the names of the message's authors, none if no file has them
	Result  *runs.Envelope // nil while the run has none; its text may be cut
	Problem string         // why the result cannot be read, or ""
}

// Turns returns the newest [MaxTurns] turns of a job, oldest first (PGE-05). It shows at
// most [MaxTurnAnswer] bytes of each answer, and names the file of a longer one. An
// unreadable result is a turn with its problem.
func (f Files) Turns(entry job.Job) []Turn {
	turns := []Turn{}
	for run := max(1, entry.Run-MaxTurns+1); run <= entry.Run; run++ {
		turns = append(turns, f.turn(entry, run))
	}
	return turns
}

func (f Files) turn(entry job.Job, run int) Turn {
	turn := Turn{Run: run}
	if run == 1 {
		turn.Message, turn.By = entry.Prompt, []string{entry.Owner}
	}
	for _, path := range []string{f.earlier(entry.Name, run), f.Envelope(entry.Name)} {
		envelope, _, err := runs.ReadEnvelope(disk.Regular(path), entry.Name, MaxTurnAnswer)
		switch {
		case err == nil && envelope.Run == run:
			visible := envelope.Shown(path)
			turn.Result, turn.Problem = &visible, ""
			if envelope.Message != "" {
				turn.Message, turn.By = envelope.Message, envelope.MessageBy
			}
			return turn
		case errors.Is(err, fs.ErrNotExist), err == nil:
		case path != f.Envelope(entry.Name) || run == entry.Run:
			turn.Problem = "the result cannot be read: " + path
		}
	}
	if spec, err := f.ReadSpec(entry.Name); err == nil && spec.Run == run {
		turn.Message, turn.By = spec.Prompt, spec.PromptBy
	}
	return turn
}
