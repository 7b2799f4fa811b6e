-- A table that came to the store's version later: the revisions that withdraw the decision
-- on their topic. A program that does not know it sees a revision whose text says so.
CREATE TABLE IF NOT EXISTS withdrawn_decisions (decision_id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS withdrawn_decisions_keep BEFORE UPDATE ON withdrawn_decisions
BEGIN SELECT RAISE(ABORT, 'withdrawals are append-only'); END;
CREATE TRIGGER IF NOT EXISTS withdrawn_decisions_stay BEFORE DELETE ON withdrawn_decisions
BEGIN SELECT RAISE(ABORT, 'withdrawals are append-only'); END;
