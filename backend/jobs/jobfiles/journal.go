package jobfiles

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// BegunToSay returns the ids of the orders that the runner of a run began to hand over.
// The runner writes the journal first. If it died then, the delivery is unknown, so
// these orders are never resent automatically.
func BegunToSay(folder string, run int) (map[string]bool, error) {
	file, err := os.Open(filepath.Join(folder, "journal.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // there are none
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // the file was only read
	begun := map[string]bool{}
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return begun, nil // the runner did not act on an incomplete last line
		}
		var entry struct {
			Run   int    `json:"run"`
			Kind  string `json:"kind"`
			ID    string `json:"id"`
			Error string `json:"error"`
		}
		if json.Unmarshal(line, &entry) != nil || entry.Run != run {
			continue
		}
		switch entry.Kind {
		case "message":
			begun[entry.ID] = true
		case "sent":
			begun[entry.ID] = entry.Error == ""
		}
	}
}
