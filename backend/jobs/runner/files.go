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

// maxFileBytes limits spec, state and claim: the longest prompt as the longest JSON
// escapes, and the rest.
const maxFileBytes = 4 << 20

// files are the files of one job, in its folder.
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

// claim claims the run for this process permanently. Only the first process succeeds;
// others get Conflict, even after the first died. It returns the lock of the claim,
// which [orphans.Drives] checks.
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

// result returns the result in the envelope of that run, or nil if there is none. An
// envelope that is too large to read counts for the run in the folder's state.
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

// state returns the last runner's state, or the zero state if there was none.
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

// Entry is one line of journal.jsonl: a message to the agent or a decision, written
// before the runner acts on it.
type Entry struct {
	At       job.Millis    `json:"at"`
	Run      int           `json:"run"`
	Kind     EntryKind     `json:"kind"`
	ID       string        `json:"id"` // of the message, the approval or the order
	Text     string        `json:"text,omitempty"`
	By       string        `json:"by,omitempty"`
	Decision job.Decision  `json:"decision,omitempty"`
	Approval *job.Approval `json:"approval,omitempty"`
	Settings *job.Settings `json:"settings,omitempty"`
	Error    string        `json:"error,omitempty"` // of EntrySent: why the message did not arrive
}

// EntryKind is the kind of an entry.
type EntryKind string

// The kinds of entries.
const (
	EntryPrompt   EntryKind = "prompt"   // the prompt of the run
	EntryMessage  EntryKind = "message"  // a message for the agent
	EntryRetry    EntryKind = "retry"    // the message after a provider's failure
	EntryQuestion EntryKind = "question" // a requested approval
	EntryAnswer   EntryKind = "answer"   // the decision on it
	EntrySent     EntryKind = "sent"     // the CLI has accepted or refused the message with that id
	EntryStop     EntryKind = "stop"     // the run waits for an order to continue
	EntryGoOn     EntryKind = "go_on"    // the run has that order
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

// entries reads the journal. An incomplete last line does not count, because the runner
// did not act on it.
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

// Found is the content of a job's files about its last run.
type Found struct {
	Spec  runs.SpecFile
	State runs.StateFile // the zero state if no runner has come yet
	Alive bool           // its runner is running
	// Result is nil if the run left none.
	Result *api.RunnerResult
	// Unclear are messages and answers in transit when the runner died. The agent may
	// have received them.
	Unclear []Entry

	// startMark and before are the marks of this run and the previous one; zero if it never began.
	startMark, before sandbox.Mark
	// driver is the running runner, by the state or, before the first state, by its
	// claim of this run.
	driver  job.Process
	claimed bool
}

// ReadFiles reads the files of a job. It fails if the spec is missing, or if a file cannot be read
// or decoded.
func ReadFiles(folder string) (Found, error) {
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
	if found.startMark, err = orphans.MarkOf(folder, spec.Run); err != nil {
		return Found{}, err
	}
	if found.before, err = orphans.MarkOf(folder, spec.Run-1); err != nil {
		return Found{}, err
	}
	found.driver = found.State.Runner
	// This is after the mark: a runner with a mark has claimed the run too.
	if claim, err := orphans.ClaimOf(folder, spec.Run); err == nil && isAnother(folder, spec.Run, claim.Runner) {
		found.driver, found.claimed = claim.Runner, true
	}
	found.Alive = isAnother(folder, cmp.Or(found.State.Run, spec.Run), found.driver)
	return found, nil
}

// isAnother reports whether another process drives the run as its runner.
func isAnother(folder string, run int, runner job.Process) bool {
	if runner.PID == os.Getpid() {
		if own, err := proc.Identity(runner.PID); err != nil || own == runner.Identity {
			return false
		}
	}
	return runner.PID > 0 && orphans.Drives(folder, run, runner)
}

// unclear returns the entries of a run that were in transit without an outcome.
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
		case EntrySent, EntryQuestion, EntryStop, EntryCancel, EntrySettings: // these hand nothing over
		}
	}
	return open
}

// End ends the remaining processes of a dead runner. It finds them by recorded identities
// and by the marks of this run and the previous one. It skips a run that never began: a
// search is slow and would delay the agent. It fails with Conflict if a runner is alive.
func (f Found) End(ctx context.Context) error {
	if f.Alive {
		return bridge.Errorf(bridge.Conflict, "%s is driven by process %d", f.Spec.Job, f.driver.PID)
	}
	ctx, cancel := context.WithTimeout(ctx, reapTime)
	defer cancel()
	var err error
	for _, mark := range []sandbox.Mark{f.startMark, f.before} {
		if mark != (sandbox.Mark{}) || len(f.State.Processes) > 0 {
			err = errors.Join(err, sandbox.End(ctx, mark, f.State.Processes))
		}
	}
	return err
}
