-- Component "deliveries" 1, on archived messages: a store whose upgrade is deferred at an
-- older version goes without (upgrade/sidecar.go).
CREATE INDEX IF NOT EXISTS archived_by_id ON archived_messages (id, recipient);
CREATE INDEX IF NOT EXISTS archived_by_age ON archived_messages (created_at);
