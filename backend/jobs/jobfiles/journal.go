package jobfiles

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// StartedDeliveries returns the ids of the orders that the runner of a run began to hand over. The
// runner writes the journal first. If it died then, the delivery is unknown, so these orders
// are never resent automatically. It fails if the journal cannot be opened; a missing one is
// empty.
func StartedDeliveries(folder string, run int) (map[string]bool, error) {
	var started map[string]bool
	err := readJournal(folder, run, func(entry journalEntry) {
		if started == nil {
			started = map[string]bool{}
		}
		switch entry.Kind {
		case "message":
			started[entry.ID] = true
		case "sent":
			started[entry.ID] = entry.Error == ""
		}
	})
	return started, err
}

// PromptStarted reports whether the runner of a run began to hand over its prompt. If the runner
// died then, the agent may have the prompt. It fails if the journal cannot be opened.
func PromptStarted(folder string, run int) (started bool, err error) {
	err = readJournal(folder, run, func(entry journalEntry) { started = started || entry.Kind == "prompt" })
	return started, err
}

// journalEntry is what the broker reads of an entry of a runner's journal.
type journalEntry struct {
	Run   int    `json:"run"`
	Kind  string `json:"kind"`
	ID    string `json:"id"`
	Error string `json:"error"`
}

// readJournal calls read for each whole entry of that run. A missing journal has none.
func readJournal(folder string, run int, read func(journalEntry)) error {
	file, err := os.Open(filepath.Join(folder, "journal.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // the file was only read
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil //nolint:nilerr // the runner did not act on an incomplete last line
		}
		var entry journalEntry
		if json.Unmarshal(line, &entry) == nil && entry.Run == run {
			read(entry)
		}
	}
}
