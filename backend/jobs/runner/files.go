package runner

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/orphans"
	"bridge/backend/platform/proc"
	"bridge/backend/platform/sandbox"
)

// maxFileBytes bounds spec, state and claim: the longest prompt as the longest JSON
// escapes, with room for the rest.
const maxFileBytes = 4 << 20

// files are those of one job, in its folder.
type files string

func (f files) at(name string) string { return filepath.Join(string(f), name) }

func (f files) job() string { return filepath.Base(string(f)) }

func (f files) spec() (runs.SpecFile, error) {
	data, err := disk.ReadLimited(f.at("spec.json"), maxFileBytes)
	if err != nil {
		return runs.SpecFile{}, fmt.Errorf("read what %s is asked to do: %w", f.job(), err)
	}
	return runs.DecodeSpec(data, f.job())
}

// claim takes the run for this process, for good: of several only the first has it,
// and none has it after that one died. It returns the lock of the claim, which
// [orphans.Drives] looks at.
func (f files) claim(run int, claim orphans.Claim) (*disk.FileLock, error) {
	data, err := json.Marshal(claim)
	if err != nil {
		return nil, err
	}
	lock, err := disk.Files{}.WriteNewLocked(orphans.ClaimFile(string(f), run), data)
	if errors.Is(err, fs.ErrExist) {
		return nil, bridge.Errorf(bridge.Conflict, "run %d of %s was begun before: continue the job by another run", run, f.job())
	}
	return lock, err
}

func (f files) saveState(state runs.StateFile) error {
	data, err := state.Encode()
	if err != nil {
		return err
	}
	return disk.WriteAtomic(f.at("state.json"), data, disk.PrivateFile)
}

func (f files) saveEnvelope(envelope runs.Envelope) error {
	return disk.Files{}.WriteAtomicBy(f.at("envelope.json"), envelope.EncodeTo, disk.PrivateFile)
}

// result is what the envelope of that run says; nil when there is none. One that is
// too large to be read stands for the run that the folder's state is at.
func (f files) result(run int) (*api.RunnerResult, error) {
	path := f.at("envelope.json")
	envelope, size, err := runs.ReadEnvelope(disk.Regular(path), f.job(), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // documented: there is none
	}
	result := &api.RunnerResult{Run: run, MessageID: runs.ResultID(f.job(), run), Bytes: size}
	if errors.Is(err, runs.ErrManual) {
		state, err := f.state()
		if err != nil || state.Run != run {
			return nil, err
		}
		result.State = state.State
		return result, nil
	}
	if err != nil || envelope.Run != run {
		return nil, err
	}
	result.State = envelope.State
	return result, nil
}

// state is what the last runner wrote down; the zero state when there was none.
func (f files) state() (runs.StateFile, error) {
	data, err := disk.ReadLimited(f.at("state.json"), maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return runs.StateFile{}, nil
	}
	if err != nil {
		return runs.StateFile{}, err
	}
	return runs.DecodeState(data, f.job())
}

// Entry is one line of journal.jsonl: something that was said to the agent or
// decided about it, written before it was acted on.
type Entry struct {
	At       job.Millis    `json:"at"`
	Run      int           `json:"run"`
	Kind     EntryKind     `json:"kind"`
	ID       string        `json:"id"` // of the message, the approval, the order
	Text     string        `json:"text,omitempty"`
	By       string        `json:"by,omitempty"`
	Decision job.Decision  `json:"decision,omitempty"`
	Approval *job.Approval `json:"approval,omitempty"`
	Settings *job.Settings `json:"settings,omitempty"`
	Error    string        `json:"error,omitempty"` // of EntrySent: why it did not arrive
}

// EntryKind tells what an entry says.
type EntryKind string

// The kinds of entries.
const (
	EntryPrompt   EntryKind = "prompt"   // what the run begins with
	EntryMessage  EntryKind = "message"  // a message for the agent
	EntryRetry    EntryKind = "retry"    // the words after a provider's trouble
	EntryQuestion EntryKind = "question" // an approval that was asked for
	EntryAnswer   EntryKind = "answer"   // how it was decided
	EntrySent     EntryKind = "sent"     // the CLI has taken what is named, or refused it
	EntryStop     EntryKind = "stop"     // the run waits for somebody's word
	EntryGoOn     EntryKind = "go_on"    // it has it
	EntryCancel   EntryKind = "cancel"
	EntrySettings EntryKind = "settings"
)

