// Package terminal handles all terminal output of Bridge's programs: it makes
// hidden characters visible, once for every command. Files and pipes get the output
// unchanged.
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

// Writer returns a writer to w that makes hidden characters visible
// (bridge.Visible) if w is a terminal, or else w itself. Each write is one text: it
// shows a character split across two writes as bytes.
func Writer(w io.Writer) io.Writer {
	if file, is := w.(*os.File); is && term.IsTerminal(int(file.Fd())) {
		return &writer{file: file, form: bridge.Visible}
	}
	return w
}

// JSON returns the writer for JSON documents, given the result of Writer. On a terminal
// it escapes hidden characters as JSON does, so that the document keeps its meaning.
func JSON(w io.Writer) io.Writer {
	if wrapped, is := w.(*writer); is {
		return &writer{file: wrapped.file, form: escapeJSON}
	}
	return w
}

// File returns the terminal behind the result of Writer, for moving its cursor.
// Text from others must be made visible before it is written there.
func File(w io.Writer) (*os.File, bool) {
	wrapped, is := w.(*writer)
	if !is {
		return nil, false
	}
	return wrapped.file, true
}

type writer struct {
	file *os.File
	form func(string) string
}

// Write writes the visible form of text, and returns the length of text.
func (w *writer) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.file, w.form(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// escapeJSON returns a JSON document without hidden characters: each becomes
// `\u202e`, or a pair of these.
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

// textBytes bounds a text on standard input, far above what people type.
const textBytes = 64 << 10

// ReadText reads a text from input until its end. If input is a terminal, it first
// asks on asking. It fails with Invalid over 64 KiB.
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

// usualColumns is the width of text that is not for a terminal. mostColumns is the widest
// text that is read with ease.
const (
	usualColumns = 80
	mostColumns  = 100
)

// Columns returns the width of text for the result of Writer.
func Columns(w io.Writer) int {
	if file, is := File(w); is {
		if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
			return min(columns, mostColumns)
		}
	}
	return usualColumns
}

// Fit returns the part of a line that fits into one line of the terminal. A longer
// line would leave remains when it is overwritten.
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
