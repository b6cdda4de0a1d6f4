-- owner: timekeeping
-- Up to when rows may be ahead of a clock that an operator has accepted.
ALTER TABLE clock_steps ADD COLUMN forgives INTEGER NOT NULL DEFAULT 0;
