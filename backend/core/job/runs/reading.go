package runs

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"bridge/backend/core/bridge"
)

// ShownBytes is how much of a result's text is read for display, in bytes: an answer on
// the local socket cannot hold more (SEC-11).
const ShownBytes = bridge.MaxFrameBytes

// part has the sizes of a result if the envelope has only its start.
type part struct {
	bytes int64 // of the whole result's text
	chars int   // the same in characters
	file  int64 // bytes of the whole envelope
}

// IsPart reports whether Result is only the start of the result.
func (e Envelope) IsPart() bool { return e.full != nil }

// Chars returns the number of characters of the full result.
func (e Envelope) Chars() int {
	if e.full != nil {
		return e.full.chars
	}
	return utf8.RuneCountInString(e.Result)
}

// EncodedBytes returns the size of the full envelope as JSON, in bytes. It fails if the
// envelope cannot be encoded.
func (e Envelope) EncodedBytes() (int64, error) {
	if e.full != nil {
		return e.full.file, nil
	}
	var size counter
	err := e.EncodeTo(&size)
	return int64(size), err
}

// counter counts the bytes that are written to it.
type counter int64

// Write counts the bytes. It never fails.
func (c *counter) Write(data []byte) (int, error) {
	*c += counter(len(data))
	return len(data), nil
}

// Shown returns the envelope for people. A partial result ends with a note that names
// the file of the full result.
func (e Envelope) Shown(file string) Envelope {
	if e.full != nil {
		e.Result += fmt.Sprintf("\n\n[Bridge shows %s of this result: it has %s, and is kept whole in %s.]", bridge.Size(int64(len(e.Result))), bridge.Size(e.full.bytes), file)
	}
	return e
}

// ReadEnvelope reads the envelope of that job from a file, and returns the file's size
// in bytes. It keeps at most that many bytes of the result; IsPart then reports that
// there is more. It fails as DecodeEnvelope does.
func ReadEnvelope(open func() (io.ReadCloser, int64, error), name string, most int) (envelope Envelope, size int64, err error) {
	file, size, err := open()
	if err != nil {
		return Envelope{}, size, err
	}
	defer file.Close()
	if size > MaxEnvelopeBytes {
		return Envelope{}, size, ErrManual
	}
	short := shortener{most: most, isBlank: true}
	if _, err := io.Copy(&short, io.LimitReader(file, MaxEnvelopeBytes+1)); err != nil {
		return Envelope{}, size, fmt.Errorf("read the envelope of %s: %w", name, err)
	}
	if short.read > MaxEnvelopeBytes {
		return Envelope{}, short.read, ErrManual
	}
	if !short.isCut {
		envelope, err = DecodeEnvelope(short.encoded, name)
		return envelope, size, err
	}
	if err := bridge.DecodeAdditive(short.encoded, MaxEnvelopeBytes, &envelope); err != nil {
		return Envelope{}, size, err
	}
	envelope.full = &part{short.bytes, short.chars, short.read}
	if err := envelope.check(name, short.isBlank); err != nil {
		return Envelope{}, size, err
	}
	return envelope, size, nil
}

// shortener keeps the JSON of an envelope without the end of a long result.
type shortener struct {
	most    int
	encoded []byte
	read    int64
	// bytes, chars and isBlank describe the result's text. isBlank is true if it has only spaces.
	bytes          int64
	chars          int
	isBlank, isCut bool

	depth    int
	inString bool
	escaped  bool
	key      []byte // the last string at the first level, if it may be the name
	isValue  bool   // the open string is the result
	colon    bool   // a value of the first level follows
	unicode  []byte // the digits of a \u so far; nil outside one
}

