package clidata

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
)

// maxHeldBytes bounds the searched end of a session, which holds the last input of
// an ended process.
const maxHeldBytes = 16 << 20

// Holds returns which of the messages the CLI's own store in folder holds
// completely in the session: a resumed session shows them. It only reads, like
// Children. An unreadable store holds none.
func (s Store) Holds(ctx context.Context, folder, sessionID, cwd string, messages []mail.Delivery) map[string]bool {
	held := map[string]bool{}
	if s.records == nil || folder == "" || !isStoredID(sessionID) || len(messages) == 0 {
		return held
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	look := func(record []byte) { holdsIn(record, messages, held) }
	_ = s.records(ctx, conversation{folder, sessionID, cwd}, look)
	return held
}

// holdsIn records which messages are in one record of a store. A host may store a
// tool's JSON answer as a text.
func holdsIn(record []byte, messages []mail.Delivery, held map[string]bool) {
	var value any
	for _, m := range messages {
		if held[m.ID] || !mail.MayHold(record, m.Message) {
			continue
		}
		if value == nil && json.Unmarshal(record, &value) != nil {
			return
		}
		held[m.ID] = holdsText(value, m.Message, maxHeldDepth)
	}
}

// maxHeldDepth bounds the depth of the search in a record.
const maxHeldDepth = 20

func holdsText(value any, m bridge.Message, depth int) bool {
	if depth == 0 {
		return false
	}
	switch v := value.(type) {
	case string:
		if mail.HeldIn(v, m) {
			return true
		}
		return holdsJSON(v, m, depth)
	case []any:
		for _, item := range v {
			if holdsText(item, m, depth-1) {
				return true
			}
		}
	case map[string]any:
		if id, _ := v["id"].(string); id == m.ID && v["body"] == m.Body {
			return true // the form of the tool `inbox`
		}
		for _, item := range v {
			if holdsText(item, m, depth-1) {
				return true
			}
		}
	}
	return false
}

// holdsJSON searches a text that is itself JSON.
func holdsJSON(text string, m bridge.Message, depth int) bool {
	var inner any
	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") || json.Unmarshal([]byte(text), &inner) != nil {
		return false
	}
	return holdsText(inner, m, depth-1)
}

// eachRecord calls look with every line at the end of a file below folder.
func eachRecord(folder, name string, look func([]byte)) error {
	root, err := os.OpenRoot(folder)
	if err != nil || name == "" {
		return err
	}
	defer root.Close() //nolint:errcheck // it was only read
	if info, err := root.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return fs.ErrNotExist
	}
	file, err := root.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return fs.ErrNotExist
	}
	data, err := io.ReadAll(io.NewSectionReader(file, max(0, info.Size()-maxHeldBytes), maxHeldBytes))
	if err != nil {
		return err
	}
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		look(line)
	}
	return nil
}
