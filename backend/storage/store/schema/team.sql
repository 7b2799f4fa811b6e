-- Tables of the component "remote" that came to version 1 later: this PC's part in the
-- decisions of its team.

-- How far this PC has read its team's stream of decisions. since is the last decision
-- that was recorded here before it took part.
CREATE TABLE IF NOT EXISTS team_place (
  one      INTEGER PRIMARY KEY CHECK (one = 1),
  team     TEXT    NOT NULL, -- the hub's identity and the team's name
  stream   TEXT    NOT NULL, -- tells the stream from another one of that team
  sequence INTEGER NOT NULL, -- of the last that was read
  mark     TEXT    NOT NULL, -- tells it from what another stream has there
  since    INTEGER NOT NULL
);

-- The decisions that were read there. The sequence is their order; it is NULL while the
-- stream is read anew. follows is the decision that its PC had before it.
CREATE TABLE IF NOT EXISTS team_decisions (
  decision_id TEXT PRIMARY KEY,
  pc          TEXT    NOT NULL,
  sequence    INTEGER,
  number      INTEGER NOT NULL, -- of the PC's proof
  follows     TEXT    NOT NULL,
  told        INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS team_decisions_pc ON team_decisions (pc, number);
CREATE INDEX IF NOT EXISTS team_decisions_told ON team_decisions (decision_id) WHERE told = 0;
