-- The message archive, version 1: rows that left the primary store for good,
-- and the stages of their deliveries. An identity is there once.
CREATE TABLE IF NOT EXISTS archived_messages (
  id              TEXT,
  recipient       TEXT,
  from_id         TEXT,
  from_name       TEXT,
  from_agent      TEXT,
  to_target       TEXT,
  conversation_id TEXT,
  reply_to        TEXT,
  hop             INTEGER,
  body            TEXT,
  created_at      INTEGER,
  read_at         INTEGER,
  archive_reason  TEXT,
  archived_at     INTEGER
);
CREATE UNIQUE INDEX IF NOT EXISTS archived_by_id ON archived_messages (id, recipient);
CREATE INDEX IF NOT EXISTS archived_by_age ON archived_messages (created_at);
CREATE TABLE IF NOT EXISTS delivery_stages (
  message_id  TEXT NOT NULL,
  recipient   TEXT NOT NULL,
  woken_at    INTEGER,
  woken_by    TEXT,
  handed_at   INTEGER,
  handed_by   TEXT,
  consumed_at INTEGER,
  consumed_by TEXT,
  answered_at INTEGER,
  answered_by TEXT,
  expired_at  INTEGER,
  expired_by  TEXT,
  PRIMARY KEY (message_id, recipient)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS delivery_ways (
  message_id   TEXT NOT NULL,
  recipient    TEXT NOT NULL,
  woken_via    TEXT,
  handed_via   TEXT,
  handed_at    INTEGER,
  handed_to    TEXT,
  consumed_via TEXT,
  PRIMARY KEY (message_id, recipient)
) WITHOUT ROWID;
PRAGMA user_version = 1;
