// Package schema defines the tables of Bridge's databases: the SQL of every step that
// creates them, and the versions that this build knows. It determines what a file is, and
// what it lacks of its version's promise, without changing it. It also defines what all
// writers of messages share: their columns, when two rows are equal, and the lists
// derived from them.
package schema

import (
	"embed"

	"bridge/backend/core/bridge"
)

//go:embed *.sql
var files embed.FS

// Version is the number of the newest schema step that this build knows.
const Version = bridge.StoreVersion

// ArchiveVersion is the schema version of the message archive, archive.db.
const ArchiveVersion = 1

// SidecarVersion is the schema version of compat.db.
const SidecarVersion = 1

// DeliveriesVersion is the newest version of the component "deliveries": Bridge's tables
// and indexes that do not raise the schema version.
const DeliveriesVersion = 1

// RemoteVersion is the newest version of the component "remote": the tables about paired
// PCs, which do not raise the schema version either.
const RemoteVersion = 1

// LaterParts returns the names of the scripts for Bridge's own tables and indexes outside
// the schema steps, in the order in which they run.
func LaterParts() []string { return []string{"deliveries", "archived", "remote", "team", "withdrawn"} }

// Script returns the SQL of a schema step or part. It fails with fs.ErrNotExist for an
// unknown name.
func Script(name string) (string, error) {
	text, err := files.ReadFile(name + ".sql")
	return string(text), err
}

// MessageColumns are the columns of a message, also of an archived one.
const MessageColumns = "id, recipient, from_id, from_name, from_agent, to_target, conversation_id, reply_to, hop, body, created_at, read_at"

// SameContent states, in SQL, that a and m have the same content: the time of reading and
// the table are not content.
const SameContent = `a.from_id IS m.from_id AND a.from_name IS m.from_name AND a.from_agent IS m.from_agent AND a.to_target IS m.to_target
	AND a.conversation_id IS m.conversation_id AND a.reply_to IS m.reply_to AND a.hop IS m.hop AND a.body IS m.body
	AND a.created_at IS m.created_at`

// SameArchived states, in SQL, that a is the archived copy of messages m.
const SameArchived = SameContent + ` AND a.read_at IS m.read_at`

// MergedLast orders messages that were merged from a backup, with negative row ids, by
// time: their row ids follow the merges.
const MergedLast = " ORDER BY created_at DESC, rowid DESC"

// ReasonRead is the reason of an archived row that was read and is old.
const ReasonRead = "read"
