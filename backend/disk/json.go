package disk

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
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
	data, err := io.ReadAll(io.LimitReader(file, limitBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if int64(len(data)) > limitBytes {
		return nil, fmt.Errorf("read %s: %w (%d bytes)", path, ErrTooLarge, limitBytes)
	}
	return data, nil
}

// ReadJSON decodes the one JSON document in the file at path, of at most
// limitBytes, into dst. Members that dst does not know are ignored.
func ReadJSON(path string, limitBytes int64, dst any) error {
	data, err := ReadLimited(path, limitBytes)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, dst); err != nil {
		return fmt.Errorf("parse %s: %w", path, err)
	}
	return nil
}

// WriteJSON replaces the file at path by value as indented JSON, atomically and
// readable by the user alone.
func WriteJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	return WriteAtomic(path, append(data, '\n'), PrivateFile)
}
