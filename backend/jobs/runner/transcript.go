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

// transcript is what was said in the runs of a job, kept apart from what the agent's
// CLI stores, which prunes it (JOB-25). It is written as it is said, so that it is
// there for a run that was killed, too.
type transcript struct {
	file interface { // *os.File
		io.WriteCloser
		Sync() error
	}
	room    room
	waiting []byte // what the disk did not take so far: it goes on where it stopped
	last    string // the agent's last words in the turn
}

// maxWaiting bounds what waits for a disk that takes nothing, in bytes.
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
	if size > 0 && last[0] != '\n' { // a runner that was killed left it so
		t.waiting = []byte{'\n'}
	}
	return t, nil
}

// add writes a line after those that wait. One that the disk does not take waits, too,
// where there is room for it.
func (t *transcript) add(said runs.Said) error {
	line, err := said.Encode()
	if err != nil {
		return err
	}
	ok, last := t.room.take(len(line))
	if last {
		line, err = t.room.lastLine(said).Encode()
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

// write writes what waits. A line that is cut in the middle has its rest before another
// begins.
func (t *transcript) write() error {
	n, err := t.file.Write(t.waiting)
	if t.waiting = t.waiting[n:]; len(t.waiting) == 0 {
		t.waiting = nil // its room is given back
	}
	return err
}

// flush makes what was said so far durable.
func (t *transcript) flush() error { return errors.Join(t.write(), t.file.Sync()) }

// close is flush, for the last time.
func (t *transcript) close() error { return errors.Join(t.flush(), t.file.Close()) }

// say adds a line of this run to the transcript. A job does not end for what cannot be
// written there; its log says so.
func (d *drive) say(said runs.Said) {
	said.At, said.Run = d.moment(), d.spec.Run
	if err := d.said.add(said); err != nil {
		d.log.line("! not in the transcript so far: " + string(said.Kind) + ": " + disk.Reason(err))
		d.Log.Warn("what was said could not be kept", "job", d.spec.Job, "err", err)
	}
}

// saidIn is what somebody said in an entry of the journal.
func saidIn(entry Entry, supervisor string) (said runs.Said, ok bool) {
	said = runs.Said{ID: entry.ID, By: entry.By, Text: entry.Text}
	switch entry.Kind {
	case EntryPrompt:
		said.Kind, said.By = runs.SaidPrompt, supervisor
	case EntryMessage, EntryRetry:
		said.Kind = runs.SaidMessage
	case EntryQuestion:
		said.Kind = runs.SaidQuestion
		if entry.Approval != nil {
			said.Tool, said.Text = entry.Approval.What, entry.Approval.Detail
		}
	case EntryAnswer:
		said.Kind, said.Answer = runs.SaidAnswer, entry.Decision
	case EntrySent, EntryStop, EntryGoOn, EntryCancel, EntrySettings:
		return said, false
	}
	return said, true
}

// hear is what the agent said or did by an event.
func (t *transcript) hear(event job.Event) (said []runs.Said) {
	switch e := event.(type) {
	case job.Text:
		t.last = e.Text
		said = append(said, runs.Said{Kind: runs.SaidText, Text: e.Text})
	case job.StepStarted:
		said = append(said, runs.Said{Kind: runs.SaidCall, ID: e.Step, Tool: e.Tool, Text: e.Subject, Input: e.Input})
	case job.StepEnded:
		said = append(said, runs.Said{Kind: runs.SaidResult, ID: e.Step, State: e.State, Exit: e.Exit, Text: e.Output})
	case job.TurnEnded:
		if e.Text != "" && e.Text != t.last {
			said = append(said, runs.Said{Kind: runs.SaidText, Text: e.Text})
		}
		if e.Why != job.EndAnswer {
			said = append(said, runs.Said{Kind: runs.SaidEnd, ID: string(e.Why), Text: e.Message})
		}
		t.last = ""
	default: // nothing was said
	}
	return said
}
