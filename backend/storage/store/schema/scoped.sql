-- A backup of messages only, version 1: what was in the store and its archive
-- at about one moment. A row that moved meanwhile may be in two tables.
CREATE TABLE messages (
  id              TEXT    NOT NULL,
  recipient       TEXT    NOT NULL,
  from_id         TEXT    NOT NULL,
  from_name       TEXT    NOT NULL,
  from_agent      TEXT    NOT NULL,
  to_target       TEXT    NOT NULL,
  conversation_id TEXT    NOT NULL,
  reply_to        TEXT,
  hop             INTEGER NOT NULL,
  body            TEXT    NOT NULL,
  created_at      INTEGER NOT NULL,
  read_at         INTEGER,
  PRIMARY KEY (id, recipient)
);
CREATE TABLE archived_messages (
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
CREATE INDEX archived_by_id ON archived_messages (id, recipient);
CREATE TABLE job_delivery_routes (
  id          TEXT PRIMARY KEY,
  recipient   TEXT NOT NULL,
  consumed_at INTEGER
);
PRAGMA user_version = 1;
