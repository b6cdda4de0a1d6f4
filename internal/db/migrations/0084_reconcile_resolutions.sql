-- owner: reconcile

-- delta is how much more money the statement has than our books because of an exception; below zero: less. act is the change request that
-- ended it. While its ending is suspense, delta is in the account of that name; released, adopted and funded have left it for good.
--
-- Expand first: a node of the release before writes exceptions without both, and its ones have a delta of zero until they are found again.
ALTER TABLE statement_exceptions ADD COLUMN delta INTEGER NOT NULL DEFAULT 0;
ALTER TABLE statement_exceptions ADD COLUMN act TEXT NOT NULL DEFAULT '';
CREATE INDEX statement_exceptions_standing ON statement_exceptions (source, id) WHERE ended_at = 0 OR ending = 'suspense';
CREATE INDEX statement_exceptions_at ON statement_exceptions (source, at) WHERE delta <> 0;

-- The money of a line is booked once.
CREATE UNIQUE INDEX statement_exceptions_booked ON statement_exceptions (line) WHERE line <> '' AND kind = 'theirs_only' AND ending IN ('suspense', 'released', 'adopted', 'funded');
