// Package terminal is the way of everything that Bridge's programs print to a terminal:
// what is hidden in it is made visible there, once, for every command. Files and pipes
// get what was printed, byte for byte.
package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf16"

	"golang.org/x/term"

	"bridge/backend/core/bridge"
)

// Writer returns a writer to w that makes hidden characters visible (bridge.Visible) where
// w is a terminal, and w itself where it is none. Each write is one text: a character that
// two writes share is shown as bytes.
func Writer(w io.Writer) io.Writer {
	if file, is := w.(*os.File); is && term.IsTerminal(int(file.Fd())) {
		return &writer{file: file, form: bridge.Visible}
	}
	return w
}

// JSON returns the writer for JSON documents to what Writer returned. On a terminal hidden
// characters are escaped as JSON has it, so that the document means the same.
func JSON(w io.Writer) io.Writer {
	if shown, is := w.(*writer); is {
		return &writer{file: shown.file, form: escapeJSON}
	}
	return w
}

// File returns the terminal behind what Writer returned, for what moves its cursor. Words
// that others said must be made visible before they are written there.
func File(w io.Writer) (*os.File, bool) {
	shown, is := w.(*writer)
	if !is {
		return nil, false
	}
	return shown.file, true
}

type writer struct {
	file *os.File
	form func(string) string
}

// Write writes the visible form of text, and reports the length of text.
func (w *writer) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.file, w.form(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// escapeJSON returns a JSON document without hidden characters: each is `\u202e`, or a pair
// of such.
func escapeJSON(document string) string {
	var b strings.Builder
	for _, r := range document {
		switch alone := string(r); {
		case bridge.Visible(alone) == alone:
			b.WriteString(alone)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// textBytes bounds a text on standard input: far more than anybody types.
const textBytes = 64 << 10

// ReadText reads a text from input until its end. Where input is a terminal it asks first,
// on asking. A text of more than 64 KiB is Invalid.
func ReadText(input io.Reader, asking io.Writer, ask string) (string, error) {
	if file, ok := input.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		fmt.Fprintln(asking, ask)
	}
	text, err := io.ReadAll(io.LimitReader(input, textBytes+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read standard input: %w", err)
	case len(text) > textBytes:
		return "", bridge.Errorf(bridge.Invalid, "what is on standard input has more than %s", bridge.Size(textBytes))
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// Fit returns as much of a line as one line of the terminal has room for. What is longer
// would stay on the lines above when the line is written over.
func Fit(out *os.File, line string) string {
	columns, _, err := term.GetSize(int(out.Fd()))
	if err != nil {
		return line
	}
	return cut(line, columns-1)
}

func cut(line string, letters int) string {
	if all := []rune(line); letters > 0 && len(all) > letters {
		return string(all[:letters])
	}
	return line
}
