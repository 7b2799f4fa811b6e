package ipc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc/api"
)

// Journal is the durable read journal. It keeps acks while no broker is reachable,
// until a broker imports them, so that shown mail is never shown again (MSG-06).
// Each ack is a separate file, written atomically once. So many processes and the
// importing broker do not disturb each other.
type Journal struct {
	Dir string // the home's read-journal folder
}

// JournalLine is one line of the read journal: the ack of one message, kept until a
// broker imports it.
type JournalLine struct {
	Stage     bridge.Stage      `json:"stage"`
	MessageID string            `json:"id"`
	Recipient string            `json:"recipient"`
	At        bridge.UnixMillis `json:"at"`
	Via       mail.Via          `json:"via,omitempty"` // empty in a line of an older program
	Detail    string            `json:"detail,omitempty"`
	Evidence  string            `json:"evidence"`          // as Ack.Evidence
	Process   string            `json:"process,omitempty"` // as session.Lease.Process
}

// Mark returns the line's fact. It fails with Invalid for a bad stage or Via.
func (l JournalLine) Mark() (mail.Mark, error) {
	mark := mail.Mark{MessageID: l.MessageID, Recipient: l.Recipient, At: l.At, Via: l.Via, Evidence: l.Evidence, Process: l.Process}
	switch {
	case l.Stage != bridge.StageHanded && l.Stage != bridge.StageConsumed:
		return mark, bridge.Errorf(bridge.Invalid, "an ack says handed or consumed, not %q", l.Stage)
	case l.Via == "":
		mark.Via = mail.ViaOf(l.Stage, l.Evidence)
	case !api.MayReport(l.Via, l.Stage):
		return mark, bridge.Errorf(bridge.Invalid, "an ack cannot say that mail was %s by %q", l.Stage, l.Via)
	default:
		mark.Evidence = l.Via.Evidence(l.Detail)
	}
	return mark, nil
}

const (
	journalSuffix = ".json"
	// journalLimitBytes bounds one file: the ack of one lease is far smaller.
	journalLimitBytes = 1 << 20
)

// Keep stores an ack that did not reach the broker. at is in Unix epoch
// milliseconds. It fails if the folder or the file cannot be written.
func (j Journal) Keep(ack api.Ack, at int64) error {
	if len(ack.Lease.Messages) == 0 {
		return nil // there is no message to keep
	}
	if err := disk.MakeDir(j.Dir); err != nil {
		return fmt.Errorf("make the read journal: %w", err)
	}
	lines := make([]JournalLine, 0, len(ack.Lease.Messages))
	for _, id := range ack.Lease.Messages {
		lines = append(lines, JournalLine{
			Stage: ack.Stage, MessageID: id, Recipient: ack.Lease.Recipient, At: at,
			Via: ack.Via, Detail: ack.Detail, Evidence: ack.Words(), Process: ack.Lease.Process,
		})
	}
	data, err := json.Marshal(lines)
	if err != nil {
		return fmt.Errorf("encode an ack: %w", err)
	}
	name := filepath.Join(j.Dir, uuid.NewString()+journalSuffix)
	if err := disk.WriteNew(name, data, 0o600); err != nil {
		return fmt.Errorf("keep an ack: %w", err)
	}
	return nil
}

// Import passes every kept ack to record. It removes a file only after record made
// its acks durable. It leaves an unreadable file, imports the others and then fails
// with the joined errors. Concurrent imports are safe.
func (j Journal) Import(record func([]JournalLine) error) error {
	entries, err := os.ReadDir(j.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list the read journal: %w", err)
	}
	var problems []error
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), journalSuffix) || disk.IsTemp(entry.Name()) {
			continue
		}
		problems = append(problems, j.importFile(filepath.Join(j.Dir, entry.Name()), record))
	}
	return errors.Join(problems...)
}

func (j Journal) importFile(path string, record func([]JournalLine) error) error {
	data, err := disk.ReadLimited(path, journalLimitBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another import took it
	}
	if err != nil {
		return fmt.Errorf("read the ack %s: %w", path, err)
	}
	var lines []JournalLine
	if err := bridge.DecodeStrict(data, journalLimitBytes, &lines); err != nil {
		return fmt.Errorf("read the ack %s: %w", path, err)
	}
	if err := record(lines); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("clear the imported ack %s: %w", path, err)
	}
	return nil
}
