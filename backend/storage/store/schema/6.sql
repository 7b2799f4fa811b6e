-- Which names a peer identity had, and who has a name.
CREATE TABLE IF NOT EXISTS peer_names (
  identity   TEXT,
  name       TEXT,
  session_id TEXT,
  agent      TEXT,
  learned_at INTEGER,
  PRIMARY KEY (identity, name)
);
CREATE TABLE IF NOT EXISTS peer_name_owners (name TEXT PRIMARY KEY, identity TEXT);
