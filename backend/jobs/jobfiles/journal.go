package jobfiles

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// BegunToSay names the orders that the runner of a run had begun to hand over, by the
// journal in the job's folder, which it writes before it does so. Whether the agent has
// them nobody knows where it died then: nobody says them again by himself.
func BegunToSay(folder string, run int) (map[string]bool, error) {
	file, err := os.Open(filepath.Join(folder, "journal.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // there are none
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	begun := map[string]bool{}
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return begun, nil // a last line that its writer did not finish was not acted on
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