func (f files) journal() string { return f.at("journal.jsonl") }

// append makes an entry durable.
func (f files) append(entry Entry) error {
	line, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	if err := (disk.Files{}).AppendSync(f.journal(), line, disk.PrivateFile); err != nil {
		return bridge.WithCause(bridge.Storage, err, "it could not be written down, so it was not done: "+disk.Reason(err))
	}
	return nil
}

// entries reads the journal. A last line that its writer did not finish was not
// acted on and does not count.
func (f files) entries() (entries []Entry, err error) {
	file, err := os.Open(f.journal())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return entries, nil
		}
		var entry Entry
		if json.Unmarshal(bytes.TrimSpace(line), &entry) == nil {
			entries = append(entries, entry)
		}
	}
}

// Found is what the files of a job tell about its last run.
type Found struct {
	Spec  runs.SpecFile
	State runs.StateFile // the zero state where no runner came so far
	Alive bool           // its runner is at work
	// Result is nil where the run left none.
	Result *api.RunnerResult
	// Unclear are messages and answers that were about to be handed over when the
	// runner died: whether the agent had them nobody knows.
	Unclear []Entry

	// Of the processes of this run and of the one before it; zero where nobody began it.
	begun, before sandbox.Mark
	// driver is the runner that is at work, by the state or, before it has said so
	// there, by its claim of this run.
	driver  job.Process
	claimed bool
}

// Look reads what there is of a job.
func Look(folder string) (Found, error) {
	f := files(folder)
	spec, err := f.spec()
	if err != nil {
		return Found{}, err
	}
	found := Found{Spec: spec}
	if found.State, err = f.state(); err != nil {
		return Found{}, err
	}
	if found.Result, err = f.result(spec.Run); err != nil {
		return Found{}, err
	}
	entries, err := f.entries()
	if err != nil {
		return Found{}, err
	}
	found.Unclear = unclear(entries, spec.Run)
	if found.begun, err = orphans.MarkOf(folder, spec.Run); err != nil {
		return Found{}, err
	}
	if found.before, err = orphans.MarkOf(folder, spec.Run-1); err != nil {
		return Found{}, err
	}
	found.driver = found.State.Runner
	// After the mark: whoever has one by now has claimed the run as well.
	if claim, err := orphans.ClaimOf(folder, spec.Run); err == nil && isAnother(folder, spec.Run, claim.Runner) {
		found.driver, found.claimed = claim.Runner, true
	}
	found.Alive = isAnother(folder, cmp.Or(found.State.Run, spec.Run), found.driver)
	return found, nil
}

// isAnother reports whether a runner drives the run, and is not this process.
func isAnother(folder string, run int, runner job.Process) bool {
	if runner.PID == os.Getpid() {
		if own, err := proc.Identity(runner.PID); err != nil || own == runner.Identity {
			return false
		}
	}
	return runner.PID > 0 && orphans.Drives(folder, run, runner)
}

// unclear are the entries of a run that were to be handed over and have no end.
func unclear(entries []Entry, run int) []Entry {
	sent := map[string]bool{}
	for _, entry := range entries {
		if entry.Run == run && entry.Kind == EntrySent {
			sent[entry.ID] = true
		}
	}
	var open []Entry
	for _, entry := range entries {
		switch entry.Kind {
		case EntryPrompt, EntryMessage, EntryRetry, EntryAnswer, EntryGoOn:
			if entry.Run == run && !sent[entry.ID] {
				open = append(open, entry)
			}
		case EntrySent, EntryQuestion, EntryStop, EntryCancel, EntrySettings: // nothing was handed over
		}
	}
	return open
}

// End ends what a dead runner left behind, by the identities that it wrote down and
// by the mark of its run and of the one before. A run that nobody has begun has left
// nothing: a look takes its time, for which the agent would wait.
func (f Found) End(ctx context.Context) error {
	if f.Alive {
		return bridge.Errorf(bridge.Conflict, "%s is driven by process %d", f.Spec.Job, f.driver.PID)
	}
	ctx, cancel := context.WithTimeout(ctx, reapTime)
	defer cancel()
	var err error
	for _, mark := range []sandbox.Mark{f.begun, f.before} {
		if mark != (sandbox.Mark{}) || len(f.State.Processes) > 0 {
			err = errors.Join(err, sandbox.End(ctx, mark, f.State.Processes))
		}
	}
	return err
}