// Write implements io.Writer. It never fails.
func (s *shortener) Write(data []byte) (int, error) {
	s.read += int64(len(data))
	written := len(data)
	for len(data) > 0 {
		if !s.inString || s.escaped || s.unicode != nil {
			s.step(data[0])
			data = data[1:]
			continue
		}
		n := bytes.IndexAny(data, `"\`)
		if n < 0 {
			n = len(data)
		}
		s.plain(data[:n])
		if data = data[n:]; len(data) > 0 {
			s.step(data[0])
			data = data[1:]
		}
	}
	return written, nil
}

// plain processes a piece of a string without escapes.
func (s *shortener) plain(text []byte) {
	if !s.isValue {
		if s.depth == 1 && len(s.key) <= len("result") {
			s.key = append(s.key, text[:min(len(text), len("result")+1)]...)
		}
		s.encoded = append(s.encoded, text...)
		return
	}
	s.bytes += int64(len(text))
	s.isBlank = s.isBlank && len(bytes.TrimSpace(text)) == 0
	for _, b := range text {
		if utf8.RuneStart(b) {
			s.chars++
		}
	}
	if room := s.most - int(s.bytes) + len(text); !s.isCut && len(text) > room {
		room = max(0, room)
		for room > 0 && !utf8.RuneStart(text[room]) {
			room--
		}
		s.encoded, s.isCut = withoutHalfRune(append(s.encoded, text[:room]...)), true
	}
	if !s.isCut {
		s.encoded = append(s.encoded, text...)
	}
}

// withoutHalfRune returns text without an incomplete character at its end: the rest of
// that character came with the next piece.
func withoutHalfRune(text []byte) []byte {
	for range utf8.UTFMax - 1 {
		if r, size := utf8.DecodeLastRune(text); r != utf8.RuneError || size != 1 {
			break
		}
		text = text[:len(text)-1]
	}
	return text
}

// step processes a byte that may be JSON syntax.
func (s *shortener) step(b byte) {
	if s.inString {
		s.stepString(b)
		return
	}
	switch b {
	case '{', '[':
		s.depth++
	case '}', ']':
		s.depth--
	case ':':
		s.colon = s.depth == 1
	case ',':
		s.colon = false
	case '"':
		s.inString = true
		s.isValue = s.colon && s.depth == 1 && string(s.key) == "result"
		if !s.isValue {
			s.key = s.key[:0]
		}
	}
	s.encoded = append(s.encoded, b)
}

// stepString processes a byte of a string that is an escape or the end.
func (s *shortener) stepString(b byte) {
	switch {
	case s.unicode != nil:
		if s.unicode = append(s.unicode, b); len(s.unicode) == 4 {
			s.escape(`\u` + string(s.unicode))
			s.unicode = nil
		}
	case s.escaped && b == 'u':
		s.escaped, s.unicode = false, make([]byte, 0, 4)
	case s.escaped:
		s.escaped = false
		s.escape(`\` + string(b))
	case b == '\\':
		s.escaped = true
	default: // the end of the string
		s.inString, s.isValue = false, false
		s.encoded = append(s.encoded, b)
	}
}

// escape processes an escaped character.
func (s *shortener) escape(text string) {
	if !s.isValue {
		s.encoded = append(s.encoded, text...)
		s.key = append(s.key, '\\') // so that the key cannot match
		return
	}
	size, isLow := 1, false
	if len(text) > 2 {
		char, _ := strconv.ParseUint(text[2:], 16, 32)
		isLow = char >= 0xdc00 && char < 0xe000 // the second half of a character
		switch {
		case char >= 0xd800 && char < 0xe000:
			size = 2
		default:
			size = utf8.RuneLen(rune(char))
		}
	}
	s.bytes += int64(size)
	if !isLow {
		s.chars++
	}
	s.isBlank = s.isBlank && strings.Contains(`\n\t\r\u0020`, strings.ToLower(text))
	s.isCut = s.isCut || s.bytes > int64(s.most)
	if !s.isCut {
		s.encoded = append(s.encoded, text...)
	}
}

// FirstChars returns at most that many characters of the text.
func FirstChars(text string, most int) string {
	for at := range text {
		if most--; most < 0 {
			return text[:at]
		}
	}
	return text
}
