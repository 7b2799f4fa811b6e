-- Raw records of the hosts' conversation files: append-only.
CREATE TABLE IF NOT EXISTS conversations (
  id      TEXT PRIMARY KEY,
  agent   TEXT,
  session TEXT,
  parent  TEXT,
  project TEXT,
  job     TEXT,
  kind    TEXT
);
CREATE TABLE IF NOT EXISTS conversation_sources (
  id           TEXT PRIMARY KEY,
  path         TEXT,
  conversation TEXT,
  format       TEXT,
  generation   INTEGER,
  offset       INTEGER,
  identity     TEXT,
  anchor       TEXT,
  checked      INTEGER
);
CREATE TABLE IF NOT EXISTS conversation_records (
  id           INTEGER PRIMARY KEY,
  source       TEXT,
  generation   INTEGER,
  offset       INTEGER,
  conversation TEXT,
  at           INTEGER,
  raw          BLOB,
  body         TEXT,
  part         TEXT,
  UNIQUE (source, generation, offset)
);
CREATE TRIGGER IF NOT EXISTS conversation_records_keep BEFORE UPDATE ON conversation_records
BEGIN SELECT RAISE(ABORT, 'conversation records are append-only'); END;
CREATE TRIGGER IF NOT EXISTS conversation_records_stay BEFORE DELETE ON conversation_records
BEGIN SELECT RAISE(ABORT, 'conversation records are append-only'); END;
CREATE TABLE IF NOT EXISTS conversation_parts (
  source   TEXT,
  part     TEXT,
  revision INTEGER,
  offset   INTEGER,
  PRIMARY KEY (source, part)
);
CREATE TABLE IF NOT EXISTS conversation_projects (project TEXT PRIMARY KEY, checked INTEGER);
CREATE TABLE IF NOT EXISTS conversation_bindings (
  session TEXT,
  agent   TEXT,
  cwd     TEXT,
  job     TEXT,
  pending TEXT,
  PRIMARY KEY (session, agent)
);
CREATE TABLE IF NOT EXISTS conversation_envelopes (
  id        INTEGER PRIMARY KEY,
  message   TEXT,
  recipient TEXT,
  UNIQUE (message, recipient)
);
