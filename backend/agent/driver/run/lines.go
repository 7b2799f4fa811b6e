package run

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

const (
	// MaxLine bounds what is kept of one line of a CLI, in bytes. A driver holds a line
	// several times while it decodes it, beside the words of the turn (SEC-11).
	MaxLine = 4 << 20
	// shortString is how much is kept of each string after the limit, in bytes: names and
	// ids are shorter.
	shortString = 4 << 10
	// lineSpare is what the strings and signs after the limit may have, in bytes.
	lineSpare = 1 << 20
	// deepest is how many levels of JSON are cut; the decoder reads no more either.
	deepest = 10_000
)

// Line is one line of a CLI, without the space around it.
type Line struct {
	// Text is what was kept; empty where the line cannot be cut to the limit.
	Text  []byte
	Said  int64 // bytes of the whole line
	IsCut bool
}

// ReadLines calls each with every line that is not empty. Of a line over the limit it
// cuts the strings and lists that are too long, so that JSON stays JSON: a turn's end is
// heard however long its text is. Text is valid until each returns.
func ReadLines(from io.Reader, limit int, each func(Line)) {
	reader := bufio.NewReaderSize(from, 64<<10)
	line := cutter{limit: limit}
	for {
		part, err := reader.ReadSlice('\n')
		line.write(part)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if read := line.take(); len(read.Text) > 0 || read.IsCut {
			each(read)
		}
		if err != nil {
			return
		}
	}
}

// ReadBody returns a JSON value of a CLI, cut as ReadLines cuts a line. It fails as from
// does.
func ReadBody(from io.Reader) ([]byte, error) {
	body := cutter{limit: MaxLine}
	_, err := io.Copy(&body, from)
	return body.take().Text, err
}

// readLines calls [ReadLines] for a run, and reports each line that was cut.
func (r *Run) readLines(from io.Reader, each func(line []byte)) {
	ReadLines(from, MaxLine, func(line Line) {
		if line.IsCut {
			r.Put(job.LineCut{Bytes: line.Said, Kept: int64(len(line.Text))})
		}
		if len(line.Text) == 0 {
			return
		}
		r.cut.Store(line.IsCut)
		each(line.Text)
		r.cut.Store(false)
	})
}

// ReadStream calls each with every line of a stream that a CLI gives beside its output.
func (r *Run) ReadStream(from io.Reader, each func(line []byte)) { r.readLines(from, each) }

// cutter keeps a line up to its limit. Beyond it the cutter follows the line's JSON, and
// leaves out the rest of the strings and lists that are open there.
type cutter struct {
	limit int
	kept  []byte
	said  int64
	isCut bool // something was left out
	spoil bool // it cannot be cut: nothing is kept

	follows  bool   // the line is over the limit, and what follows is known
	open     []byte // the brackets that are open, from outside to inside
	inString bool
	escaped  bool  // the byte before was a backslash
	digits   int   // of a \u that are still to come
	text     int64 // bytes of the open string
	textKept int
	textCut  bool
	skips    int // while this many brackets are open, the rest of a list is left out
}

// Write implements io.Writer. It never fails.
func (c *cutter) Write(part []byte) (int, error) {
	c.write(part)
	return len(part), nil
}

func (c *cutter) write(part []byte) {
	c.said += int64(len(part))
	if !c.follows && len(c.kept)+len(part) <= c.limit {
		c.kept = append(c.kept, part...)
		return
	}
	if !c.follows {
		c.follows = true
		before := c.kept
		c.kept = before[:0] // each byte is written where it stands
		for _, b := range before {
			c.step(b)
		}
	}
	for _, b := range part {
		c.step(b)
	}
}

// take returns the line and begins another.
func (c *cutter) take() Line {
	line := Line{Text: bytes.TrimSpace(c.kept), Said: c.said, IsCut: c.isCut}
	if c.spoil {
		line.Text = nil
	}
	*c = cutter{limit: c.limit}
	return line
}

func (c *cutter) step(b byte) {
	if c.inString {
		c.stepText(b)
		return
	}
	if len(c.open) == 0 && len(c.kept) >= c.limit && !isSpace(b) { // the line is no JSON
		c.spoilt()
	}
	switch b {
	case '"':
		c.inString, c.text, c.textKept, c.textCut = true, 0, 0, false
	case '[', '{':
		if c.open = append(c.open, b); len(c.open) > deepest {
			c.spoilt()
		}
	case ']', '}':
		if len(c.open) == c.skips {
			c.skips = 0
		}
		c.open = c.open[:max(0, len(c.open)-1)]
	case ',':
		if c.skips == 0 && len(c.kept) >= c.limit && len(c.open) > 0 && c.open[len(c.open)-1] == '[' {
			c.skips, c.isCut = len(c.open), true
		}
	}
	c.keep(b)
}

func isSpace(b byte) bool { return b == '\n' || b == '\r' || b == ' ' || b == '\t' }

// stepText takes a byte of a string.
func (c *cutter) stepText(b byte) {
	if b == '"' && !c.escaped {
		c.inString = false
		if c.textCut {
			for _, note := range []byte(cutLineNote(c.text, c.textKept)) {
				c.keep(note)
			}
		}
		c.keep(b)
		return
	}
	isWhole := !c.escaped && c.digits == 0 && utf8.RuneStart(b) // nothing ends in the middle here
	if isWhole && len(c.kept) >= c.limit && c.textKept >= shortString {
		c.textCut, c.isCut = true, true
	}
	switch {
	case c.escaped && b == 'u':
		c.escaped, c.digits = false, 4
	case c.escaped:
		c.escaped = false
	case b == '\\':
		c.escaped = true
	case c.digits > 0:
		c.digits--
	}
	c.text++
	if !c.textCut {
		c.textKept++
		c.keep(b)
	}
}

func (c *cutter) keep(b byte) {
	switch {
	case c.spoil || c.skips > 0:
	case len(c.kept) >= c.limit+lineSpare:
		c.spoilt()
	default:
		c.kept = append(c.kept, b)
	}
}

// spoilt gives up: nothing of the line is kept.
func (c *cutter) spoilt() { c.spoil, c.isCut, c.kept, c.open = true, true, nil, nil }

// cutLineNote is the note at the end of a string that was cut, as it stands in JSON.
func cutLineNote(said int64, kept int) string {
	return fmt.Sprintf(`\n\n[Bridge cut this text here: it has %s, and Bridge keeps %s of it.]`, bridge.Size(said), bridge.Size(int64(kept)))
}
