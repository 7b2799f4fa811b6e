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
)

// ErrTooLarge reports a file over the caller's limit; nothing of it was used.
var ErrTooLarge = errors.New("the file is larger than allowed")

// ReadLimited returns the whole file at path, or ErrTooLarge when it holds more
// than limitBytes. A missing file is fs.ErrNotExist. What is no regular file is
// not opened: a pipe would wait for a writer.
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
	read.Grow(int(min(info.Size(), limitBytes)) + bytes.MinRead) // growing would hold it twice
	_, err = read.ReadFrom(io.LimitReader(file, limitBytes+1))
	data := read.Bytes()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if int64(len(data)) > limitBytes {
		return nil, fmt.Errorf("read %s: %w (%d bytes)", path, ErrTooLarge, limitBytes)
	}
	return data, nil
}

// ReadJSON decodes the one JSON document in the file at path, of at most
// limitBytes, into dst, as DecodeJSON does.
func ReadJSON(path string, limitBytes int64, dst any) error {
	data, err := ReadLimited(path, limitBytes)
	if err != nil {
		return err
	}
	if err := DecodeJSON(data, dst); err != nil {
		return fmt.Errorf("parse %s: %w", path, err)
	}
	return nil
}

// DecodeJSON decodes the one JSON document of a file that people may edit into dst. A
// byte order mark before it is passed over. Members that dst does not know are ignored.
// A member that an object has twice is an error that names both lines: readers differ
// in which one counts.
func DecodeJSON(data []byte, dst any) error {
	_, data = CutBOM(data)
	if duplicate, found := FindDuplicate(data); found {
		return duplicate
	}
	return json.Unmarshal(data, dst)
}

// CutBOM parts a text file's content into its byte order mark, nil where there is none,
// and the text. Editors on Windows write the mark, and it means nothing in UTF-8.
func CutBOM(data []byte) (mark, text []byte) {
	if text, has := bytes.CutPrefix(data, []byte("\ufeff")); has {
		return data[:len(data)-len(text)], text
	}
	return nil, data
}

// Duplicate is a member that an object of a JSON document has twice. As an error it is
// a sentence that says so.
type Duplicate struct {
	Name          string
	First, Second int // lines, from 1
}

func (d Duplicate) Error() string {
	return fmt.Sprintf("the member %q is there twice, %s: delete one of them", d.Name, d.Lines())
}

// Lines says where both are.
func (d Duplicate) Lines() string {
	if d.First == d.Second {
		return fmt.Sprintf("both on line %d", d.First)
	}
	return fmt.Sprintf("on lines %d and %d", d.First, d.Second)
}

// FindDuplicate returns the first member that an object of the JSON document has twice.
// What is wrong with the document otherwise is not looked for.
func FindDuplicate(data []byte) (Duplicate, bool) {
	anyText := jsontext.AllowInvalidUTF8(true) // as encoding/json reads it
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

// LineAt returns the line, from 1, on which the byte at offset stands.
func LineAt(data []byte, offset int64) int { return 1 + bytes.Count(data[:offset], []byte("\n")) }

// WriteJSON replaces the file at path by value as indented JSON, atomically and
// readable by the user alone.
func WriteJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	return WriteAtomic(path, append(data, '\n'), PrivateFile)
}

// Regular returns how the regular file at path is opened to be read, with its size in bytes.
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
