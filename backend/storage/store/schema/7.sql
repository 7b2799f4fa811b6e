-- Where a delegated job's result goes, and when it was taken.
CREATE TABLE IF NOT EXISTS job_delivery_routes (
  id          TEXT PRIMARY KEY,
  recipient   TEXT NOT NULL,
  consumed_at INTEGER
);
