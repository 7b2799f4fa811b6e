-- The owner's pinned decisions and the receipts of who was told: append-only.
CREATE TABLE IF NOT EXISTS decisions (
  revision          INTEGER PRIMARY KEY AUTOINCREMENT,
  id                TEXT    NOT NULL UNIQUE,
  topic             TEXT    NOT NULL,
  body              TEXT    NOT NULL,
  scope             TEXT    NOT NULL,
  author_id         TEXT    NOT NULL,
  author_name       TEXT    NOT NULL,
  author_agent      TEXT    NOT NULL,
  created_at        INTEGER NOT NULL,
  source_message_id TEXT,
  supersedes        TEXT
);
CREATE INDEX IF NOT EXISTS decisions_topic ON decisions (topic, revision);
CREATE INDEX IF NOT EXISTS decisions_supersedes ON decisions (supersedes);
CREATE TABLE IF NOT EXISTS decision_deliveries (
  decision_id TEXT    NOT NULL,
  session_key TEXT    NOT NULL,
  message_id  TEXT    NOT NULL,
  created_at  INTEGER NOT NULL,
  PRIMARY KEY (decision_id, session_key)
);
CREATE TRIGGER IF NOT EXISTS decisions_keep BEFORE UPDATE ON decisions
BEGIN SELECT RAISE(ABORT, 'decisions are append-only'); END;
CREATE TRIGGER IF NOT EXISTS decisions_stay BEFORE DELETE ON decisions
BEGIN SELECT RAISE(ABORT, 'decisions are append-only'); END;
CREATE TRIGGER IF NOT EXISTS decision_deliveries_keep BEFORE UPDATE ON decision_deliveries
BEGIN SELECT RAISE(ABORT, 'decision receipts are append-only'); END;
CREATE TRIGGER IF NOT EXISTS decision_deliveries_stay BEFORE DELETE ON decision_deliveries
BEGIN SELECT RAISE(ABORT, 'decision receipts are append-only'); END;
