package runner

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/platform/disk"
)

// transcript is the record of a job's runs. It is separate from the storage of the
// agent's CLI, which is pruned (JOB-25). It is written immediately, so that it also
// exists for a killed run.
type transcript struct {
	file interface { // *os.File
		io.WriteCloser
		Sync() error
	}
	room    room
	waiting []byte // bytes that the disk has not accepted yet; the next write continues there
	last    string // the last text of the agent in the turn
}

// maxWaiting limits the bytes that wait for a failing disk.
const maxWaiting = 16 << 20

func openTranscript(folder, name string) (_ *transcript, err error) {
	if err := disk.MakeDir(folder); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(folder, name+".jsonl"), os.O_CREATE|os.O_RDWR|os.O_APPEND, disk.PrivateFile)
	if err != nil {
		return nil, err
	}
	last := make([]byte, 1)
	size, err := file.Seek(0, io.SeekEnd)
	if err == nil && size > 0 {
		_, err = file.ReadAt(last, size-1)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	t := &transcript{file: file, room: newRoom(0)}
	if size > 0 && last[0] != '\n' { // a killed runner left an incomplete line
		t.waiting = []byte{'\n'}
	}
	return t, nil
}

// add writes a line after the waiting ones. If the disk refuses the line, it waits too,
// within maxWaiting.
func (t *transcript) add(statement runs.Said) error {
	line, err := statement.Encode()
	if err != nil {
		return err
	}
	ok, last := t.room.take(len(line))
	if last {
		line, err = t.room.lastLine(statement).Encode()
	}
	if err != nil || !ok && !last {
		return err
	}
	if len(t.waiting)+len(line) > maxWaiting && len(t.waiting) > 0 {
		return errors.Join(errLost, t.write())
	}
	t.waiting = append(t.waiting, line...)
	return t.write()
}

var errLost = errors.New("too much waits for the disk: the line is lost")

// write writes the waiting bytes. The rest of a partly written line precedes the next
// line.
func (t *transcript) write() error {
	n, err := t.file.Write(t.waiting)
	if t.waiting = t.waiting[n:]; len(t.waiting) == 0 {
		t.waiting = nil // frees the memory
	}
	return err
}

// flush makes the transcript durable.
func (t *transcript) flush() error { return errors.Join(t.write(), t.file.Sync()) }

// close is a last flush, and closes the file.
func (t *transcript) close() error { return errors.Join(t.flush(), t.file.Close()) }

// record adds a line of this run to the transcript. If that fails, the job continues and
// its log has the error.
func (d *drive) record(statement runs.Said) {
	statement.At, statement.Run = d.moment(), d.spec.Run
	if err := d.transcript.add(statement); err != nil {
		d.log.line("! not in the transcript so far: " + string(statement.Kind) + ": " + disk.Reason(err))
		d.Log.Warn("what was said could not be kept", "job", d.spec.Job, "err", err)
	}
}

// saidIn returns the transcript line of a journal entry.
func saidIn(entry Entry, supervisor string) (statement runs.Said, ok bool) {
	statement = runs.Said{ID: entry.ID, By: entry.By, Text: entry.Text}
	switch entry.Kind {
	case EntryPrompt:
		statement.Kind, statement.By = runs.SaidPrompt, supervisor
	case EntryMessage, EntryRetry:
		statement.Kind = runs.SaidMessage
	case EntryQuestion:
		statement.Kind = runs.SaidQuestion
		if entry.Approval != nil {
			statement.Tool, statement.Text = entry.Approval.What, entry.Approval.Detail
		}
	case EntryAnswer:
		statement.Kind, statement.Answer = runs.SaidAnswer, entry.Decision
	case EntrySent, EntryStop, EntryGoOn, EntryCancel, EntrySettings:
		return statement, false
	}
	return statement, true
}

// hear returns the transcript lines of an agent's event.
func (t *transcript) hear(event job.Event) (entries []runs.Said) {
	switch e := event.(type) {
	case job.Text:
		t.last = e.Text
		entries = append(entries, runs.Said{Kind: runs.SaidText, Text: e.Text})
	case job.StepStarted:
		entries = append(entries, runs.Said{Kind: runs.SaidCall, ID: e.Step, Tool: e.Tool, Text: e.Subject, Input: e.Input})
	case job.StepEnded:
		entries = append(entries, runs.Said{Kind: runs.SaidResult, ID: e.Step, State: e.State, Exit: e.Exit, Text: e.Output})
	case job.TurnEnded:
		if e.Text != "" && e.Text != t.last {
			entries = append(entries, runs.Said{Kind: runs.SaidText, Text: e.Text})
		}
		if e.Why != job.EndAnswer {
			entries = append(entries, runs.Said{Kind: runs.SaidEnd, ID: string(e.Why), Text: e.Message})
		}
		t.last = ""
	default: // no line
	}
	return entries
}
