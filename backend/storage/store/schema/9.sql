-- When a session name was last seen.
CREATE TABLE IF NOT EXISTS peer_last_seen (name TEXT PRIMARY KEY, seen_at INTEGER);
