-- Component "deliveries" 1: the later stages of a delivery and what the lists
-- need; archived.sql is part of it. A stage row is written only when a stage
-- after "durable" happens.
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
-- Which way a delivery reached a stage, and the process that it was handed to. It
-- is a table of its own so that older programs, which copy whole rows of
-- delivery_stages, go on as they are. What they hand over again leaves another
-- handed_at there: then the words beside it tell the way, not this row.
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

-- Who wrote and received each message, for the list of a conversation. It
-- follows the messages in steps of many, because an index on each column would
-- cost every send a page; the one row of message_peers_upto names the last
-- message that is in it, and readers add those after it.
CREATE TABLE IF NOT EXISTS message_peers (
  peer       TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  message_id TEXT    NOT NULL,
  PRIMARY KEY (peer, created_at, message_id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS message_peers_upto (
  one        INTEGER PRIMARY KEY CHECK (one = 1),
  message    INTEGER NOT NULL, -- rowid in messages, 0 for none
  message_id TEXT,
  recipient  TEXT
);
UPDATE bridge_components SET version = 1 WHERE name = 'deliveries';
INSERT INTO bridge_components (name, version)
  SELECT 'deliveries', 1 WHERE NOT EXISTS (SELECT 1 FROM bridge_components WHERE name = 'deliveries');
