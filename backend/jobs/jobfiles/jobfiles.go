// Package jobfiles reads and writes the files of jobs apart from the registry: state,
// approvals, envelopes and logs of their runs. It stores transcripts where search finds
// them (JOB-25), and moves the files of old jobs to the archive.
package jobfiles

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf8"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/storage/store"
)

// maxLogBytes is the size limit of one piece of a log.
const maxLogBytes = 128 << 10

// Log is a piece of a run's log.
type Log struct {
	Text string
	Next int64 // where the next piece begins
	Size int64 // of the whole log
}

// ReadLog reads the log of a run from that byte offset on, in the first home that has
// it. The error is fs.ErrNotExist if none has. A piece never ends within a character.
func ReadLog(name string, from int64, homes ...string) (Log, error) {
	file, err := open(name, homes)
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

// wholeRunes cuts an incomplete last character, which the next piece then has.
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

func open(name string, homes []string) (file *os.File, err error) {
	for _, home := range homes {
		if file, err = os.Open(filepath.Join(home, "runs", name+".log")); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return file, err
}

// Transcripts stores the transcripts of jobs where search finds them (JOB-25).
type Transcripts interface {
	// TranscriptUpto returns how many bytes of the job's transcript are stored. If none
	// can be stored now, ok is false.
	TranscriptUpto(ctx context.Context, job string) (upto int64, ok bool, err error)
	// KeepTranscript stores the next piece completely, or nothing.
	KeepTranscript(ctx context.Context, piece store.Transcript) error
}

// Limits of one piece, so that a message does not wait for it long.
const (
	pieceLines = 256
	pieceBytes = 1 << 20
)

// Keep stores the new part of a job's transcript since the last call. It is safe to call it
// repeatedly, but not concurrently. It fails if the transcript cannot be read or stored; a
// missing transcript is no error.
func Keep(ctx context.Context, transcripts Transcripts, home string, entry job.Job) error {
	path := filepath.Join("runs", entry.Name+".jsonl")
	file, err := os.Open(filepath.Join(home, path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there is no transcript yet, or it went to the archive
	}
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	upto, ok, err := transcripts.TranscriptUpto(ctx, entry.Name)
	if err != nil || !ok || upto >= info.Size() {
		return err
	}
	lines := bufio.NewReader(io.NewSectionReader(file, upto, info.Size()-upto))
	piece := store.Transcript{Job: entry.Name, Agent: entry.Agent, Session: entry.SessionID, Project: entry.Workdir, Path: filepath.ToSlash(path), From: upto, Upto: upto}
	for {
		more, err := fill(&piece, lines)
		if err != nil {
			return err
		}
		if piece.Upto == piece.From {
			return nil
		}
		if err := transcripts.KeepTranscript(ctx, piece); err != nil || !more {
			return err
		}
		piece.From, piece.Lines = piece.Upto, nil
	}
}

// fill reads the next piece. It leaves an incomplete last line for later.
func fill(piece *store.Transcript, lines *bufio.Reader) (more bool, err error) {
	for read := 0; read < pieceBytes && len(piece.Lines) < pieceLines; {
		line, size, err := readLine(lines, maxLineBytes)
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if statement, ok := runs.DecodeSaid(line); ok && statement.Words() != "" {
			piece.Lines = append(piece.Lines, store.TranscriptLine{Offset: piece.Upto, At: int64(statement.At), Kind: string(statement.Kind), Body: statement.Words()})
		}
		piece.Upto += size
		read += int(min(size, pieceBytes))
	}
	return true, nil
}

// maxLineBytes limits the lines that are read. Runners write shorter ones
// (runs.MaxLineBytes); older runners wrote messages without a limit.
const maxLineBytes = 8 << 20

// readLine reads a line with its end, and returns its size in the file. For a line over
// the limit it returns only the size. It returns io.EOF if the last line has no end.
func readLine(lines *bufio.Reader, most int) (line []byte, size int64, err error) {
	for {
		part, err := lines.ReadSlice('\n')
		size += int64(len(part))
		if size <= int64(most) {
			line = append(line, part...)
		} else {
			line = nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, size, err
		}
	}
}
