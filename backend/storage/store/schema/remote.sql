-- Component "remote" 1: what goes to paired PCs and what came from them.

-- Messages to sessions of paired PCs, each stored with its message: waiting until
-- the other PC says that it has it (arrived) or will not (refused), or until it is
-- too old (expired).
CREATE TABLE IF NOT EXISTS remote_outbox (
  place      INTEGER PRIMARY KEY AUTOINCREMENT, -- the order in which they go
  message_id TEXT    NOT NULL,
  recipient  TEXT    NOT NULL, -- <host>/<session>
  pc         TEXT    NOT NULL, -- the identity of the paired PC
  state      TEXT    NOT NULL,
  changed_at INTEGER,          -- when it came out of waiting
  words      TEXT,             -- why it was refused
  UNIQUE (message_id, recipient)
);
CREATE INDEX IF NOT EXISTS remote_outbox_waiting ON remote_outbox (pc, state, place);

-- Messages that came from paired PCs. news counts what became known of a delivery,
-- told how much of it the sender's PC has noted.
CREATE TABLE IF NOT EXISTS remote_inbox (
  message_id TEXT    PRIMARY KEY,
  pc         TEXT    NOT NULL,
  arrived_at INTEGER NOT NULL,
  news       INTEGER NOT NULL DEFAULT 0,
  told       INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS remote_inbox_news ON remote_inbox (pc) WHERE news > told;

-- Decisions that came from paired PCs.
CREATE TABLE IF NOT EXISTS remote_decisions (
  decision_id TEXT    PRIMARY KEY,
  pc          TEXT    NOT NULL,
  arrived_at  INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS bridge_components (name TEXT PRIMARY KEY, version INTEGER NOT NULL);
UPDATE bridge_components SET version = 1 WHERE name = 'remote';
INSERT INTO bridge_components (name, version)
  SELECT 'remote', 1 WHERE NOT EXISTS (SELECT 1 FROM bridge_components WHERE name = 'remote');
