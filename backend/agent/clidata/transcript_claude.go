package clidata

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"time"

	"bridge/backend/core/hooks"
)

// The bounds of one search for a prompt: only the end of longer transcripts is
// read, and a longer line holds no prompt of the owner.
const (
	maxTranscriptBytes = 32 << 20
	maxTranscriptLine  = 1 << 20
)

// ClaudeEntered searches the conversations' transcripts for a prompt with exactly
// that text that Bridge's mod entered, not before since (Unix epoch milliseconds).
// known is false if no transcript can be read. It only reads.
func ClaudeEntered(folder, cwd string, sessions []string, text string, since int64) (entered, known bool) {
	root, err := os.OpenRoot(folder)
	if folder == "" || err != nil {
		return false, false
	}
	defer root.Close() //nolint:errcheck // it was only read
	for _, id := range sessions {
		if !isStoredID(id) {
			continue
		}
		projects, err := claudeProjects(root, id, cwd)
		if err != nil {
			continue
		}
		for _, project := range projects {
			found, err := holdsPrompt(root, path.Join("projects", project, id+".jsonl"), text, since)
			if found {
				return true, true
			}
			known = known || err == nil
		}
	}
	return false, known
}

func holdsPrompt(root *os.Root, name, text string, since int64) (bool, error) {
	file, err := root.Open(name)
	if err != nil {
		return false, err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > maxTranscriptBytes {
		if _, err := file.Seek(-maxTranscriptBytes, io.SeekEnd); err != nil {
			return false, err
		}
	}
	lines := bufio.NewReaderSize(file, maxTranscriptLine)
	for {
		line, err := lines.ReadSlice('\n')
		switch {
		case err == nil && isEntered(line, text, since):
			return true, nil
		case err == nil, errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return false, nil
		default:
			return false, err
		}
	}
}

// isEntered checks one line of a transcript.
func isEntered(line []byte, text string, since int64) bool {
	if !bytes.Contains(line, []byte(`"plugin"`)) {
		return false
	}
	var row struct {
		Type      string    `json:"type"`
		Timestamp time.Time `json:"timestamp"`
		Origin    struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
		} `json:"origin"`
		Message struct {
			Content json.RawMessage `json:"content"`
		} `json:"message"`
	}
	if json.Unmarshal(line, &row) != nil || row.Type != "user" || row.Origin.Kind != "plugin" || row.Origin.Name != hooks.ClaudeMod {
		return false
	}
	var content string
	return json.Unmarshal(row.Message.Content, &content) == nil && content == text && row.Timestamp.UnixMilli() >= since
}
