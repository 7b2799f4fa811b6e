package disk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/go-json-experiment/json/jsontext"

	"bridge/backend/core/bridge"
)

// ErrTooLarge reports a file over the caller's limit; none of its bytes were used.
var ErrTooLarge = errors.New("the file is larger than allowed")

// ReadLimited returns the whole file at path. It fails with [ErrTooLarge] over
// limitBytes and with fs.ErrNotExist for a missing file. It does not open a file
// that is not regular, because opening a pipe waits for a writer.
func ReadLimited(path string, limitBytes int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("it is not a regular file")}
	}
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	defer file.Close()
	var read bytes.Buffer
	read.Grow(int(min(info.Size(), limitBytes)) + bytes.MinRead) // a growing buffer would hold the data twice
	_, err = read.ReadFrom(io.LimitReader(file, limitBytes+1))
	data := read.Bytes()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if int64(len(data)) > limitBytes {
		return nil, fmt.Errorf("read %s: %w (%s)", path, ErrTooLarge, bridge.Counted(int(limitBytes), "byte"))
	}
	return data, nil
}

// ReadJSON decodes the one JSON document in the file at path, as [DecodeJSON] does. It
// refuses comments and trailing commas, because Bridge would lose them when it writes
// the file. It fails with [ErrTooLarge] over limitBytes.
func ReadJSON(path string, limitBytes int64, dst any) error {
	data, err := ReadLimited(path, limitBytes)
	if err != nil {
		return err
	}
	err = CheckPlain(data)
	if err == nil {
		err = DecodeJSON(data, dst)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// CheckPlain fails with a [JSONProblem] if a document has a comment or a trailing comma.
func CheckPlain(data []byte) error {
	plain := PlainJSON(data)
	for i := range data {
		if data[i] == plain[i] {
			continue
		}
		problem := problemAt(data, int64(i))
		if problem.What = "this file may have no comments: Bridge would lose them when it writes it"; data[i] == ',' {
			problem.What = "a comma stands before a closing bracket"
		}
		return problem
	}
	return nil
}

// DecodeJSON decodes one JSON document from a file that people may edit into dst.
// It skips a byte order mark, comments and trailing commas, and ignores members
// unknown to dst. It fails with a [Duplicate] if an object has a member twice, because
// readers disagree about which one counts, and else as [ExplainJSON] says.
func DecodeJSON(data []byte, dst any) error {
	_, data = CutBOM(data)
	text := PlainJSON(data)
	if duplicate, found := FindDuplicate(text); found {
		return duplicate
	}
	if err := json.Unmarshal(text, dst); err != nil {
		return ExplainJSON(data, err)
	}
	return nil
}

// CutBOM splits the content of a text file into its byte order mark, or nil, and
// the text. Editors on Windows write the mark, and it means nothing in UTF-8.
func CutBOM(data []byte) (mark, text []byte) {
	if text, has := bytes.CutPrefix(data, []byte("\ufeff")); has {
		return data[:len(data)-len(text)], text
	}
	return nil, data
}

// Duplicate is a member that an object of a JSON document has twice. As an error,
// its text names the member and both lines.
type Duplicate struct {
	Name          string
	First, Second int // lines, from 1
}

func (d Duplicate) Error() string {
	return fmt.Sprintf("the member %q is there twice, %s: delete one of them", d.Name, d.Lines())
}

// Lines returns the place of both members as text.
func (d Duplicate) Lines() string {
	if d.First == d.Second {
		return fmt.Sprintf("both on line %d", d.First)
	}
	return fmt.Sprintf("on lines %d and %d", d.First, d.Second)
}

// FindDuplicate returns the first member that an object of the JSON document has
// twice. It reports no other error of the document.
func FindDuplicate(data []byte) (Duplicate, bool) {
	anyText := jsontext.AllowInvalidUTF8(true) // as encoding/json does
	err := jsontext.NewDecoder(bytes.NewReader(data), anyText).SkipValue()
	var syntactic *jsontext.SyntacticError
	if !errors.Is(err, jsontext.ErrDuplicateName) || !errors.As(err, &syntactic) {
		return Duplicate{}, false
	}
	var lines []int
	decoder := jsontext.NewDecoder(bytes.NewReader(data), anyText, jsontext.AllowDuplicateNames(true))
	for len(lines) < 2 {
		if _, err := decoder.ReadToken(); err != nil {
			return Duplicate{}, false // unreachable: both were read before
		}
		kind, length := decoder.StackIndex(decoder.StackDepth())
		if isName := kind == '{' && length%2 == 1; isName && decoder.StackPointer() == syntactic.JSONPointer {
			lines = append(lines, LineAt(data, decoder.InputOffset()))
		}
	}
	return Duplicate{Name: syntactic.JSONPointer.LastToken(), First: lines[0], Second: lines[1]}, true
}

// LineAt returns the line, from 1, of the byte at offset.
func LineAt(data []byte, offset int64) int { return 1 + bytes.Count(data[:offset], []byte("\n")) }

// WriteJSON replaces the file at path atomically with value as indented JSON. Only
// the user can read the file. It fails if value cannot be encoded or written.
func WriteJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	return WriteAtomic(path, append(data, '\n'), PrivateFile)
}

// Regular returns a function that opens the regular file at path and returns its
// size in bytes. That function fails for a missing file, and for a folder or
// device.
func Regular(path string) func() (io.ReadCloser, int64, error) {
	return func() (io.ReadCloser, int64, error) {
		info, err := os.Stat(path)
		if err == nil && !info.Mode().IsRegular() {
			err = &fs.PathError{Op: "open", Path: path, Err: errors.New("it is not a regular file")}
		}
		if err != nil {
			return nil, 0, fmt.Errorf("read: %w", err)
		}
		file, err := os.Open(path)
		if err != nil {
			return nil, 0, fmt.Errorf("read: %w", err)
		}
		return file, info.Size(), nil
	}
}
