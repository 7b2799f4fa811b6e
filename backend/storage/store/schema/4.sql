-- The history index: documents, their tags and full text, and its cursors.
CREATE TABLE IF NOT EXISTS history_documents (
  id      TEXT PRIMARY KEY,
  kind    TEXT,
  agent   TEXT,
  at      INTEGER,
  body    TEXT,
  folded  TEXT,
  link    TEXT,
  message TEXT,
  job     TEXT,
  run     TEXT,
  session TEXT,
  cursor  TEXT
);
CREATE TABLE IF NOT EXISTS history_cursors (source TEXT PRIMARY KEY, cursor TEXT);
CREATE TABLE IF NOT EXISTS history_files (
  path    TEXT PRIMARY KEY,
  kind    TEXT,
  agent   TEXT,
  session TEXT,
  cwd     TEXT,
  child   TEXT,
  checked INTEGER
);
CREATE TABLE IF NOT EXISTS history_tags (id TEXT, type TEXT, value TEXT, PRIMARY KEY (id, type, value));
CREATE TABLE IF NOT EXISTS history_sessions (alias TEXT PRIMARY KEY, session TEXT, job TEXT);
CREATE TABLE IF NOT EXISTS history_pending (
  id         TEXT,
  body       TEXT,
  from_agent TEXT,
  from_name  TEXT,
  from_id    TEXT,
  recipient  TEXT,
  to_target  TEXT,
  created_at INTEGER,
  PRIMARY KEY (id, recipient)
);
CREATE VIRTUAL TABLE IF NOT EXISTS history_fts USING fts5(body, content='history_documents');
