package run

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// Words gather what an agent says bit by bit, up to job.MaxAnswerBytes (SEC-11). The zero
// value is ready.
type Words struct {
	kept strings.Builder
	said int64 // bytes, also those that are not kept
}

const (
	// growsBy is how far words grow little by little. Beyond it they get all the room at
	// once, because growing would hold them twice.
	growsBy = 1 << 20
	// mostOfSubject bounds the command or path of a step, in bytes.
	mostOfSubject = 1 << 20
	// noteRoom is room for the note that ends words which were cut.
	noteRoom = 256
)

// Add appends text, as far as there is room.
func (w *Words) Add(text string) {
	isCut := w.said > int64(w.kept.Len())
	w.said += int64(len(text))
	if isCut {
		return
	}
	text = cutText(text, job.MaxAnswerBytes-w.kept.Len())
	if w.kept.Len()+len(text) > growsBy && w.kept.Cap() < job.MaxAnswerBytes {
		w.kept.Grow(job.MaxAnswerBytes + noteRoom - w.kept.Len())
	}
	w.kept.WriteString(text)
}

// Take returns the words and forgets them. Words that were cut say so at their end.
func (w *Words) Take() string {
	if w.said > int64(w.kept.Len()) {
		w.kept.WriteString(cutNote(w.said))
	}
	words := w.kept.String()
	*w = Words{}
	return words
}

// cutAnswer cuts an answer that is longer than job.MaxAnswerBytes, and says so at its end.
func cutAnswer(text string) string {
	if len(text) <= job.MaxAnswerBytes+noteRoom { // what was cut before stays so
		return text
	}
	return cutText(text, job.MaxAnswerBytes) + cutNote(int64(len(text)))
}

func cutNote(said int64) string {
	return fmt.Sprintf("\n\n[Bridge cut this answer here: it has %s, and Bridge keeps %s of one answer.]", bridge.Size(said), bridge.Size(job.MaxAnswerBytes))
}

// cutText is the text up to so many bytes, without a part of a character at its end.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
