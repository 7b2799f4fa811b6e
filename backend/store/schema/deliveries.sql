-- Component "deliveries" 1: the later stages of a delivery and the indexes of
-- the lists. A stage row is written only when a stage after "durable" happens.
CREATE TABLE IF NOT EXISTS bridge_components (name TEXT PRIMARY KEY, version INTEGER NOT NULL);
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
CREATE INDEX IF NOT EXISTS messages_received ON messages (recipient, created_at);
CREATE INDEX IF NOT EXISTS messages_sent ON messages (from_id, created_at);
CREATE INDEX IF NOT EXISTS archived_by_id ON archived_messages (id, recipient);
CREATE INDEX IF NOT EXISTS archived_by_age ON archived_messages (created_at);
CREATE INDEX IF NOT EXISTS archived_received ON archived_messages (recipient, created_at);
CREATE INDEX IF NOT EXISTS archived_sent ON archived_messages (from_id, created_at);
INSERT INTO bridge_components (name, version) VALUES ('deliveries', 1) ON CONFLICT (name) DO UPDATE SET version = excluded.version;
