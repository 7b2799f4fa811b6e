-- Messages that left the live table, each with the reason and the time.
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
