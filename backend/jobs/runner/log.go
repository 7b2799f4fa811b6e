package runner

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/platform/disk"
)

// runLog is the log of a run for people.
type runLog struct {
	file io.WriteCloser // *os.File
	room room
}

// usualLogBytes is the default limit of a run's log.
const usualLogBytes = 1 << 30

// room is how many bytes a run may still write to a file (SEC-11).
type room struct{ remaining, most int64 }

func newRoom(most int64) room {
	most = cmp.Or(most, usualLogBytes)
	return room{remaining: most, most: most}
}

// take takes room for that many bytes. last is true once, when the room is used up.
func (r *room) take(bytes int) (ok, last bool) {
	if r.remaining <= 0 {
		return false, false
	}
	r.remaining -= int64(bytes)
	return r.remaining > 0, r.remaining <= 0
}

// full returns the last sentence of a file without room.
func (r *room) full() string {
	return "This run has written " + bridge.Size(r.most) + " here, which is the most (jobs.maxLogBytes). The job goes on, and nothing more of this run is written here."
}

func openLog(folder, name string, most int64) (*runLog, error) {
	if err := disk.MakeDir(folder); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(folder, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, disk.PrivateFile)
	if err != nil {
		return nil, err
	}
	return &runLog{file: file, room: newRoom(most)}, nil
}

// logPiece is how much of a text is written at a time, to avoid a second copy of a long text.
const logPiece = 64 << 10

// line adds text. A failed write is lost to readers but does not affect the job.
func (l *runLog) line(text string) {
	text = strings.TrimRight(text, "\n")
	ok, last := l.room.take(len(text) + 1)
	if last {
		text, ok = "! "+l.room.full(), true
	}
	if !ok {
		return
	}
	for len(text) > logPiece {
		at := logPiece
		for at > logPiece-utf8.UTFMax && !utf8.RuneStart(text[at]) {
			at--
		}
		_, _ = io.WriteString(l.file, strings.ToValidUTF8(text[:at], "\uFFFD"))
		text = text[at:]
	}
	_, _ = io.WriteString(l.file, strings.ToValidUTF8(text, "\uFFFD")+"\n")
}

// cutSentence returns the sentence that reports a cut or omitted line of the agent.
func cutSentence(cut job.LineCut) string {
	text := "! A line of the agent has " + bridge.Size(cut.Bytes)
	if cut.Kept == 0 {
		return text + ", more than Bridge reads: Bridge left it out."
	}
	return text + ": Bridge cut its long texts, and keeps " + bridge.Size(cut.Kept) + " of it."
}

func (l *runLog) close() error { return l.file.Close() }

// lastLine returns the last line of a transcript without room.
func (r *room) lastLine(statement runs.Said) runs.Said {
	return runs.Said{At: statement.At, Run: statement.Run, Kind: runs.SaidEnd, ID: "cut", Text: r.full()}
}

// mostOfCommands limits the commands in a run's evidence, in bytes.
const mostOfCommands = 8 << 20

// ran adds a command to the list. If there are too many, the last entry says so.
func (e *evidence) ran(command runs.Command) {
	before := e.bytes
	e.bytes += len(command.Command) + 64
	switch {
	case e.bytes <= mostOfCommands:
		e.commands = append(e.commands, command)
	case before <= mostOfCommands:
		e.commands = append(e.commands, runs.Command{Command: "(Bridge lists " + bridge.Size(mostOfCommands) + " of a run's commands: the ones after this are not listed)"})
	}
}
