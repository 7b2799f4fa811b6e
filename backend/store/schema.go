package store

import "embed"

//go:embed schema/*.sql
var schemaFiles embed.FS

// SchemaVersion is the number of the newest schema step this build knows.
const SchemaVersion = 9

// ArchiveVersion is the schema version of the message archive, archive.db.
const ArchiveVersion = 1

// CompatVersion is the schema version of compat.db.
const CompatVersion = 1

// deliveriesVersion is the newest version of the component "deliveries": the
// tables and indexes of ours that do not raise the schema version.
const deliveriesVersion = 1

// script is the SQL of a schema step or part, by its name.
func script(name string) (string, error) {
	text, err := schemaFiles.ReadFile("schema/" + name + ".sql")
	return string(text), err
}

// archiveColumns are the columns of a message, of an archived one too.
const archiveColumns = "id, recipient, from_id, from_name, from_agent, to_target, conversation_id, reply_to, hop, body, created_at, read_at"

// sameContent says, in SQL, that a and m say the same: what was read since and
// where a row is kept are no content.
const sameContent = `a.from_id IS m.from_id AND a.from_name IS m.from_name AND a.from_agent IS m.from_agent AND a.to_target IS m.to_target
	AND a.conversation_id IS m.conversation_id AND a.reply_to IS m.reply_to AND a.hop IS m.hop AND a.body IS m.body
	AND a.created_at IS m.created_at`

// sameArchived says, in SQL, that a is the archived copy of messages m.
const sameArchived = sameContent + ` AND a.read_at IS m.read_at`

// mergedLast orders messages that were merged from a backup, those in negative
// places, by their time: their places follow from when they were merged.
const mergedLast = " ORDER BY created_at DESC, rowid DESC"

// reasonRead is the reason of an archived row that was read and is old.
const reasonRead = "read"
