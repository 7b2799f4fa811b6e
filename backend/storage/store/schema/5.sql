-- Which host sessions a peer identity had.
CREATE TABLE IF NOT EXISTS session_bindings (
  identity   TEXT,
  session_id TEXT,
  learned_at INTEGER,
  PRIMARY KEY (identity, session_id)
);
