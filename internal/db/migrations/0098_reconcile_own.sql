-- owner: reconcile

-- A movement of our own money between accounts of ours that a line is. The line also has a match without a payment. side is the movement
-- of the transfer: each is used once.
CREATE TABLE statement_own (
  line TEXT NOT NULL PRIMARY KEY,
  transfer TEXT NOT NULL, -- id in own_transfers
  side TEXT NOT NULL CHECK (side IN ('sent', 'arrived', 'returned')),
  made_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX statement_own_once ON statement_own (transfer, side);

-- matched is the amount of a line when it was matched without a payment: the amount that our books have for it. NULL: a node of the release
-- before made the match, and later amounts are not compared.
--
-- Expand first: such a node neither reads nor writes both.
ALTER TABLE statement_matches ADD COLUMN matched INTEGER;
UPDATE statement_matches SET matched = (SELECT amount FROM statement_lines WHERE statement_lines.id = statement_matches.line) WHERE payment = '';

-- The lists of exceptions, newest first: the open ones stay few among the ended ones of years.
CREATE INDEX statement_exceptions_opened ON statement_exceptions (id) WHERE ended_at = 0;
CREATE INDEX statement_exceptions_kind ON statement_exceptions (kind, id) WHERE ended_at = 0;
CREATE INDEX statement_exceptions_suspense ON statement_exceptions (id) WHERE ending = 'suspense';
