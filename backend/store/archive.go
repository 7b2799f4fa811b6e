package store

// ArchiveVersion is the schema version of the message archive, archive.db.
const ArchiveVersion = 1
