-- owner: reconcile

-- act names the approved request of an open exception until the outcome of its payment is set. Few have one at a time.
--
-- Expand first: a node of the release before neither reads nor writes such exceptions, and ends them as others.
CREATE INDEX statement_exceptions_approved ON statement_exceptions (id) WHERE ended_at = 0 AND act <> '';
